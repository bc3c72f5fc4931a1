/*
 * What the files of the pads share: pads.c (promotion), pad_threads.c, pad_service.c,
 * pad_fork.c.
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

/* An empty memfd that is open in both, here as *own_out; returns its number in the target. */
int pads_open_file(struct target *t, struct thread *th, int *own_out);
void pads_close_file(struct target *t, struct thread *th, int fd);
/* Maps @m, whose file the target has open as @fd, over what lies at @at. 0 or -errno: then something may
 * be mapped there already. */
int pads_map_over(struct target *t, struct thread *th, int fd, const struct pad_memory *m, taddr_t at);
/* Frees @p, whose memory is gone, or never was there. */
void pads_delete(struct pads *p);

#endif
