/*
 * Stack bytes used by the threads of one program, from occasional stack pointers (doc/massif.md
 * 2.10, --stacks=yes).
 *
 * A thread's own stack reaches from high, its first stack pointer, down to low:
 *
 *	depth = high - sp          if low <= sp, and sp is not far above high
 *
 * A stack pointer elsewhere is on another stack: a signal handler's, a coroutine's. Then the own
 * stack keeps its last depth, and the other one counts from its highest stack pointer seen since
 * the switch:
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
/* The thread has this stack pointer. A thread that was not added counts nothing. */
void stacks_see(struct stacks *s, uint32_t thread, taddr_t sp);
void stacks_remove(struct stacks *s, uint32_t thread);

uint64_t stacks_bytes(const struct stacks *s);

#endif
