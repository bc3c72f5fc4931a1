/*
 * Functions that allocate or touch memory on behalf of their caller: the standard libraries of C,
 * C++ and Rust, the loader, and functions named like malloc (xmalloc, g_malloc0, sqlite3MemMalloc,
 * my_strdup). A user who asks where memory comes from means their caller: the call site. This is a
 * guess by name, used only in summaries and pictures; call trees show all frames.
 */
#ifndef PTMEM_SYMBOLS_WRAPPER_H
#define PTMEM_SYMBOLS_WRAPPER_H

#include <stdbool.h>
#include <stddef.h>

#include "symbols/code_owner.h"

/* How suitable a frame is as the call site of its stack. */
enum frame_rank {
	RANK_SITE,     /* not a wrapper: the innermost such frame is the call site */
	RANK_UNNAMED,  /* a wrapper without information: "???" in libc, "[anonymous]" */
	RANK_FUNCTION, /* of libc or a package's header, or named like malloc */
	RANK_LOADER,   /* of the dynamic loader */
	RANK_STANDARD, /* of the standard libraries of C++ and Rust */
	RANK_THREAD,   /* of these; threads begin there: no caller is the program's */
	RANK_INSTANCE, /* of these, compiled into the program, for types of the program */
	RANK_CALLER,   /* an instance that calls the program's functions, which may be inlined */
	RANK_RUNTIME,  /* of a run-time system and its libraries: Java's, node's */
	RANK_MAPPING,  /* mapped memory: "[file libm.so.6]", "[stack]" */
};

enum frame_rank wrapper_rank(const struct frame_text *frame);
/* That of a wrapper of which only the name of its @function is known. */
enum frame_rank wrapper_rank_named(const char *function);

/* Whether @function is a wrapper whoever wrote it: named like malloc, or operator new. */
bool wrapper_is_malloc_like(const char *function);

/* Bits of the column "role" of JSON, for the report's page: see recording_site.h. */
enum wrapper_role { ROLE_ALLOCATOR = 1, ROLE_FIXED = 2, ROLE_START = 4 };

/*
 * In a stack of wrappers only: whether a frame of @rank is better than the best one inside it. Of
 * instances, which have no source lines, the innermost is nearest to the program's code.
 */
bool wrapper_is_better(enum frame_rank rank, enum frame_rank best);

/* Whether @function, which may be NULL, is "(below main)": start-up code. */
bool wrapper_is_below_main(const char *function);

/* Whether @function is a useful name: neither "???" nor "(below main)". */
bool wrapper_is_named(const char *function);

/*
 * Whether the name of @function shows that it allocates: a standard namespace, or named like
 * malloc.
 */
bool wrapper_is_allocator(const char *function);

/* The label for a stack of wrappers whose best frame has @rank; NULL = that frame's own name. */
const char *wrapper_label(enum frame_rank rank);

/*
 * The call site of a stack: its innermost frame that is not a wrapper. An unnamed
 * function called by an allocator belongs to the allocator, and one in no object, generated code,
 * to the run-time system that it calls; any other is represented by its nearest named caller in the
 * same object. For a stack of wrappers only, it is the frame with the highest rank: the outermost
 * of several, but the innermost if none has a rank and among instances (wrapper_is_better). A stack
 * ends where a runtime begins its threads: what is outside is libc's, which names do not show in a
 * static program.
 */

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
