/* Areas of ptmem's code that the program has unmapped, or otherwise taken from its threads. */
#ifndef PTMEM_TRACEE_INJECT_LOST_CODE_H
#define PTMEM_TRACEE_INJECT_LOST_CODE_H

#include "base/types.h"

struct address_space;
struct maps;
struct stub_area;
struct target;
struct thread;

enum lost_state {
	LOST_NOT,      /* it is as ptmem mapped it */
	LOST_GONE,     /* unmapped, at least in part, or without rights */
	LOST_REPLACED, /* the program has mapped something else there */
};

/* What became of @a, an area of code of @s, according to @maps. */
enum lost_state lost_code_state(const struct address_space *s, const struct maps *maps,
				const struct stub_area *a);
/*
 * Maps @a, which is gone, again, with what was written into it. All threads are stopped; @th makes
 * the calls. 0 or -errno.
 */
int lost_code_restore(struct target *t, struct thread *th, const struct maps *maps,
		      const struct stub_area *a);
/*
 * Whether the mapping of @s at @start is of a kind that ptmem makes: all that a guardian, which
 * does not know the contents, can tell.
 */
bool lost_code_may_be_ours(const struct address_space *s, taddr_t start);

#endif
