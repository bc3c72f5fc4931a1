/*
 * Pads: trampolines that record calls of hot functions into shared memory, instead of a stop at a
 * breakpoint for each. Contract with the code in the target: arch/pad.h. A space that has any has a
 * struct pads, which only this directory knows:
 *
 *	promote.h       breakpoints become pads
 *	pad_service.h   what pads ask of ptmem
 *	pad_delivery.h  what they have recorded
 *	pad_threads.h   the slots of threads
 *	pad_fork.h, pad_stall.h, pad_restore.h, pad_leave.h
 */
#ifndef PTMEM_TRACEE_PADS_PADS_H
#define PTMEM_TRACEE_PADS_PADS_H

#include "base/types.h"

struct address_space;
struct target;

/* Registers what the layers below ask of pads. Once for a target. */
void pads_init(struct target *t);
/* All address spaces are gone. */
void pads_deinit(struct target *t);

/*
 * From now on several threads, or a forked copy of one that is in a pad, may write to the ring
 * of @s: before the clone or fork that makes them continues.
 */
void pads_share(struct address_space *s);

/* Where the shared memory of @s, which has pads, is mapped. */
taddr_t pads_mapped_at(const struct address_space *s, uint64_t *size_out);

/* Frees ptmem's side. */
void pads_free(struct target *t, struct address_space *s);

#endif
