/*
 * The times of a ring's records. Two things are known: the stamps that the thread wrote between
 * them (arch/pad.h, Times), and up to where its ring, and the numbers, were whenever the reader
 * looked (a turn).
 *
 *	stamp           stamp                         head at a turn        stamp
 *	  | r r r r r r r | r r r r r r r r ... pause ... : r r r r r r r r r | r r
 *
 * Records follow the stamp before them as fast as the thread was when it was last busy. If it
 * paused, those that had no number yet at a turn follow that turn; a thread that is found asleep
 * writes a stamp before its next record. A ring without stamps is dated by turns alone.
 *
 * The stamps are the program's, and may be anything: dates never run backwards, nor beyond the
 * turn.
 */
#ifndef PTMEM_TRACEE_PADS_RING_DATES_H
#define PTMEM_TRACEE_PADS_RING_DATES_H

#include <stdint.h>

#define RING_TURNS 8u
#define RING_GAP_NS 10000u /* the bound for times: stamps of a busy thread are closer */
#define RING_SLOPE_SHIFT 16 /* fractional bits of slopes */

struct ring;

/*
 * The reader found the head of a ring at `head`. Records below it, or with a number below `number`,
 * existed at there_ns; all others did not exist at not_yet_ns.
 */
struct ring_turn {
	uint64_t head, number, there_ns, not_yet_ns;
};

/* A position in the ring, and its time. */
struct ring_stamp {
	uint64_t at, ns;
};

/* Positions from start.at up to `end` are dated as start.ns + (position - start.at) * slope. */
struct ring_line {
	struct ring_stamp start;
	uint64_t slope, end;
};

struct ring_dates {
	struct ring_stamp last; /* the end of the last stamp that was passed; at 0: none */
	uint64_t rate;          /* slope when the thread was last busy */
	struct ring_line line;
	uint64_t now_ns;        /* the last date */
	struct ring_turn turn[RING_TURNS]; /* oldest first */
	uint32_t turns;
};

/* The head of @slot was loaded to source.head, between the times @before and @after. */
void ring_dates_turn(struct ring *r, uint32_t slot, uint64_t before, uint64_t after);
/* When the head of @slot was first seen where it was at the last turn: the CPU's counter. */
uint64_t ring_dates_seen(const struct ring *r, uint32_t slot);
/* The reader steps over a stamp of @slot that says @ticks, and ends at @end. */
void ring_dates_pass(struct ring *r, uint32_t slot, uint64_t end, uint64_t ticks);
/* The line for @position of @slot, where the record with @number is; valid until the next call. */
const struct ring_line *ring_line_at(struct ring *r, uint32_t slot, uint64_t position,
				     uint64_t number);
/* The time of the record at the position of @slot, which is the next one to be read. */
uint64_t ring_date(struct ring *r, uint32_t slot);

#endif
