/* Deferred records, as ranges in ascending order. */
#include "tracee/pads/ring_deferred.h"

#include <string.h>

#include "base/alloc.h"

/*
 * Each thread may have one unfinished record, and a few are lost when a signal handler leaves a pad
 * by longjmp. More would make searches slow.
 */
#define MAX_LOST 1024u

/* Number of records in one search. */
#define BATCH 256

/* A position within a deferred range. */
struct place {
	size_t range;
	uint64_t position, mark;
};

/*
 * The first committed record in the deferred ranges before @end (NULL: in all). Ranges may extend
 * beyond the limit, where waiting threads have reserved and written nothing.
 */
static bool find_committed(const struct ring *r, const struct place *end, struct place *out)
{
	for (size_t i = 0; i < r->deferred_count; i++) {
		uint64_t last = MIN(r->deferred[i].end, ring_limit(r));
		for (uint64_t p = r->deferred[i].start; p < last; p += 16) {
			if (end && i == end->range && p == end->position)
				return false;
			uint64_t mark = ring_committed_mark(r, p);
			if (mark) {
				*out = (struct place){ i, p, mark };
				return true;
			}
		}
	}
	return false;
}

static void grow(struct ring *r)
{
	r->deferred = xgrow(r->deferred, &r->deferred_capacity, r->deferred_count + 1,
			    sizeof(*r->deferred));
}

static void add_range(struct ring *r, uint64_t start, uint64_t end)
{
	if (r->deferred_count >= r->memory->slots.count + MAX_LOST) {
		ring_break(r, "its ring has more unfinished records than there are threads");
		return;
	}
	grow(r);
	r->deferred[r->deferred_count++] = (struct ring_range){ start, end };
}

/* Removes [@start, @end) from range @i. */
static void cut_range(struct ring *r, size_t i, uint64_t start, uint64_t end)
{
	struct ring_range *range = &r->deferred[i], rest = { end, range->end };

	range->end = start;
	if (rest.start < rest.end) {
		grow(r);
		memmove(&r->deferred[i + 2], &r->deferred[i + 1],
			(r->deferred_count - i - 1) * sizeof(*r->deferred));
		r->deferred[i + 1] = rest;
		r->deferred_count++;
		range = &r->deferred[i];
	}
	if (range->start >= range->end) {
		memmove(range, range + 1, (r->deferred_count - i - 1) * sizeof(*range));
		r->deferred_count--;
	}
}

void ring_forget_range(struct ring *r, uint64_t start, uint64_t end)
{
	for (size_t i = r->deferred_count; i-- > 0;) {
		const struct ring_range *range = &r->deferred[i];
		uint64_t from = MAX(start, range->start), to = MIN(end, range->end);
		if (from < to)
			cut_range(r, i, from, to);
	}
}

bool ring_has_uncommitted(struct ring *r)
{
	return ring_pending(r) > 0 && !ring_committed_mark(r, r->position);
}

void ring_pass_uncommitted(struct ring *r, bool is_dead)
{
	uint64_t head = r->position + ring_pending(r), p = r->position;

	while (p < head && p < ring_limit(r) && !ring_committed_mark(r, p))
		p += 16;
	if (p >= ring_limit(r))
		p = head; /* the threads that reserved there are waiting */
	if (p == r->position)
		return;
	if (is_dead)
		r->stats.lost++;
	else
		add_range(r, r->position, p);
	r->position = p;
}

/* Returns the size of the record at @place, 0 if it is corrupt. */
static uint32_t deliver(struct ring *r, const struct place *place, const struct ring_reader *reader)
{
	struct heap_event ev = { .time_ns = reader->time_ns };
	uint64_t room = r->deferred[place->range].end - place->position;
	const void *word = ring_at(r, place->position);
	uint32_t size = ring_read_record(r, word, place->mark, room, &ev);

	if (!size)
		return 0;
	r->stats.records++;
	r->stats.bytes += size;
	reader->event(reader->ctx, &ev);
	return size;
}

/*
 * The order of a thread's records must be kept: once one was found, an earlier one of the same
 * thread is committed, too, so the search is repeated before it.
 */
size_t ring_drain_deferred(struct ring *r, const struct ring_reader *reader)
{
	struct place place, earlier;
	size_t count = 0;

	while (r->deferred_count && find_committed(r, NULL, &place)) {
		while (find_committed(r, &place, &earlier))
			place = earlier;
		uint32_t size = deliver(r, &place, reader);
		if (!size)
			break;
		cut_range(r, place.range, place.position, place.position + size);
		count++;
	}
	return count;
}

/*
 * The end of the committed records from the read position on, at most BATCH of them. An invalid
 * size ends the search: ring_read_record() reads it again.
 */
static uint64_t find_committed_end(const struct ring *r)
{
	uint32_t tail = ring_tail_size(r);
	uint64_t p = r->position, mark;

	for (int n = 0; n < BATCH && (mark = ring_committed_mark(r, p)) != 0; n++) {
		const struct pad_record_block *block = (const void *)ring_at(r, p);
		uint8_t type = mark & 15;
		bool has_size = type == PAD_RECORD_ALLOC || type == PAD_RECORD_REALLOC_END;
		uint32_t size =
			has_size ? __atomic_load_n(&block->size, __ATOMIC_RELAXED) : 16 + tail;
		if (size == 0 || size % 16 || size > r->memory->layout.ring_size)
			break;
		p += size;
	}
	return p;
}

size_t ring_drain_deferred_before(struct ring *r, const struct ring_reader *reader,
				  uint64_t *end_out)
{
	*end_out = MAX(find_committed_end(r), r->position + 1);
	return ring_drain_deferred(r, reader);
}
