/*
 * The call site of a stack: its innermost frame that is no wrapper (wrapper.h). A function without
 * a name that an allocator calls is part of that; another one is represented by its nearest caller
 * with a name in the same object. A stack of wrappers alone has its frame of the highest rank: the
 * outermost of several, but the innermost if none says anything.
 */
#ifndef PTMEM_SYMBOLS_STACK_SITE_H
#define PTMEM_SYMBOLS_STACK_SITE_H

#include <stddef.h>

#include "symbols/wrapper.h"

struct stack_frame {
	enum frame_rank rank;
	bool is_named;      /* its function has a name */
	bool is_allocator;  /* by that name: wrapper_is_allocator */
	bool is_inlined;    /* into the next frame that is not: a wrapper consists of wrappers */
	const char *object; /* NULL = not known, or start-up code */
};

/* Frames are numbered from 0, the innermost. */
struct stack {
	struct stack_frame (*frame)(void *ctx, size_t i);
	void *ctx;
	size_t count; /* at least 1 */
};

struct stack_site {
	size_t frame;
	enum frame_rank rank; /* RANK_SITE, or what a stack of wrappers alone has */
	bool is_unnamed;      /* the function has no name: frame is the caller that represents it */
};

struct stack_site stack_site_find(const struct stack *s);

#endif
