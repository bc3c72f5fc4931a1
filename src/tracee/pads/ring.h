/*
 * The reader's side of the rings that pads write (arch/pad.h): positions, numbers, room. The
 * decoder is ring_record.h, delivery is ring_drain.h.
 *
 * Each slot has a ring, whose `position` is the end of what was read. The published limit follows
 * in steps of a sixteenth of the ring, since each publication takes the cache line away from the
 * pads. For each slot a mirror (ring_stack.h) has the stack of its last record, outermost first,
 * like the pad's own frames.
 *
 * Records are delivered in the order of their numbers. `number` is the next one: those below it
 * were read, or their record was not complete yet, or there will be none. A record below it that is
 * found later is late, and is delivered first.
 *
 * The program may write anything into that memory, at any time. So everything read from it is
 * copied, and compared with what pads can have written; anything else breaks the ring: nothing more
 * is read, and the caller ends the profile (ring.broken). The fuzzer is tests/fuzz/fuzz_ring.c.
 */
#ifndef PTMEM_TRACEE_PADS_RING_H
#define PTMEM_TRACEE_PADS_RING_H

#include "arch/arch.h"
#include "tracee/pads/pad_memory.h"
#include "tracee/pads/ring_dates.h"
#include "tracee/state/heap_event.h"

struct ring_stats {
	uint64_t records, raw;
	uint64_t late; /* records delivered after some with higher numbers */
	uint64_t bytes;
	/* of records without stamps: those dated between turns more than 1 ms apart; the most */
	uint64_t coarse_bytes, coarse_ns;
};

#define RING_NO_NUMBER UINT64_MAX

/* One slot's ring. */
struct ring_source {
	const uint8_t *bytes;
	uint64_t mask;         /* their number - 1 */
	uint64_t position, published;
	uint64_t last;         /* the number of the last record that was read; 0: none */
	/* in a turn: the head, and the number of the record at the position, or RING_NO_NUMBER */
	uint64_t head, next;
	bool is_asked;         /* for a stamp: nothing was new */
	struct ring_dates dates;
};

struct ring_mirror; /* ring_stack.h */
struct tick_clock;

/* The rings of all slots. */
struct ring {
	struct pad_memory *memory;
	const struct arch *arch;
	struct tick_clock *clock; /* updated in each turn */
	const char *broken;    /* why nothing more is read; NULL: not broken */
	uint64_t number;       /* all below it are read, or late, or will never come */
	uint64_t next_number;  /* as last seen in the control block */
	struct ring_source *source; /* by slot */
	size_t source_count, source_capacity;
	uint32_t *active;      /* the slots of a turn */
	size_t active_capacity;
	struct ring_mirror *mirror; /* by slot */
	size_t mirror_count;
	struct stack_view view; /* a private copy of a record's raw part; its data is in raw */
	uint8_t *raw;
	size_t raw_capacity;
	struct ring_stats stats;
};

/* @memory and @clock stay the caller's and must outlive the ring. */
void ring_init(struct ring *r, struct pad_memory *memory, const struct arch *arch,
	       struct tick_clock *clock);
void ring_deinit(struct ring *r);

/* The memory is corrupt: from now on nothing is read, and pads write nothing. */
void ring_break(struct ring *r, const char *why);

/* The source of @slot, which is in use. */
struct ring_source *ring_source(struct ring *r, uint32_t slot);
/* The head of @slot's ring; its position if it is impossible, and the ring is broken now. */
uint64_t ring_head(struct ring *r, uint32_t slot);
/* How many numbers were taken since the last one that was read; 0 if it is broken. */
uint64_t ring_pending(struct ring *r);

/* Publishes everything that was read; call it before resuming threads that wait for room. */
void ring_publish(struct ring *r);
/* The same for @slot. */
void ring_publish_slot(struct ring *r, uint32_t slot);

static inline const uint64_t *ring_word(const struct ring_source *s)
{
	return (const void *)(s->bytes + (s->position & s->mask));
}

#endif
