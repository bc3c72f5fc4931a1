/*
 * Decodes records of all kinds.
 */
#include "tracee/pads/ring_record.h"

#include <string.h>

#include "base/alloc.h"

#include "tracee/pads/ring_stack.h"

/* The unwinder reads words more than once, so it gets a copy. */
static void read_raw(struct ring *r, const uint64_t *word, const struct pad_record_block *block,
		     struct heap_event *ev)
{
	const uint64_t *from = word + sizeof(*block) / sizeof(*word) + block->fresh;

	_Static_assert(PAD_RAW_REGS * sizeof(uint64_t) == sizeof(r->view.regs),
		       "the recorder writes the unwinder's registers");
	r->raw = xgrow(r->raw, &r->raw_capacity, block->raw + 1ul, 1);
	r->view = (struct stack_view){ .data = r->raw, .size = block->raw };
	memcpy(&r->view.regs, from, sizeof(r->view.regs));
	memcpy(r->raw, from + PAD_RAW_REGS, block->raw);
	r->view.start = r->view.regs.reg[r->arch->dwarf_sp];
	ev->stack = &r->view;
	r->stats.raw++;
}

/* A record of a single block: returns its size, 0 if it is corrupt. */
static uint32_t read_short(struct ring *r, const uint64_t *word, uint8_t type, uint64_t room,
			   struct heap_event *ev)
{
	uint32_t size = 16 + ring_tail_size(r);
	uint64_t value = ring_load(&word[1]);

	if (size > room) {
		ring_break(r, "a record is larger than its room");
		return 0;
	}
	ev->addr = value;
	if (type == PAD_RECORD_SAME) {
		ev->kind = HEAP_ALLOC;
		ev->addr = value / PAD_SAME_BYTES;
		ev->size = value % PAD_SAME_BYTES;
		if (!(r->memory->written.flags & PAD_COUNT_ONLY))
			ring_read_same_stack(r, ev);
	} else if (type == PAD_RECORD_REALLOC_BEGIN || type == PAD_RECORD_REALLOC_MAYBE) {
		ev->is_inner = type == PAD_RECORD_REALLOC_MAYBE;
		ev->kind = HEAP_REALLOC_BEGIN;
		ev->addr = 0;
		ev->old_addr = value;
	} else {
		ev->kind = HEAP_FREE;
		ev->is_inner = type == PAD_RECORD_INNER_FREE;
	}
	if (ring_tail_size(r))
		ev->sp = ring_load(&word[2]);
	return size;
}

static uint32_t sample_shift(const struct pad_record_block *block)
{
	return (uint32_t)block->flags >> PAD_FLAGS_SHIFT;
}

/* Why @block cannot have been written by a pad into @room bytes; NULL = it can. */
static const char *find_fault(struct ring *r, const struct pad_record_block *block, uint32_t slot,
			      uint64_t room)
{
	uint32_t has = block->flags & (PAD_HAS_STACK | PAD_HAS_RAW), shift = sample_shift(block);

	if (block->flags != (has | shift << PAD_FLAGS_SHIFT) ||
	    shift > r->memory->written.shift_max ||
	    (has == (PAD_HAS_STACK | PAD_HAS_RAW) && !(r->memory->written.flags & PAD_VERIFY)))
		return "a record has impossible flags";
	if (!ring_block_size(r, block) || block->size > room)
		return "a record's size is not that of its parts";
	if (block->flags & PAD_HAS_STACK && !ring_stack_fits(block, ring_mirror(r, slot)))
		return "a record's stack does not continue the one before it";
	return NULL;
}

/* An allocation, or the end of a realloc. */
static uint32_t read_block(struct ring *r, const uint64_t *word, uint64_t mark, uint64_t room,
			   struct heap_event *ev)
{
	union ring_header header;
	const struct pad_record_block *block = &header.block;
	const char *fault = "a record is larger than its room";

	if (room >= sizeof(header)) {
		ring_load_header(word, mark, &header);
		fault = find_fault(r, block, ev->path, room);
	}
	if (fault) {
		ring_break(r, fault);
		return 0;
	}
	ev->addr = block->result;
	ev->size = block->bytes;
	ev->sample_shift = (uint8_t)sample_shift(block);
	if ((mark & 15) == PAD_RECORD_ALLOC) {
		ev->kind = HEAP_ALLOC;
		ev->align = block->align;
	} else {
		ev->kind = HEAP_REALLOC_END;
		ev->old_addr = block->align;
	}
	if (block->flags & PAD_HAS_STACK)
		ring_read_stack(r, word, block, ev);
	if (block->flags & PAD_HAS_RAW)
		read_raw(r, word, block, ev);
	if (ring_tail_size(r))
		ev->sp = ring_load(&word[(block->size - PAD_TAIL) / sizeof(*word)]);
	return block->size;
}

uint32_t ring_read_record(struct ring *r, const uint64_t *word, uint64_t mark, uint64_t room,
			  struct heap_event *ev)
{
	uint8_t type = mark & 15;

	/* Not cleared completely: that would take longer than all the rest. */
	ev->function = mark >> 4 & 15;
	ev->frame = NULL;
	ev->stack = NULL;
	ev->old_addr = ev->size = ev->align = ev->sp = 0;
	ev->is_inner = false;
	ev->sample_shift = 0;
	switch (type) {
	case PAD_RECORD_ALLOC:
	case PAD_RECORD_REALLOC_END:
		return read_block(r, word, mark, room, ev);
	case PAD_RECORD_FREE:
	case PAD_RECORD_INNER_FREE:
	case PAD_RECORD_REALLOC_BEGIN:
	case PAD_RECORD_REALLOC_MAYBE:
	case PAD_RECORD_SAME:
		return read_short(r, word, type, room, ev);
	}
	ring_break(r, "a record of an unknown kind");
	return 0;
}
