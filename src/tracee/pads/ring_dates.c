/* Lines between stamps. */
#include "tracee/pads/ring_dates.h"

#include <string.h>

#include "base/types.h"
#include "tracee/os/tick_clock.h"
#include "tracee/pads/ring_record.h"

#define RATE_UNIT 65536u
#define SLOPE_MAX (UINT64_C(1) << 40) /* times a ring of records: fits into 64 bits */

void ring_dates_turn(struct ring *r, uint32_t slot, uint64_t before, uint64_t after)
{
	struct ring_source *s = &r->source[slot];
	struct ring_dates *d = &s->dates;
	struct ring_turn *last = d->turns ? &d->turn[d->turns - 1] : NULL;

	d->end = 0;
	d->turn_ns = after;
	if (last && last->head == s->head) {
		last->not_yet_ns = before;
		return;
	}
	if (d->turns == RING_TURNS)
		memmove(d->turn, d->turn + 1, --d->turns * sizeof(*d->turn));
	d->turn[d->turns++] = (struct ring_turn){s->head, after, before};
}

/* The size of the record with @mark at @position, in @room bytes; 0 if that is not known. */
static uint64_t size_at(const struct ring *r, const struct ring_source *s, uint64_t position,
			uint64_t mark)
{
	const uint64_t *word = (const void *)(s->bytes + (position & s->mask));
	uint64_t size = 16 + ring_tail_size(r);

	if (mark == PAD_RECORD_FILL)
		return s->mask + 1 - (position & s->mask);
	if ((mark & 15) == PAD_RECORD_ALLOC || (mark & 15) == PAD_RECORD_REALLOC_END)
		size = (uint32_t)ring_load(&word[1]);
	return size % 16 == 0 && size <= s->mask + 1 - (position & s->mask) ? size : 0;
}

/* Finds the next stamp of @slot, from d->searched on: after it is known, and passed. */
static void find_stamp(struct ring *r, uint32_t slot)
{
	struct ring_source *s = &r->source[slot];
	struct ring_dates *d = &s->dates;
	uint64_t position = MAX(d->searched, s->position);

	while (s->head > position && s->head - position >= PAD_TIME_SIZE) {
		const uint64_t *word = (const void *)(s->bytes + (position & s->mask));
		uint64_t mark = ring_load(word), size;
		if (mark == PAD_RECORD_TIME) {
			uint64_t ns = tick_clock_ns(r->clock, ring_load(&word[1]));
			d->next = (struct ring_stamp){position,
						      MIN(ns, d->turn_ns)};
			position += PAD_TIME_SIZE;
			break;
		}
		size = size_at(r, s, position, mark);
		if (!size)
			break; /* the reader will come here, and report it */
		position += size;
	}
	d->searched = position;
}

/* ns for each byte of @bytes that took @ns. */
static uint64_t slope_of(uint64_t ns, uint64_t bytes)
{
	return bytes ? MIN(ns, SLOPE_MAX / RATE_UNIT) * RATE_UNIT / bytes : 0;
}

/* Whether the thread was busy between the stamps around the position. */
static bool is_busy(const struct ring_dates *d)
{
	return d->next.ns - d->last.ns <= 2 * RING_GAP_NS || d->next.ns < d->last.ns;
}

void ring_dates_pass(struct ring *r, uint32_t slot)
{
	struct ring_source *s = &r->source[slot];
	struct ring_dates *d = &s->dates;

	if (d->next.at != s->position)
		find_stamp(r, slot);
	if (d->next.at != s->position)
		return; /* the program changes the ring meanwhile */
	if (d->last.at && is_busy(d) && d->next.ns > d->last.ns)
		d->rate = slope_of(d->next.ns - d->last.ns, d->next.at - d->last.at);
	d->last = (struct ring_stamp){s->position + PAD_TIME_SIZE, d->next.ns};
	d->next.at = RING_NO_STAMP;
	d->end = 0;
}

/*
 * The turns around @position: when it was not there yet, and when it was; 0 = unknown. A head
 * right behind the last stamp says nothing: a stamp is written when its record is about to follow.
 */
static void find_turns(const struct ring_dates *d, uint64_t position, struct ring_stamp *before,
		       struct ring_stamp *after)
{
	*before = *after = (struct ring_stamp){0};
	for (uint32_t i = 0; i < d->turns; i++) {
		const struct ring_turn *t = &d->turn[i];
		if (t->head > position) {
			*after = (struct ring_stamp){t->head, t->there_ns};
			return;
		}
		if (t->head > d->last.at)
			*before = (struct ring_stamp){t->head, t->not_yet_ns};
	}
}

/* A line from @from to @to. */
static void draw(struct ring_dates *d, struct ring_stamp from, struct ring_stamp to)
{
	d->start = from;
	d->end = to.at;
	d->most_ns = to.ns;
	d->slope = to.ns > from.ns ? slope_of(to.ns - from.ns, to.at - from.at) : 0;
}

/* A line from @from up to @end with the thread's own rate, but not beyond @most_ns. */
static void continue_from(struct ring_dates *d, struct ring_stamp from, uint64_t end,
			  uint64_t most_ns)
{
	d->start = from;
	d->end = end;
	d->most_ns = most_ns;
	d->slope = d->rate;
}

void ring_dates_place(struct ring *r, uint32_t slot, uint64_t position)
{
	struct ring_source *s = &r->source[slot];
	struct ring_dates *d = &s->dates;
	struct ring_stamp before, after;

	if (d->next.at == RING_NO_STAMP)
		find_stamp(r, slot);
	bool has_next = d->next.at != RING_NO_STAMP && d->next.at >= position;
	if (d->last.at && has_next && is_busy(d)) {
		draw(d, d->last, d->next);
		return;
	}
	find_turns(d, position, &before, &after);
	uint64_t end = has_next ? MIN(after.at, d->next.at) : after.at;
	if (!d->last.at) {
		draw(d, before.ns ? before : (struct ring_stamp){position, after.ns}, after);
	} else if (before.ns <= d->last.ns) {
		continue_from(d, d->last, end, MIN(d->last.ns + RING_GAP_NS, after.ns));
	} else if (has_next) {
		uint64_t rest = (d->next.at - position) * d->rate / RATE_UNIT;
		uint64_t ns = d->next.ns > rest ? d->next.ns - rest : 0;
		draw(d, (struct ring_stamp){position, MAX(ns, before.ns)}, d->next);
	} else {
		continue_from(d, (struct ring_stamp){position, before.ns}, end,
			      MIN(before.ns + RING_GAP_NS, after.ns));
	}
}
