/*
 * What the files of the pads share: pads.c (promotion), pad_threads.c, pad_service.c.
 */
#ifndef PTMEM_TARGET_PADS_INTERNAL_H
#define PTMEM_TARGET_PADS_INTERNAL_H

#include "target/pads.h"

/* More slots; whether there can be more. @th is stopped; it makes calls for that. */
bool pads_grow(struct target *t, struct thread *th);
/* Gives @th, which runs on the stack at @sp, the slot of its thread pointer. 0 or -errno. */
int pads_give_slot(struct target *t, struct thread *th, uint64_t thread_pointer, taddr_t sp);

/* Whether another thread has the slot of @thread_pointer (clone without thread-local storage). */
bool pads_slot_is_taken(const struct thread *th, uint64_t thread_pointer);

#endif
