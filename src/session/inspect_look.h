/*
 * A stopped process is read, and found in a state in which it can be read: no thread is in the
 * middle of malloc. Joins tracee, unwind and inspect.
 */
#ifndef PTMEM_INSPECT_LOOK_H
#define PTMEM_INSPECT_LOOK_H

#include "inspect/inspect.h"
#include "session/malloc_module.h"

struct address_space;
struct target;

struct inspect_look {
	struct inspect_report report;
	struct held_modules modules;
	struct malloc_modules malloc;
	/* by inspect_look_judge */
	const char *other;       /* the name of an allocator that is not glibc's; NULL = none */
	unsigned glibc_major, glibc_minor; /* 0 = unknown */
	bool has_arena;          /* malloc was used, and is glibc's */
	uint32_t inside;         /* threads in functions of malloc's that did not leave them */
	uint32_t moments;        /* how often others ran until they had left them */
	uint64_t rss, swap;      /* VmRSS and VmSwap, bytes */
};

struct inspect_wish {
	heap_block_fn *block;    /* called for each block in use; NULL = not wanted */
	void *ctx;
	bool only_blocks;        /* which takes less time: the report has no rows, and no pages */
	const struct pinned_paths *paths; /* of blocks; NULL = they are not known */
	bool wants_types;        /* of blocks */
	bool wants_holders;      /* what points to them */
	bool is_last;            /* the process ends or is left: no thread may run on */
};

/*
 * Reads @s, whose threads are stopped; what takes long and needs only files is left to
 * inspect_look_judge. -errno if its memory cannot be listed. inspect_look_deinit frees @out.
 */
int inspect_look(struct target *t, struct address_space *s, const struct inspect_wish *wish,
		 struct inspect_look *out);
/* Finds out which version of glibc's malloc it is, if it is glibc's. */
void inspect_look_version(struct inspect_look *l);
/* The same, which malloc it is, and names of types. */
void inspect_look_judge(struct inspect_look *l);
void inspect_look_deinit(struct inspect_look *l);

#endif
