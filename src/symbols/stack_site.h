/*
 * The call site of a stack: its innermost frame that is not a wrapper (wrapper.h). An unnamed
 * function called by an allocator belongs to the allocator; any other is represented by its nearest
 * named caller in the same object. For a stack of wrappers only, it is the frame with the highest
 * rank: the outermost of several, but the innermost if none has a rank and among instances
 * (wrapper_is_better). A stack ends where a runtime begins its threads: what is outside is libc's,
 * which names do not show in a static program.
 */
#ifndef PTMEM_SYMBOLS_STACK_SITE_H
#define PTMEM_SYMBOLS_STACK_SITE_H

#include <stdbool.h>
#include <stddef.h>

#include "symbols/wrapper.h"

struct stack_frame {
	enum frame_rank rank;
	bool is_named;      /* its function has a useful name */
	bool is_allocator;  /* wrapper_is_allocator of that name */
	const char *object; /* NULL = unknown, or start-up code */
};

/* Functions, inlined ones included, are numbered from 0, the innermost. */
struct stack {
	/* Gets frame @i; false: there are only @i frames. There is at least one. */
	bool (*frame)(void *ctx, size_t i, struct stack_frame *out);
	void *ctx;
};

struct stack_site {
	size_t frame;
	enum frame_rank rank; /* RANK_SITE, or for a stack of wrappers only its best rank */
	bool is_unnamed;      /* the function has no name: frame is the caller that represents it */
};

struct stack_site stack_site_find(const struct stack *s);

#endif
