/*
 * The ring of a fork that inherits its parent's pads. The parent may continue before the
 * fork's memory is made, so what is in its deferred records is saved at the fork.
 */
#ifndef PTMEM_TRACEE_PADS_RING_FORK_H
#define PTMEM_TRACEE_PADS_RING_FORK_H

#include "tracee/pads/ring.h"

/*
 * @r as @parent is now, with the mirror of @slot, for a copy of its memory. r->memory is to be set
 * before it is used.
 */
void ring_fork(struct ring *r, const struct ring *parent, uint32_t slot);

/* The bytes of the deferred records, which may be half written; the caller frees them. */
uint8_t *ring_save_deferred(const struct ring *r);
/* Writes them into the same ranges of a copy, whose memory is new. */
void ring_restore_deferred(struct ring *r, const uint8_t *saved);

#endif
