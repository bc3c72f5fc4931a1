/*
 * Reads the ring; see ring.h for the picture and arch/pad.h for the records.
 */
#include "target/ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

#define PUBLISH_STEPS 16

void ring_init(struct ring *r, struct pad_memory *memory, const struct arch *arch)
{
	*r = (struct ring){ .memory = memory, .arch = arch };
	r->position = r->published = memory->control->tail;
	r->room = memory->ring_size;
}

void ring_deinit(struct ring *r)
{
	for (size_t i = 0; i < r->mirror_count; i++)
		free(r->mirror[i].frame);
	free(r->mirror);
	free(r->late);
}

static const uint8_t *at(const struct ring *r, uint64_t position)
{
	return r->memory->base + r->memory->ring + (position & (r->memory->ring_size - 1));
}

/* The mark at @position, or 0 when none was committed there. */
static uint64_t committed_mark(const struct ring *r, uint64_t position)
{
	uint64_t mark =
		__atomic_load_n((const uint64_t *)(const void *)at(r, position), __ATOMIC_ACQUIRE);
	uint64_t expected = pad_mark(position, r->memory->control->key, 0);

	return mark >> 24 == expected >> 24 ? mark : 0;
}

uint64_t ring_pending(const struct ring *r)
{
	return __atomic_load_n(&r->memory->control->head, __ATOMIC_ACQUIRE) - r->position;
}

static void set_tail(struct ring *r, uint64_t tail)
{
	r->published = tail;
	__atomic_store_n(&r->memory->control->tail, tail, __ATOMIC_RELEASE);
}

static void set_room(struct ring *r, uint64_t room)
{
	r->room = room;
	__atomic_store_n(&r->memory->control->room, room, __ATOMIC_RELEASE);
}

/* Once no hole is left the whole ring can be used again. */
static void end_jumps(struct ring *r)
{
	if (r->late_count > 0)
		return;
	set_tail(r, r->position);
	set_room(r, r->memory->ring_size);
}

uint8_t *ring_save_holes(const struct ring *r)
{
	size_t size = 0;
	for (size_t i = 0; i < r->late_count; i++)
		size += r->late[i].end - r->late[i].start;
	uint8_t *saved = xmalloc(size + 1), *p = saved;
	for (size_t i = 0; i < r->late_count; i++) {
		const struct ring_gap *gap = &r->late[i];
		memcpy(p, at(r, gap->start), gap->end - gap->start);
		p += gap->end - gap->start;
	}
	return saved;
}

void ring_put_holes(struct ring *r, const uint8_t *saved)
{
	for (size_t i = 0; i < r->late_count; i++) {
		const struct ring_gap *gap = &r->late[i];
		uint8_t *to = r->memory->base + r->memory->ring +
			      (gap->start & (r->memory->ring_size - 1));
		memcpy(to, saved, gap->end - gap->start);
		saved += gap->end - gap->start;
		/* committed by another thread meanwhile: not in the copy, which has one thread */
		for (uint64_t p = gap->start; p < gap->end; p += 16, to += 16) {
			if (committed_mark(r, p))
				memset(to, 0, sizeof(uint64_t));
		}
	}
}

void ring_publish(struct ring *r)
{
	uint64_t tail = r->position;

	if (r->room < r->memory->ring_size) {
		end_jumps(r);
		return;
	}
	for (size_t i = 0; i < r->late_count; i++)
		tail = MIN(tail, r->late[i].start);
	if (tail != r->published)
		set_tail(r, tail);
}

bool ring_has_room(const struct ring *r)
{
	return ring_pending(r) + r->position - r->published < r->room / 2;
}

__attribute__((noinline)) static void add_mirrors(struct ring *r, uint32_t slot)
{
	size_t count = slot + 1 + slot / 2;
	r->mirror = xrealloc(r->mirror, count, sizeof(*r->mirror));
	memset(r->mirror + r->mirror_count, 0, (count - r->mirror_count) * sizeof(*r->mirror));
	r->mirror_count = count;
}

static inline struct ring_mirror *get_mirror(struct ring *r, uint32_t slot)
{
	if (slot >= r->mirror_count)
		add_mirrors(r, slot);
	return &r->mirror[slot];
}

void ring_reset_slot(struct ring *r, uint32_t slot)
{
	struct ring_mirror *m = get_mirror(r, slot);
	m->count = 0;
	m->has_node = false;
	m->is_new_to_sink = false;
}

void ring_fork(struct ring *r, const struct ring *parent, uint32_t slot)
{
	*r = (struct ring){
		.arch = parent->arch,
		.position = parent->position,
		.published = parent->published,
		.room = parent->room,
		.late_count = parent->late_count,
		.late_capacity = parent->late_count,
	};
	if (r->late_count)
		r->late = xmemdup(parent->late, r->late_count * sizeof(*r->late));
	struct ring_mirror *m = get_mirror(r, slot);
	if (slot >= parent->mirror_count || parent->mirror[slot].count == 0)
		return;
	m->count = m->capacity = parent->mirror[slot].count;
	m->frame = xmemdup(parent->mirror[slot].frame, m->count * sizeof(*m->frame));
	m->is_new_to_sink = true;
}

/* Takes the new return addresses into the slot's mirror, which then is the record's stack. */
static inline void read_stack(struct ring *r, const struct pad_record_block *block,
			      struct ring_record *record)
{
	struct ring_mirror *m = get_mirror(r, record->slot);
	const uint64_t *pc = (const uint64_t *)(const void *)(block + 1);

	CHECK(block->kept <= m->count);
	if (block->kept + block->fresh >= m->capacity)
		m->frame = xgrow(m->frame, &m->capacity, block->kept + block->fresh + 1u,
				 sizeof(*m->frame));
	for (uint32_t i = 0; i < block->fresh; i++)
		m->frame[block->kept + i] = pc[i] - 1;
	m->count = block->kept + block->fresh;
	m->has_node = false;
	record->has_stack = true;
	record->frame = m->frame;
	record->frame_count = (uint32_t)m->count;
	record->kept = m->is_new_to_sink ? 0 : (uint32_t)block->kept;
	m->is_new_to_sink = false;
}

/* The stack of the slot's last record. */
static inline void read_same_stack(struct ring *r, struct ring_record *record)
{
	struct ring_mirror *m = get_mirror(r, record->slot);

	record->has_stack = true;
	record->frame = m->frame;
	record->frame_count = (uint32_t)m->count;
	record->kept = m->is_new_to_sink ? 0 : record->frame_count;
	m->is_new_to_sink = false;
}

__attribute__((noinline)) static void read_raw(struct ring *r, const struct pad_record_block *block,
					       struct ring_record *record)
{
	const uint8_t *p = (const uint8_t *)(block + 1) + 8 * (size_t)block->fresh;

	_Static_assert(PAD_RAW_REGS == ARCH_DWARF_REGS,
		       "the recorder writes the unwinder's registers");
	record->regs = (const struct arch_unwind_regs *)(const void *)p;
	p += sizeof(*record->regs);
	record->has_raw = true;
	record->start = record->regs->reg[r->arch->dwarf_sp];
	record->stack = p;
	record->stack_size = block->raw;
	r->stats.raw++;
}

/* Decodes the record at @word, whose mark is @mark; returns its size. */
static uint32_t read_record(struct ring *r, const uint64_t *word, uint64_t mark,
			    struct ring_record *record)
{
	const struct pad_record_block *block = (const void *)word;
	uint8_t type = mark & 15;
	uint32_t flags = r->memory->control->flags, tail = flags & PAD_STACK_POINTER ? PAD_TAIL : 0;

	/* Not cleared as a whole: that would take longer than all the rest. */
	record->function = mark >> 4 & 15;
	record->slot = (uint16_t)(mark >> 8);
	record->has_stack = record->has_raw = false;
	record->old_addr = record->size = record->align = record->sp = 0;
	record->is_inner = type == PAD_RECORD_INNER_FREE;
	if (type == PAD_RECORD_SAME) {
		record->kind = HEAP_ALLOC;
		record->addr = word[1] / PAD_SAME_BYTES;
		record->size = word[1] % PAD_SAME_BYTES;
		if (!(flags & PAD_COUNT_ONLY))
			read_same_stack(r, record);
		if (tail)
			record->sp = word[2];
		return 16 + tail;
	}
	if (type == PAD_RECORD_FREE || type == PAD_RECORD_REALLOC_BEGIN || record->is_inner) {
		bool is_free = type != PAD_RECORD_REALLOC_BEGIN;
		record->kind = is_free ? HEAP_FREE : HEAP_REALLOC_BEGIN;
		record->addr = is_free ? word[1] : 0;
		record->old_addr = is_free ? 0 : word[1];
		if (tail)
			record->sp = word[2];
		return 16 + tail;
	}
	record->addr = block->result;
	record->size = block->bytes;
	if (type == PAD_RECORD_ALLOC) {
		record->kind = HEAP_ALLOC;
		record->align = block->align;
	} else {
		record->kind = HEAP_REALLOC_END;
		record->old_addr = block->align;
	}
	if (block->flags & PAD_HAS_STACK)
		read_stack(r, block, record);
	if (block->flags & PAD_HAS_RAW)
		read_raw(r, block, record);
	if (tail)
		memcpy(&record->sp, (const uint8_t *)block + block->size - tail,
		       sizeof(record->sp));
	return block->size;
}

static uint32_t deliver(struct ring *r, uint64_t position, uint64_t mark,
			const struct ring_reader *reader)
{
	struct ring_record record;
	uint32_t size = read_record(r, (const void *)at(r, position), mark, &record);

	r->stats.records++;
	r->stats.bytes += size;
	reader->record(reader->ctx, &record);
	return size;
}

/* A place within a gap. */
struct late_place {
	size_t gap;
	uint64_t position, mark;
};

/* The first committed record in the gaps before @end (NULL: in all). */
static bool find_late(const struct ring *r, const struct late_place *end, struct late_place *out)
{
	for (size_t i = 0; i < r->late_count; i++) {
		for (uint64_t p = r->late[i].start; p < r->late[i].end; p += 16) {
			if (end && i == end->gap && p == end->position)
				return false;
			uint64_t mark = committed_mark(r, p);
			if (mark) {
				*out = (struct late_place){ i, p, mark };
				return true;
			}
		}
	}
	return false;
}

/* Takes [@start, @end) out of gap @i. */
static void close_gap(struct ring *r, size_t i, uint64_t start, uint64_t end)
{
	struct ring_gap *gap = &r->late[i], rest = { end, gap->end };

	gap->end = start;
	if (rest.start < rest.end) {
		r->late = xgrow(r->late, &r->late_capacity, r->late_count + 1, sizeof(*r->late));
		memmove(&r->late[i + 2], &r->late[i + 1],
			(r->late_count - i - 1) * sizeof(*r->late));
		r->late[i + 1] = rest;
		r->late_count++;
		gap = &r->late[i];
	}
	if (gap->start >= gap->end) {
		memmove(gap, gap + 1, (r->late_count - i - 1) * sizeof(*gap));
		r->late_count--;
	}
}

/*
 * Delivers what was committed late. A thread's records must keep their order: once one
 * was seen, an earlier one of the same thread is committed, too, so look again for it.
 */
static size_t drain_late(struct ring *r, const struct ring_reader *reader)
{
	struct late_place place, earlier;
	size_t count = 0;

	while (r->late_count && find_late(r, NULL, &place)) {
		while (find_late(r, &place, &earlier))
			place = earlier;
		uint32_t size = deliver(r, place.position, place.mark, reader);
		close_gap(r, place.gap, place.position, place.position + size);
		count++;
	}
	return count;
}

/* -- quick events -- */

#define QUICK_BATCH 64

/* Quick events that were read and not yet handed on. */
struct batch {
	size_t count;
	struct quick_event event[QUICK_BATCH];
};

static void hand_on(struct batch *batch, const struct ring_reader *reader)
{
	if (batch->count == 0)
		return;
	reader->quick(reader->ctx, batch->event, batch->count);
	batch->count = 0;
}

/* The sink's node for the stack of the record at @word, which is new, or was not asked for yet. */
__attribute__((noinline)) static uint32_t find_node(struct ring *r,
						    const struct ring_reader *reader,
						    const uint64_t *word, uint64_t mark)
{
	struct ring_record record;

	read_record(r, word, mark, &record);
	struct ring_mirror *m = get_mirror(r, record.slot);
	m->node = reader->node(reader->ctx, &record);
	m->has_node = true;
	return m->node;
}

static inline bool is_quick_block(const struct pad_record_block *block,
				  const struct ring_reader *reader)
{
	return block->result && !block->align && !(block->flags & PAD_HAS_RAW) &&
	       (reader->is_counting || block->flags & PAD_HAS_STACK);
}

/* Whether the stack of @block is that of its thread's last record. */
static inline bool is_same(const struct pad_record_block *block, const struct ring_mirror *m)
{
	return block->fresh == 0 && block->kept == m->count;
}

/* Reads the record at @word if it is of the usual kinds: returns its size, else 0. */
static inline uint32_t read_quick(struct ring *r, const struct ring_reader *reader,
				  const uint64_t *word, uint64_t mark, struct quick_event *e)
{
	const struct pad_record_block *block = (const void *)word;
	const struct ring_mirror *m;

	e->function = mark >> 4 & 15;
	e->slot = (uint16_t)(mark >> 8);
	e->is_free = false;
	e->node = 0;
	if (e->function == FUNCTION_REQUEST) /* a block that may cover others */
		return 0;
	switch (mark & 15) {
	case PAD_RECORD_FREE:
		e->addr = word[1];
		e->is_free = true;
		return 16;
	case PAD_RECORD_SAME:
		e->addr = word[1] / PAD_SAME_BYTES;
		e->size = word[1] % PAD_SAME_BYTES;
		m = get_mirror(r, e->slot);
		if (!reader->is_counting)
			e->node = m->has_node ? m->node : find_node(r, reader, word, mark);
		return 16;
	case PAD_RECORD_ALLOC:
		if (!is_quick_block(block, reader))
			return 0;
		e->addr = block->result;
		e->size = block->bytes;
		m = get_mirror(r, e->slot);
		if (!reader->is_counting)
			e->node = m->has_node && is_same(block, m) ?
					  m->node :
					  find_node(r, reader, word, mark);
		return block->size;
	}
	return 0;
}

size_t ring_drain(struct ring *r, size_t max, const struct ring_reader *reader)
{
	const struct pad_memory *m = r->memory;
	const uint8_t *base = m->base + m->ring;
	uint64_t mask = m->ring_size - 1, step = m->ring_size / PUBLISH_STEPS,
		 key = pad_mark(0, m->control->key, 0);
	uint32_t tail = m->control->flags & PAD_STACK_POINTER ? PAD_TAIL : 0;
	size_t count = r->late_count ? drain_late(r, reader) : 0, first = count;
	uint64_t start = r->position;
	struct ring_record record;
	struct batch batch;

	batch.count = 0;
	while (count < max) {
		const uint64_t *word = (const void *)(base + (r->position & mask));
		uint64_t mark = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		if ((mark ^ key ^ pad_mark(r->position, 0, 0)) >> 24)
			break;
		if (r->late_count) { /* this thread's earlier ones, seen only now */
			hand_on(&batch, reader);
			size_t late = drain_late(r, reader);
			count += late;
			first += late;
		}
		struct quick_event *e = &batch.event[batch.count];
		uint32_t size = reader->quick ? read_quick(r, reader, word, mark, e) : 0;
		if (size) {
			if ((mark & 15) != PAD_RECORD_ALLOC)
				size += tail;
			e->sp = tail ? word[size / 8 - PAD_TAIL / 8] : 0;
			if (++batch.count == QUICK_BATCH)
				hand_on(&batch, reader);
		} else {
			hand_on(&batch, reader);
			size = read_record(r, word, mark, &record);
			reader->record(reader->ctx, &record);
		}
		r->position += size;
		count++;
		if (r->position - r->published >= step)
			ring_publish(r);
	}
	hand_on(&batch, reader);
	r->stats.records += count - first;
	r->stats.bytes += r->position - start;
	return count;
}

bool ring_has_hole(const struct ring *r)
{
	return ring_pending(r) > 0 && !committed_mark(r, r->position);
}

void ring_pass_hole(struct ring *r, bool is_dead)
{
	uint64_t head = r->position + ring_pending(r), p = r->position;

	while (p < head && !committed_mark(r, p))
		p += 16;
	if (p == r->position)
		return;
	if (is_dead) {
		r->stats.holes++;
	} else {
		r->late = xgrow(r->late, &r->late_capacity, r->late_count + 1, sizeof(*r->late));
		r->late[r->late_count++] = (struct ring_gap){ r->position, p };
	}
	r->position = p;
}

/* -- jumps -- */

void ring_forget_range(struct ring *r, uint64_t start, uint64_t end)
{
	for (size_t i = r->late_count; i-- > 0;) {
		const struct ring_gap *gap = &r->late[i];
		uint64_t from = MAX(start, gap->start), to = MIN(end, gap->end);
		if (from < to)
			close_gap(r, i, from, to);
	}
}

bool ring_is_left_out(const struct ring *r, uint64_t start)
{
	return start < r->published;
}

/* How far from position @start on nothing lies where a hole is. */
static uint64_t free_run(const struct ring *r, uint64_t start)
{
	uint64_t mask = r->memory->ring_size - 1, run = r->memory->ring_size;

	for (size_t i = 0; i < r->late_count; i++) {
		const struct ring_gap *gap = &r->late[i];
		if (((start - gap->start) & mask) < gap->end - gap->start)
			return 0;
		run = MIN(run, (gap->start - start) & mask);
	}
	return run;
}

bool ring_jump(struct ring *r)
{
	/* behind all that was reserved: its ends are then below the new tail */
	uint64_t mask = r->memory->ring_size - 1, first = r->position + 16, best = first, run;

	/*
	 * Nobody writes behind the limit: who reserved there waits, and will be told to try again.
	 */
	ring_forget_range(r, r->published + r->room, UINT64_MAX);
	run = free_run(r, best);
	for (size_t i = 0; i < r->late_count; i++) {
		uint64_t behind = first + ((r->late[i].end - first) & mask);
		if (free_run(r, behind) > run) {
			best = behind;
			run = free_run(r, behind);
		}
	}
	if (run == 0)
		return false;
	set_room(r, 0);
	r->position = best;
	__atomic_store_n(&r->memory->control->head, best, __ATOMIC_RELEASE);
	set_tail(r, best);
	set_room(r, run);
	r->jumps++;
	return true;
}
