/*
 * The ring of a fork that inherits its parent's pads. The parent may continue before the fork's
 * memory is made, so the contents of its deferred records are saved at the fork.
 */
#ifndef PTMEM_TRACEE_PADS_RING_FORK_H
#define PTMEM_TRACEE_PADS_RING_FORK_H

#include "tracee/pads/ring.h"

/*
 * Copies @parent's current state to @r, with the mirror of @slot, for a copy of its memory. The
 * caller sets r->memory before use.
 */
void ring_fork(struct ring *r, const struct ring *parent, uint32_t slot);

/* The bytes of the deferred records, which may be half written; the caller frees them. */
uint8_t *ring_save_deferred(const struct ring *r);
/* Writes them to the same ranges of a copy with new memory. */
void ring_restore_deferred(struct ring *r, const uint8_t *saved);

#endif
