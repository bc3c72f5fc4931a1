/*
 * One look at a target that stands: its blocks, registers and memory as a leak check needs
 * them (--leak-check). Joins target, profile and leak.
 */
#ifndef PTMEM_LEAK_LOOK_H
#define PTMEM_LEAK_LOOK_H

#include "leak/leakcheck.h"
#include "session.h"

/* What a look leaves for the report. */
struct leak_look {
	struct leakcheck check;
	/* when it was; how long it took; memory that was read */
	uint64_t time_ns, pause_ns, bytes;
	bool is_taken, is_prepared, has_blocks;
};

/* The target of @s will be looked at soon: takes the memory for it while the target runs. */
void leak_look_prepare(struct session *s);

/*
 * Looks at the target of @s, which stands, for leak_look_of. What was not prepared is taken
 * to be the end: no event may come before leak_look_of then.
 */
void leak_look_take(struct session *s);

/* What was seen, ready for leakcheck_run; or NULL. The session's. */
struct leak_look *leak_look_of(struct session *s);

/* Releases what a look, or its preparation, left behind. */
void leak_look_forget(struct session *s);

#endif
