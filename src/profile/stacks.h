/*
 * Bytes of stack that the threads of one program use, from stack pointers that
 * were seen now and then (spec/massif.md 2.10, --stacks=yes).
 *
 * A thread's own stack reaches from high, its first stack pointer, down to low:
 *
 *	depth = high - sp          if low <= sp, and sp is not far above high
 *
 * A stack pointer elsewhere is of another stack: a signal handler's, a coroutine's.
 * Then the own stack counts as it was left, and the other one from the highest
 * place that was seen of it since the thread came there:
 *
 *	bytes = sum over threads of own depth + depth elsewhere
 */
#ifndef PTMEM_PROFILE_STACKS_H
#define PTMEM_PROFILE_STACKS_H

#include "base/types.h"

struct stacks;

struct stacks *stacks_new(void);
void stacks_free(struct stacks *s); /* may be NULL */

/* Thread @thread has a stack from @high down to @low, and uses nothing of it yet. */
void stacks_add(struct stacks *s, uint32_t thread, taddr_t low, taddr_t high);
/* It was seen with this stack pointer. A thread that was not added counts nothing. */
void stacks_see(struct stacks *s, uint32_t thread, taddr_t sp);
void stacks_remove(struct stacks *s, uint32_t thread);

uint64_t stacks_bytes(const struct stacks *s);

#endif
