/*
 * Records that the reader passed because they were not committed, and delivers once they are. They
 * hold the published tail until then.
 *
 * Deferring is harmless to the order of events: a block is not known to its program before its
 * record's commit, nor reusable before its free's.
 */
#ifndef PTMEM_TRACEE_PADS_RING_DEFERRED_H
#define PTMEM_TRACEE_PADS_RING_DEFERRED_H

#include "tracee/pads/ring_record.h"

/* Whether an uncommitted record is at the read position. */
bool ring_has_uncommitted(struct ring *r);
/*
 * Continues after it, at the next committed record or the end. @is_dead: it will never be
 * committed (its thread is dead or jumped out); else it is deferred.
 */
void ring_pass_uncommitted(struct ring *r, bool is_dead);

/* Delivers the deferred records that are committed now; returns their number. */
size_t ring_drain_deferred(struct ring *r, const struct ring_reader *reader);
/*
 * Delivers the deferred records that come before those which are committed now, up to *end_out: a
 * thread's deferred record was committed before its later ones were. One search of the deferred
 * ranges is for many records: with a thousand threads there are a hundred ranges.
 */
size_t ring_drain_deferred_before(struct ring *r, const struct ring_reader *reader,
				  uint64_t *end_out);

/* [@start, @end) is no longer waited for. */
void ring_forget_range(struct ring *r, uint64_t start, uint64_t end);

#endif
