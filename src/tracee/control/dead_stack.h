/*
 * Stacks of threads that have ended. glibc keeps them mapped for reuse, with stale contents and
 * thread-local variables that nothing refers to any more. Internal to src/tracee.
 */
#ifndef PTMEM_TRACEE_CONTROL_DEAD_STACK_H
#define PTMEM_TRACEE_CONTROL_DEAD_STACK_H

#include "base/types.h"

/* The remains of a thread in the last page of its stack. */
struct dead_stack {
	taddr_t kept_start, kept_end; /* bounds of the descriptor, which the library still uses */
};

/*
 * Whether the mapping [@start, @end) is the stack of a thread that has ended. @page: the mapping's
 * last PAGE_SIZE_MIN bytes.
 */
bool dead_stack_check(taddr_t start, taddr_t end, const uint64_t *page, struct dead_stack *out);

#endif
