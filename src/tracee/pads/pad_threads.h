/* Assigns slots to threads, and sets the bounds of their stacks. */
#ifndef PTMEM_TRACEE_PADS_PAD_THREADS_H
#define PTMEM_TRACEE_PADS_PAD_THREADS_H

#include "arch/pad.h"
#include "base/types.h"

struct target;
struct thread;

/* The slot of @th, or NULL. */
struct pad_slot *pads_slot(const struct thread *th);

/* Assigns a slot to a new thread of a space with pads, stopped before its first instruction (or at
 * promotion). */
void pads_add_thread(struct target *t, struct thread *th);
void pads_thread_exit(struct target *t, struct thread *th);

/* Assigns to @th, which runs on the stack at @sp, the slot of its thread pointer. 0 or -errno. */
int pads_give_slot(struct target *t, struct thread *th, uint64_t thread_pointer, taddr_t sp);
/* Whether another thread has the slot of @thread_pointer (clone without thread-local storage). */
bool pads_slot_is_taken(const struct thread *th, uint64_t thread_pointer);

#endif
