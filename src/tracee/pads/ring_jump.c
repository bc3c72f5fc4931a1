/*
 * Jumps of the ring around deferred records.
 */
#include "tracee/pads/ring_jump.h"

#include "tracee/pads/ring_deferred.h"

#define TRIES 32 /* the last tries leave more room than all threads can reserve once */

/* The number of bytes from position @start on that no deferred range below @last occupies. */
static uint64_t free_run(const struct ring *r, uint64_t last, uint64_t start)
{
	uint64_t mask = r->memory->layout.ring_size - 1, run = r->memory->layout.ring_size;

	for (size_t i = 0; i < r->deferred_count; i++) {
		struct ring_range range = { r->deferred[i].start, MIN(r->deferred[i].end, last) };
		if (range.start >= range.end)
			continue;
		if (((start - range.start) & mask) < range.end - range.start)
			return 0;
		run = MIN(run, (range.start - start) & mask);
	}
	return run;
}

/* The position with the longest free run, *run_out, at or after @first. */
static uint64_t find_free_run(const struct ring *r, uint64_t last, uint64_t first,
			      uint64_t *run_out)
{
	uint64_t mask = r->memory->layout.ring_size - 1, best = first,
		 run = free_run(r, last, first);

	for (size_t i = 0; i < r->deferred_count; i++) {
		uint64_t end = MIN(r->deferred[i].end, last);
		uint64_t behind = first + ((end - first) & mask);
		uint64_t its_run = free_run(r, last, behind);
		if (its_run > run) {
			best = behind;
			run = its_run;
		}
	}
	*run_out = run;
	return best;
}

/*
 * Moves the head to a place with room after everything reserved, and the read position with it.
 * Meanwhile threads reserve, each only once, since it has to wait then: ranges from before the last
 * exchange are below the new tail, so these threads try again. They may reserve faster than a place
 * is found, so each try leaves them more room than the one before.
 */
static void move_head(struct ring *r, uint64_t last, uint64_t *run_out)
{
	uint64_t *head = &r->memory->control->head;
	uint64_t before = r->position + ring_pending(r), most = before + ring_longest_queue(r);

	for (int n = 0; n < TRIES && before >= r->position && !r->broken; n++) {
		r->position = find_free_run(r, last, before + (16ull << n), run_out);
		before = __atomic_exchange_n(head, r->position, __ATOMIC_SEQ_CST);
		if (before % 16 != 0 || before > most)
			ring_break(r, "its ring's head is nowhere near what was written");
		most = MAX(before, r->position) + ring_longest_queue(r);
	}
	if (before >= r->position)
		ring_break(r, "its ring's head advances without end");
}

bool ring_jump(struct ring *r)
{
	uint64_t last = ring_limit(r), run;

	if (r->position < last)
		return false;
	find_free_run(r, last, r->position, &run);
	if (run == 0)
		return false;
	ring_set_room(r, 0);
	move_head(r, last, &run);
	/*
	 * No thread writes beyond the limit; threads that reserved there wait, and will try again.
	 * (Without a jump they may still get room there.)
	 */
	ring_forget_range(r, last, UINT64_MAX);
	ring_set_tail(r, r->position);
	ring_set_room(r, run);
	r->jumps++;
	return true;
}
