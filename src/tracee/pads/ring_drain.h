/*
 * Delivery of what the ring holds, in its order.
 */
#ifndef PTMEM_TRACEE_PADS_RING_DRAIN_H
#define PTMEM_TRACEE_PADS_RING_DRAIN_H

#include "tracee/pads/ring_record.h"

/*
 * Delivers committed records up to the first uncommitted one, at most @max; returns their number.
 * Deferred records are delivered first, when they have been committed.
 */
size_t ring_drain(struct ring *r, size_t max, const struct ring_reader *reader);

#endif
