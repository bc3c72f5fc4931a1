/* Delivers the contents of the ring in order. */
#ifndef PTMEM_TRACEE_PADS_RING_DRAIN_H
#define PTMEM_TRACEE_PADS_RING_DRAIN_H

#include "tracee/pads/ring_record.h"

/*
 * Delivers committed records up to the first uncommitted one, at most @max; returns their number.
 * Deferred records that are committed now are delivered first.
 */
size_t ring_drain(struct ring *r, size_t max, const struct ring_reader *reader);

#endif
