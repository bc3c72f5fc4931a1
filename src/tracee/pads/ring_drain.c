/*
 * Reads the ring. Plain allocations and frees take a short way, in batches.
 */
#include "tracee/pads/ring_drain.h"

#include "tracee/pads/ring_deferred.h"
#include "tracee/pads/ring_stack.h"

#define PUBLISH_STEPS 16
#define QUICK_BATCH 256

/* Quick events that were read and not yet passed on. */
struct batch {
	size_t count;
	struct quick_event event[QUICK_BATCH];
};

static void pass_on(struct batch *batch, const struct ring_reader *reader)
{
	if (batch->count == 0)
		return;
	reader->quick(reader->ctx, batch->event, batch->count);
	batch->count = 0;
}

/* The sink's node for the stack of @ev, which is new, or was not asked for yet. */
static uint32_t ask_node(struct ring *r, const struct ring_reader *reader,
			 const struct heap_event *ev)
{
	struct ring_mirror *m = ring_mirror(r, ev->path);

	m->node = reader->node(reader->ctx, ev);
	m->has_node = true;
	return m->node;
}

/* The node of @block's stack, or, where it is NULL, of the last one of @slot. */
__attribute__((noinline)) static uint32_t find_node(struct ring *r,
						    const struct ring_reader *reader,
						    const uint64_t *word, uint16_t slot,
						    const struct pad_record_block *block)
{
	struct heap_event ev = { .kind = HEAP_ALLOC, .path = slot };

	if (block)
		ring_read_stack(r, word, block, &ev);
	else
		ring_read_same_stack(r, &ev);
	return ask_node(r, reader, &ev);
}

/* Whether @block is whole, and of the usual kind. */
static inline bool is_quick_block(const struct ring *r, const struct pad_record_block *block,
				  const struct ring_mirror *m, const struct ring_reader *reader)
{
	return block->result && !block->align &&
	       (block->flags == PAD_HAS_STACK ? ring_stack_fits(block, m) :
						reader->is_counting && block->flags == 0) &&
	       ring_block_size(r, block);
}

/* Whether the stack of @block is that of its thread's last record. */
static inline bool is_same(const struct pad_record_block *block, const struct ring_mirror *m)
{
	return block->fresh == 0 && block->kept == m->count;
}

/*
 * Reads the record at @word if it is of the usual kinds, and nothing is wrong with it: returns its
 * size, else 0.
 */
static inline uint32_t read_quick(struct ring *r, const struct ring_reader *reader,
				  const uint64_t *word, uint64_t mark, struct quick_event *e)
{
	union ring_header header;
	const struct pad_record_block *block = &header.block;
	const struct ring_mirror *m;
	uint64_t value;

	e->function = mark >> 4 & 15;
	e->slot = (uint16_t)(mark >> 8);
	e->is_free = false;
	e->node = 0;
	/* a request: a block that may cover others */
	if (e->function >= FUNCTION_REQUEST || e->slot >= r->memory->slots.used)
		return 0;
	switch (mark & 15) {
	case PAD_RECORD_FREE:
		e->addr = ring_load(&word[1]);
		e->is_free = true;
		return 16 + ring_tail_size(r);
	case PAD_RECORD_SAME:
		value = ring_load(&word[1]);
		e->addr = value / PAD_SAME_BYTES;
		e->size = value % PAD_SAME_BYTES;
		m = ring_mirror(r, e->slot);
		if (!reader->is_counting)
			e->node = m->has_node ? m->node : find_node(r, reader, word, e->slot, NULL);
		return 16 + ring_tail_size(r);
	case PAD_RECORD_ALLOC:
		ring_load_header(word, mark, &header);
		m = ring_mirror(r, e->slot);
		if (!is_quick_block(r, block, m, reader))
			return 0;
		e->addr = block->result;
		e->size = block->bytes;
		if (!reader->is_counting)
			e->node = m->has_node && is_same(block, m) ?
					  m->node :
					  find_node(r, reader, word, e->slot, block);
		return block->size;
	}
	return 0;
}

/*
 * Reads records of 16 bytes in a row into @batch, from the read position on and @most of them, up
 * to the first one that is of another kind: returns how many. Changes nothing else. Which of the
 * two kinds one is cannot be foreseen, so no branch depends on it.
 */
static size_t read_short(struct ring *r, const struct ring_reader *reader, size_t most,
			 struct batch *batch)
{
	_Static_assert((PAD_RECORD_SAME & 5) == 4 && (PAD_RECORD_FREE & 5) == 1,
		       "one bit says that it is a free, another that it is none");
	_Static_assert(PAD_SAME_BYTES == 1 << 16, "16 bits");
	const struct pad_memory *m = r->memory;
	const uint32_t kinds = 1u << PAD_RECORD_SAME | 1u << PAD_RECORD_FREE;
	const uint8_t *const ring = m->base + m->layout.ring;
	const uint64_t mask = m->layout.ring_size - 1, key = m->written.key;
	const struct ring_mirror *const mirrors = r->mirror;
	const uint32_t slots = (uint32_t)MIN(m->slots.used, r->mirror_count);
	/* all ones, or 0 where there are no stacks */
	const uint32_t nodes = reader->is_counting ? 0 : UINT32_MAX;
	struct quick_event *first = &batch->event[batch->count], *e = first;
	uint64_t position = r->position;

	for (const struct quick_event *end = first + most; e < end; e++, position += 16) {
		const uint64_t *word = (const void *)(ring + (position & mask));
		uint64_t expected = pad_mark(position, key, 0);
		uint64_t mark = __atomic_load_n(word, __ATOMIC_ACQUIRE) ^ expected;
		uint32_t type = mark & 15, slot = mark >> 8 & 0xffff;

		uint8_t function = mark >> 4 & 15;
		if (mark >> PAD_MARK_LOW || !(kinds >> type & 1) || function >= FUNCTION_REQUEST ||
		    slot >= slots)
			break;
		const struct ring_mirror *mirror = &mirrors[slot];
		if (!(mirror->has_node | (type & 1) | ~nodes))
			break;
		uint64_t value = ring_load(&word[1]);
		uint32_t is_block = type >> 2 & 1, bits = is_block << 4;
		*e = (struct quick_event){.addr = value >> bits,
					  .size = value & ((UINT64_C(1) << bits) - 1),
					  .node = mirror->node & -is_block & nodes,
					  .is_free = type & 1,
					  .function = function,
					  .slot = (uint16_t)slot};
	}
	return (size_t)(e - first);
}

/* A turn of reading. */
struct turn {
	struct ring *r;
	const struct ring_reader *reader;
	uint64_t step, publish_at; /* where the read position is published, and after it */
	uint64_t checked_end;  /* the deferred records that come before this are delivered */
	size_t most, count, late; /* records; late: that were deferred */
	struct batch batch;
};

/* Whether records that were deferred may have to be delivered before the next one. */
static inline bool must_check(const struct turn *t)
{
	return t->r->deferred_count && t->r->position >= t->checked_end;
}

static void add_late(struct turn *t, size_t late)
{
	t->late += late;
	t->count += late;
}

/* The next @n records are in the batch. */
static void add_short(struct turn *t, size_t n)
{
	t->r->position += n * 16;
	t->count += n;
	t->batch.count += n;
	if (t->batch.count == QUICK_BATCH)
		pass_on(&t->batch, t->reader);
}

/*
 * What was committed late comes before what is committed now: so it is searched for after the next
 * records were read, and before they count. Where there is some they are read once more.
 */
static void check_deferred(struct turn *t, size_t most)
{
	struct ring *r = t->r;

	pass_on(&t->batch, t->reader);
	size_t n = read_short(r, t->reader, MIN(most, QUICK_BATCH), &t->batch);
	if (n == 0)
		return; /* nothing was seen to be committed that the search could come after */
	t->checked_end = r->position + n * 16;
	size_t late = ring_drain_deferred(r, t->reader);
	add_late(t, late);
	if (late == 0)
		add_short(t, n);
}

/* Reads what there is of short records up to where something else is to be done. */
static void read_row(struct turn *t)
{
	const struct ring *r = t->r;
	uint64_t end = MIN(ring_limit(r), t->publish_at);
	uint64_t records = end > r->position ? (end - r->position) / 16 : 0;

	if (ring_tail_size(r) || !t->reader->quick)
		return;
	records = MIN(records, t->most - t->count);
	if (must_check(t)) {
		check_deferred(t, records);
		return;
	}
	if (r->deferred_count)
		records = MIN(records, (t->checked_end - r->position + 15) / 16);
	records = MIN(records, QUICK_BATCH - t->batch.count);
	add_short(t, read_short(t->r, t->reader, records, &t->batch));
}

/* Reads the next record, of any kind; false: there is none. */
static bool read_any(struct turn *t)
{
	struct ring *r = t->r;
	uint64_t mark = ring_committed_mark(r, r->position), room = ring_limit(r) - r->position;
	const uint64_t *word = (const void *)ring_at(r, r->position);
	struct quick_event *e = &t->batch.event[t->batch.count];
	uint32_t tail = ring_tail_size(r);

	if (!mark || room > r->memory->layout.ring_size)
		return false;
	if (must_check(t)) {
		pass_on(&t->batch, t->reader);
		add_late(t, ring_drain_deferred_before(r, t->reader, &t->checked_end));
		return true;
	}
	uint32_t size = t->reader->quick ? read_quick(r, t->reader, word, mark, e) : 0;
	if (size && size <= room) {
		e->sp = tail ? ring_load(&word[(size - PAD_TAIL) / sizeof(*word)]) : 0;
		if (++t->batch.count == QUICK_BATCH)
			pass_on(&t->batch, t->reader);
	} else {
		struct heap_event ev = {.time_ns = t->reader->time_ns};
		pass_on(&t->batch, t->reader);
		size = ring_read_record(r, word, mark, room, &ev);
		if (!size)
			return false;
		t->reader->event(t->reader->ctx, &ev);
	}
	r->position += size;
	t->count++;
	return true;
}

size_t ring_drain(struct ring *r, size_t max, const struct ring_reader *reader)
{
	uint64_t start = r->position;
	struct turn t;

	t.r = r;
	t.reader = reader;
	t.step = r->memory->layout.ring_size / PUBLISH_STEPS;
	t.publish_at = r->published + t.step;
	t.checked_end = 0;
	t.most = max;
	t.late = t.count = r->deferred_count ? ring_drain_deferred(r, reader) : 0;
	t.batch.count = 0;
	while (t.count < max && !r->broken) {
		uint64_t before = r->position;
		read_row(&t);
		if (r->position == before && !read_any(&t))
			break;
		if (r->position >= t.publish_at) {
			ring_publish(r);
			t.publish_at = r->position + t.step;
		}
	}
	pass_on(&t.batch, reader);
	r->stats.records += t.count - t.late;
	r->stats.bytes += r->position - start;
	return t.count;
}
