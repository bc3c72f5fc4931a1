/*
 * Pads: trampolines that record calls of hot functions in shared memory, instead of a breakpoint
 * stop for each. arch/pad.h is the contract with the code in the target. A space with pads has a
 * struct pads, which is private to this directory:
 *
 *	promote.h       turns breakpoints into pads
 *	pad_service.h   handles requests of pads
 *	pad_delivery.h  delivers their records
 *	pad_threads.h   assigns slots to threads
 *	pad_fork.h, pad_restore.h, pad_retreat.h, pad_leave.h
 */
#ifndef PTMEM_TRACEE_PADS_PADS_H
#define PTMEM_TRACEE_PADS_PADS_H

#include "base/types.h"

struct address_space;
struct target;

/* Registers the pad_hooks for lower layers. Once for each target. */
void pads_init(struct target *t);
/* All address spaces are gone. */
void pads_deinit(struct target *t);

/*
 * From now on several threads, or a fork that is inside a pad, may write records of @s. Call it
 * before the clone or fork that creates them continues.
 */
void pads_share(struct address_space *s);

/*
 * Whether full rings lose records from now on, or their threads wait for ptmem; always the former
 * if options.probes.max_wait_ns is 0.
 */
void pads_set_losing(struct target *t, bool is_losing);

/* Address and size of the shared memory of @s, which has pads. */
taddr_t pads_mapped_at(const struct address_space *s, uint64_t *size_out);

/* Frees ptmem's side. */
void pads_free(struct target *t, struct address_space *s);

#endif
