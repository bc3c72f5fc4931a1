/*
 * Reads the ring. Plain allocations and frees take a short way, in batches.
 */
#include "tracee/pads/ring_drain.h"

#include "tracee/pads/ring_deferred.h"
#include "tracee/pads/ring_stack.h"

#define PUBLISH_STEPS 16
#define QUICK_BATCH 64

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

size_t ring_drain(struct ring *r, size_t max, const struct ring_reader *reader)
{
	const struct pad_memory *m = r->memory;
	const uint8_t *base = m->base + m->layout.ring;
	uint64_t mask = m->layout.ring_size - 1, step = m->layout.ring_size / PUBLISH_STEPS;
	uint64_t key = m->written.key;
	uint32_t tail = ring_tail_size(r);
	size_t count = r->deferred_count ? ring_drain_deferred(r, reader) : 0, first = count;
	/* after it they have to be searched again */
	uint64_t start = r->position, deferred_end = 0;
	struct heap_event ev = { .time_ns = reader->time_ns };
	struct batch batch;

	batch.count = 0;
	while (count < max && !r->broken) {
		const uint64_t *word = (const void *)(base + (r->position & mask));
		uint64_t mark = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		uint64_t room = ring_limit(r) - r->position;
		if ((mark ^ key ^ pad_mark(r->position, 0, 0)) >> PAD_MARK_LOW ||
		    room > m->layout.ring_size)
			break;
		if (r->deferred_count && r->position >= deferred_end) {
			pass_on(&batch, reader);
			size_t late = ring_drain_deferred_before(r, reader, &deferred_end);
			count += late;
			first += late;
		}
		struct quick_event *e = &batch.event[batch.count];
		uint32_t size = reader->quick ? read_quick(r, reader, word, mark, e) : 0;
		if (size && size <= room) {
			e->sp = tail ? ring_load(&word[(size - PAD_TAIL) / sizeof(*word)]) : 0;
			if (++batch.count == QUICK_BATCH)
				pass_on(&batch, reader);
		} else {
			pass_on(&batch, reader);
			size = ring_read_record(r, word, mark, room, &ev);
			if (!size)
				break;
			reader->event(reader->ctx, &ev);
		}
		r->position += size;
		count++;
		if (r->position - r->published >= step)
			ring_publish(r);
	}
	pass_on(&batch, reader);
	r->stats.records += count - first;
	r->stats.bytes += r->position - start;
	return count;
}
