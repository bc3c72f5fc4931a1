/*
 * Records that the reader skipped because they were not committed, and delivers once they are.
 * Until then they hold back the published tail.
 *
 * Deferring does not disturb the order of events: the program does not get a block before its
 * record is committed, and cannot reuse it before its free is.
 */
#ifndef PTMEM_TRACEE_PADS_RING_DEFERRED_H
#define PTMEM_TRACEE_PADS_RING_DEFERRED_H

#include "tracee/pads/ring_record.h"

/* Whether an uncommitted record is at the read position. */
bool ring_has_uncommitted(struct ring *r);
/*
 * Continues after it, at the next committed record or the end. @is_dead: it will never be committed
 * (its thread is dead or left by longjmp); otherwise it is deferred.
 */
void ring_pass_uncommitted(struct ring *r, bool is_dead);

/* Delivers the deferred records that are committed now; returns their number. */
size_t ring_drain_deferred(struct ring *r, const struct ring_reader *reader);
/*
 * Delivers the deferred records that precede those which are committed now, up to *end_out: a
 * thread's deferred record was committed before its later ones. One search of the deferred ranges
 * serves many records: with a thousand threads there are a hundred ranges.
 */
size_t ring_drain_deferred_before(struct ring *r, const struct ring_reader *reader,
				  uint64_t *end_out);

/* [@start, @end) is not expected any more. */
void ring_forget_range(struct ring *r, uint64_t start, uint64_t end);

#endif
