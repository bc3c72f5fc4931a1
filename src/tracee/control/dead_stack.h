/*
 * Stacks of threads that have ended. glibc keeps them mapped for threads to come, with all that
 * was on them and in the thread's variables, to which nothing refers any more.
 * Internal to src/tracee.
 */
#ifndef PTMEM_TRACEE_CONTROL_DEAD_STACK_H
#define PTMEM_TRACEE_CONTROL_DEAD_STACK_H

#include "base/types.h"

/* What is left of a thread in its last page, where the thread library describes it. */
struct dead_stack {
	taddr_t kept_start, kept_end; /* of the description: what the library still uses */
};

/*
 * Whether the mapping [@start, @end) is the stack, with the thread's variables, of one that ended.
 * @page: the mapping's last PAGE_SIZE_MIN bytes.
 */
bool dead_stack_check(taddr_t start, taddr_t end, const uint64_t *page, struct dead_stack *out);

#endif
