/* Delivers the contents of the rings in order. */
#ifndef PTMEM_TRACEE_PADS_RING_DRAIN_H
#define PTMEM_TRACEE_PADS_RING_DRAIN_H

#include "tracee/pads/ring_record.h"

/*
 * Delivers what is complete, at most @max records and a few more; returns their number. Less than
 * @max: there was no more.
 */
size_t ring_drain(struct ring *r, size_t max, const struct ring_reader *reader);

#endif
