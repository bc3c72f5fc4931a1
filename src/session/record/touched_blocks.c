/*
 * See touched_blocks.h.
 *
 * A measurement is written when the next one is due, or when the block is resized or released. By
 * then the events that came before it have been seen: if one of them released the block, what was
 * measured belonged to another.
 */
#include "session/record/touched_blocks.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "profile/events.h"
#include "session/run.h"
#include "session/session.h"
#include "tracee/os/pagemap.h"

#define LEAST_SIZE (UINT64_C(128) << 10) /* smaller ones share pages that others have touched */
#define INTERVAL_NS UINT64_C(50000000)
#define SHARE 20 /* at most 1/20 of the time is spent on it */

struct touched_block {
	taddr_t addr;
	uint64_t size;
	uint64_t measured, measured_ns; /* bytes, at most size; and when, 0: not yet */
	bool is_written;                /* what was measured is in the file */
};

struct touched_blocks {
	HASH(struct touched_block) block;
	uint64_t next_ns;
};

struct touched_blocks *touched_blocks_new(const struct session *s)
{
	if (!s->events.writer || !s->space || s->heap.sample.interval)
		return NULL;
	events_writer_touch_size(s->events.writer, LEAST_SIZE);
	return xcalloc(1, sizeof(struct touched_blocks));
}

void touched_blocks_free(struct touched_blocks *t)
{
	if (t)
		hash_deinit(&t->block);
	free(t);
}

/* -- measurements -- */

struct block_span {
	taddr_t start, end;
	uint64_t bytes;
};

static void add_pages(void *ctx, taddr_t start, taddr_t end)
{
	struct block_span *s = ctx;

	start = MAX(start, s->start);
	end = MIN(end, s->end);
	s->bytes += end > start ? end - start : 0;
}

static void measure(struct present *p, struct touched_block *b, uint64_t now_ns)
{
	struct block_span s = {.start = b->addr, .end = b->addr + b->size};
	taddr_t start = b->addr / PAGE_SIZE_MIN * PAGE_SIZE_MIN;
	taddr_t end = (s.end + PAGE_SIZE_MIN - 1) / PAGE_SIZE_MIN * PAGE_SIZE_MIN;

	if (s.end < s.start || end < s.end)
		return;
	present_find(p, start, end, add_pages, &s);
	if (b->measured_ns && s.bytes <= b->measured)
		return;
	b->is_written = false;
	b->measured = s.bytes;
	b->measured_ns = now_ns;
}

static void write_measured(struct session *s, struct touched_block *b)
{
	if (b->measured_ns && !b->is_written)
		events_writer_touched(s->events.writer, b->addr, b->measured);
	b->is_written = true;
}

/* Those that are wholly touched need no further measurement. */
static void measure_all(struct session *s, uint64_t now_ns)
{
	struct touched_blocks *t = s->events.touched;
	struct present present;

	if (!t->block.index.count)
		return;
	present_open(s->space->processes.reader, true, &present);
	for (size_t i = 0; present.pagemap >= 0 && hash_next(&t->block.index, &i); i++) {
		struct touched_block *b = &t->block.slot[i];

		write_measured(s, b);
		if (b->measured < b->size)
			measure(&present, b, now_ns);
	}
	present_close(&present);
}

uint64_t touched_blocks_tick(struct run *run, uint64_t now_ns)
{
	if (!run->options->files.events)
		return UINT64_MAX;
	uint64_t next = now_ns + INTERVAL_NS;

	for (size_t i = 0; i < run->sessions.count; i++) {
		struct session *s = run->sessions.data[i];
		struct touched_blocks *t = s->events.touched;

		if (!t || !s->space)
			continue;
		if (now_ns >= t->next_ns) {
			uint64_t start_ns = clock_now_ns();

			measure_all(s, start_ns);
			uint64_t end_ns = clock_now_ns();

			t->next_ns = end_ns + MAX(INTERVAL_NS, SHARE * (end_ns - start_ns));
		}
	}
	return next;
}

void touched_blocks_end(struct session *s)
{
	struct touched_blocks *t = s->events.touched;

	if (!t || !s->space)
		return;
	measure_all(s, clock_now_ns());
	for (size_t i = 0; hash_next(&t->block.index, &i); i++)
		write_measured(s, &t->block.slot[i]);
}

/* -- events -- */

static void forget(struct session *s, taddr_t addr, uint64_t time_ns)
{
	struct touched_blocks *t = s->events.touched;

	if (!t->block.index.count)
		return;
	struct touched_block *b = hash_find(&t->block, hash_u64(addr), e, e->addr == addr);

	if (!b)
		return;
	if (b->measured_ns <= time_ns)
		write_measured(s, b);
	hash_remove(&t->block, b);
}

static void remember(struct session *s, const struct event *ev)
{
	struct touched_blocks *t = s->events.touched;

	forget(s, ev->addr, 0);
	if (ev->addr && ev->size >= LEAST_SIZE)
		*hash_add(&t->block, hash_u64(ev->addr)) =
			(struct touched_block){.addr = ev->addr, .size = ev->size};
}

void touched_blocks_event(struct session *s, const struct event *ev)
{
	if (!s->events.touched)
		return;
	if (ev->kind == EVENT_FREE)
		forget(s, ev->addr, ev->time_ns);
	else if (ev->kind == EVENT_REALLOC_BEGIN)
		forget(s, ev->old_addr, ev->time_ns);
	else if (ev->kind == EVENT_ALLOC || ev->kind == EVENT_REALLOC_END ||
		 ev->kind == EVENT_EARLIER)
		remember(s, ev);
}
