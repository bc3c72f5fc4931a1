/*
 * The times of a ring's records. Two things are known: the stamps that the thread wrote between
 * them (arch/pad.h, Times), and where the head was whenever the reader looked.
 *
 *	stamp           stamp                           stamp          head
 *	  | r r r r r r r | r r r r r r r .. pause .. r r | r r r r r r  :
 *	                        ^ head of an earlier turn
 *
 * Records between two stamps that are close lie on the straight line between them. If the thread
 * paused in between, those before the head of an earlier turn follow the stamp before them, and
 * the others precede the one after them, as fast as the thread was before. Behind the last stamp
 * the line is continued. A ring without stamps is dated by turns alone.
 *
 * The stamps are the program's, and may be anything: dates never run backwards, nor beyond the
 * turn.
 */
#ifndef PTMEM_TRACEE_PADS_RING_DATES_H
#define PTMEM_TRACEE_PADS_RING_DATES_H

#include <stdint.h>

#define RING_TURNS 8u
#define RING_NO_STAMP UINT64_MAX
#define RING_GAP_NS 10000u /* the bound for times: stamps of a busy thread are closer */

struct ring;

/*
 * The reader found the head of a ring at `head`: what is below it was there at there_ns, and what
 * is not was not yet there at not_yet_ns.
 */
struct ring_turn {
	uint64_t head, there_ns, not_yet_ns;
};

/* A position in the ring, and its time. */
struct ring_stamp {
	uint64_t at, ns;
};

struct ring_dates {
	/* around the reader's position; last.at 0, next.at RING_NO_STAMP: none */
	struct ring_stamp last, next;
	uint64_t searched;      /* up to here there is no stamp after `next`, or `last` */
	uint64_t rate;          /* ns for each byte, times 65536, when the thread was last busy */
	/* positions below `end` are dated as start.ns + (position - start.at) * slope / 65536 */
	struct ring_stamp start;
	uint64_t slope, end, most_ns;
	uint64_t now_ns;        /* the last date */
	uint64_t turn_ns;       /* time of the turn: nothing is later */
	struct ring_turn turn[RING_TURNS]; /* oldest first */
	uint32_t turns;
};

/* The head of @slot was loaded to source.head, between the times @before and @after. */
void ring_dates_turn(struct ring *r, uint32_t slot, uint64_t before, uint64_t after);
/* The reader steps over the stamp at the position of @slot. */
void ring_dates_pass(struct ring *r, uint32_t slot);
/* Draws the line for @position of @slot, which is below the head, and for some behind it. */
void ring_dates_place(struct ring *r, uint32_t slot, uint64_t position);

#endif
