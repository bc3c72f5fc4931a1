/*
 * The reader's side of the ring that pads write (arch/pad.h): positions and room. The decoder is
 * ring_record.h, delivery is ring_drain.h.
 *
 * `position` is the end of what was read. The published tail follows in steps of a sixteenth of the
 * ring, since each publication takes the cache line away from the pads. For each slot a mirror
 * (ring_stack.h) has the stack of its last record, outermost first, like the pad's own frames.
 *
 * The program may write anything into that memory, at any time. So everything read from it is
 * copied, and compared with what pads can have written; anything else breaks the ring: nothing more
 * is read, and the caller ends the profile (ring.broken). The fuzzer is tests/fuzz/fuzz_ring.c.
 *
 * An uncommitted record is reserved and has no mark yet: its thread is between these steps, or was
 * interrupted there by a signal handler, or was killed or left by longjmp. The reader can skip it;
 * then it is a deferred record (ring_deferred.h).
 *
 * The thread of an uncommitted record may wait for others (a garbage collector stops threads in
 * signal handlers; a debugger stops them), and these for room in the ring. The ring then continues
 * around the record: ring_jump() skips its bytes, lap after lap, until it is committed. Picture, u
 * = uncommitted record of the lap before:
 *
 *	limit of the old room         position = published
 *	|   given up by waiting threads  |     room         |
 *	...........................uuu......................uuu...
 */
#ifndef PTMEM_TRACEE_PADS_RING_H
#define PTMEM_TRACEE_PADS_RING_H

#include "arch/arch.h"
#include "tracee/pads/pad_memory.h"
#include "tracee/state/heap_event.h"

struct ring_stats {
	uint64_t records, raw, lost; /* lost: never committed */
	uint64_t bytes;
};

/* A range that was reserved, but not committed when the reader skipped it; one or more records. */
struct ring_range {
	uint64_t start, end;
};

struct ring_mirror; /* ring_stack.h */

struct ring {
	struct pad_memory *memory;
	const struct arch *arch;
	const char *broken;    /* why nothing more is read; NULL: not broken */
	uint64_t position;     /* read up to here, except for deferred records */
	uint64_t published;
	uint64_t room;         /* a private copy of control->room */
	uint64_t jumps;
	struct ring_range *deferred;
	size_t deferred_count, deferred_capacity;
	struct ring_mirror *mirror; /* by slot */
	size_t mirror_count;
	struct stack_view view; /* a private copy of a record's raw part; its data is in raw */
	uint8_t *raw;
	size_t raw_capacity;
	struct ring_stats stats;
};

/* @memory stays the caller's and must outlive the ring. */
void ring_init(struct ring *r, struct pad_memory *memory, const struct arch *arch);
void ring_deinit(struct ring *r);

/* The memory is corrupt: from now on nothing is read, and pads write nothing. */
void ring_break(struct ring *r, const char *why);

/* Bytes reserved and not yet read, a multiple of 16; 0 = nothing to do, or it is broken. */
uint64_t ring_pending(struct ring *r);

/*
 * Maximum distance of the head from the limit: each thread with a slot may have reserved one record
 * and be waiting for room.
 */
uint64_t ring_longest_queue(const struct ring *r);

/* Publishes everything that was read; call it before resuming threads that wait for room. */
void ring_publish(struct ring *r);
/* Publishes @tail, or @room, unchanged. */
void ring_set_tail(struct ring *r, uint64_t tail);
void ring_set_room(struct ring *r, uint64_t room);

/* Bytes that can be reserved without waiting. */
uint64_t ring_free_bytes(struct ring *r);
/* Whether less than half of the room is reserved, or the ring is broken and needs none. */
bool ring_has_room(struct ring *r);

/* Whether a jump skipped the range reserved at @start: its thread must give it up. */
bool ring_was_skipped(const struct ring *r, uint64_t start);
/* Whether a thread that reserved [@start, @end) need not wait: there is room, or it was skipped. */
bool ring_may_continue(const struct ring *r, uint64_t start, uint64_t end);

/* No thread writes at or above this position. */
static inline uint64_t ring_limit(const struct ring *r)
{
	return r->published + r->room;
}

static inline uint8_t *ring_at(const struct ring *r, uint64_t position)
{
	const struct pad_memory *m = r->memory;

	return m->base + m->layout.ring + (position & (m->layout.ring_size - 1));
}

/* The mark at @position, or 0 if no record was committed there. */
static inline uint64_t ring_committed_mark(const struct ring *r, uint64_t position)
{
	const uint64_t *word = (const void *)ring_at(r, position);
	uint64_t mark = __atomic_load_n(word, __ATOMIC_ACQUIRE);
	uint64_t expected = pad_mark(position, r->memory->written.key, 0);

	return mark >> PAD_MARK_LOW == expected >> PAD_MARK_LOW ? mark : 0;
}

#endif
