/*
 * Decodes one record of the ring into an event. The program can write into the ring at any time, so
 * a record's fixed part is copied before it is examined, each number is checked, and results are
 * copies. Anything that no pad can have written breaks the ring.
 */
#ifndef PTMEM_TRACEE_PADS_RING_RECORD_H
#define PTMEM_TRACEE_PADS_RING_RECORD_H

#include "base/quick_event.h"
#include "tracee/pads/ring_stack.h"

/*
 * Receives the events. If there is `quick`, plain allocations and frees are passed to it in
 * batches, all others to `event`, in order. `node` then returns the sink's number for a new stack
 * (event: path, frame, frame_count, kept).
 *
 * Events have times (ring_dates.h), and the slot as their path; `event` adds the thread. A raw
 * stack (event.stack) has no read function. An event is valid during the call.
 */
struct ring_reader {
	void *ctx;
	void (*event)(void *ctx, struct heap_event *ev);
	void (*quick)(void *ctx, struct quick_event *event, size_t count); /* NULL = none */
	uint32_t (*node)(void *ctx, const struct heap_event *ev);
	bool is_counting;      /* stacks are not recorded */
};

/* A copy of a record's fixed part, since the ring may change at any time. */
union ring_header {
	struct pad_record_block block;
	uint64_t word[sizeof(struct pad_record_block) / sizeof(uint64_t)];
};

static inline void ring_load_header(const uint64_t *word, uint64_t mark, union ring_header *out)
{
	out->word[0] = mark;
	for (size_t i = 1; i < ARRAY_SIZE(out->word); i++)
		out->word[i] = ring_load(&word[i]);
}

/* The additional bytes of each record with PAD_STACK_POINTER. */
static inline uint32_t ring_tail_size(const struct ring *r)
{
	return r->memory->written.flags & PAD_STACK_POINTER ? PAD_TAIL : 0;
}

/* The size of @block according to its parts; 0 if its header has another one. */
static inline uint32_t ring_block_size(const struct ring *r, const struct pad_record_block *block)
{
	uint64_t size = sizeof(*block) + 8ull * block->fresh;

	if (block->flags & PAD_HAS_RAW)
		size += PAD_RAW_REGS * 8 + (uint64_t)block->raw;
	size = ROUND_UP(size, (uint64_t)16) + ring_tail_size(r);
	return size == block->size ? block->size : 0;
}

/*
 * Decodes the record at @word, whose mark is @mark, of slot @ev->path, if it fits in the @room
 * bytes there: returns its size. 0: it is corrupt, and the ring is broken now. Fields of @ev that
 * records do not have are not changed.
 */
uint32_t ring_read_record(struct ring *r, const uint64_t *word, uint64_t mark, uint64_t room,
			  struct heap_event *ev);

#endif
