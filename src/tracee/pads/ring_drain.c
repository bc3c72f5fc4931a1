/*
 * Decodes records of all kinds.
 */
#include "tracee/pads/ring.h"

#include <string.h>

#include "base/alloc.h"
#include "tracee/os/cpu_counters.h"

/* The unwinder reads words more than once, so it gets a copy. */
static void read_raw(struct ring *r, const uint64_t *word, const struct pad_record_block *block,
		     struct heap_event *ev)
{
	const uint64_t *from = word + sizeof(*block) / sizeof(*word) + block->fresh;

	_Static_assert(PAD_RAW_REGS * sizeof(uint64_t) == sizeof(r->view.regs),
		       "the recorder writes the unwinder's registers");
	r->raw = xgrow(r->raw, &r->raw_capacity, block->raw + 1ul, 1);
	r->view = (struct stack_view){ .data = r->raw, .size = block->raw, .is_past = true };
	memcpy(&r->view.regs, from, sizeof(r->view.regs));
	memcpy(r->raw, from + PAD_RAW_REGS, block->raw);
	r->view.start = r->view.regs.reg[r->arch->dwarf_sp];
	ev->stack = &r->view;
	r->stats.raw++;
}

/* A record of a single block: returns its size, 0 if it is corrupt. */
static uint32_t decode_short(struct ring *r, const uint64_t *word, uint8_t type, uint64_t room,
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
	uint32_t shift = sample_shift(block);
	uint32_t has = block->flags & (PAD_HAS_STACK | PAD_HAS_RAW | PAD_HAS_VIRTUAL);
	uint32_t guesses = block->flags & PAD_HAS_GUESSES;

	if (block->flags != (has | guesses | shift << PAD_FLAGS_SHIFT) ||
	    (guesses && (!(has & PAD_HAS_STACK) || has & PAD_HAS_VIRTUAL)) ||
	    shift > r->memory->written.shift_max ||
	    (has == (PAD_HAS_STACK | PAD_HAS_RAW) && !(r->memory->written.flags & PAD_VERIFY)) ||
	    (has & PAD_HAS_VIRTUAL && has != (PAD_HAS_VIRTUAL | PAD_HAS_STACK)))
		return "a record has impossible flags";
	if (!ring_block_size(r, block) || block->size > room)
		return "a record's size is not that of its parts";
	if (block->flags & PAD_HAS_STACK && !ring_stack_fits(r, block, ring_mirror(r, slot)))
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

/* A part of a list, which is no event: returns its size, or 0. */
static uint32_t read_list_part(struct ring *r, uint32_t slot, const uint64_t *word, uint64_t room)
{
	struct pad_record_list list;
	uint64_t header[sizeof(list) / sizeof(*word)] = {0};

	for (size_t i = 0; i < ARRAY_SIZE(header) && room >= sizeof(header); i++)
		header[i] = ring_load(&word[i]);
	memcpy(&list, header, sizeof(list));
	uint64_t frames = ring_listed_frames(r, &list);

	if (list.size > room || list.size % 16 || frames > PAD_MAX_LISTED ||
	    !ring_list_fits(ring_mirror(r, slot), list.kept, frames)) {
		ring_break(r, "a list does not continue the one before it");
		return 0;
	}
	ring_read_list(r, slot, word, &list);
	return list.size;
}

/* The value of a label, which is no event: returns its size, or 0. */
static uint32_t read_label(struct ring *r, uint32_t slot, const uint64_t *word, uint64_t room)
{
	struct pad_record_label record;
	uint64_t header[sizeof(record) / sizeof(*word)] = {0};

	for (size_t i = 0; i < ARRAY_SIZE(header) && room >= sizeof(header); i++)
		header[i] = ring_load(&word[i]);
	memcpy(&record, header, sizeof(record));
	uint32_t state = record.state & ~(uint32_t)PAD_LABEL_OF_CALL;
	uint64_t words = (record.bytes + 7u) / 8 + (record.state & PAD_LABEL_OF_CALL ? 2 : 0);
	uint64_t size = ROUND_UP(sizeof(record) + 8 * words, (uint64_t)16) + ring_tail_size(r);

	if (record.size > room || record.size != size || record.bytes > PAD_LABEL_BYTES ||
	    record.label >= PAD_LABELS || state >= PAD_LABEL_STATES ||
	    (record.bytes && state != PAD_LABEL_PRESENT)) {
		ring_break(r, "a record of a label that cannot be");
		return 0;
	}
	ring_read_label(r, slot, word, &record);
	return record.size;
}

/*
 * Decodes the record at @word, whose mark is @mark, of slot @ev->path, if it fits in the @room
 * bytes there: returns its size. 0: it is corrupt, and the ring is broken now. Fields of @ev that
 * records do not have are not changed.
 */
static uint32_t ring_read_record(struct ring *r, const uint64_t *word, uint64_t mark, uint64_t room,
				 struct heap_event *ev)
{
	uint8_t type = mark & 15;

	/* Not cleared completely: that would take longer than all the rest. */
	ev->function = mark >> 4 & 15;
	ev->frame = NULL;
	ev->guess_count = 0;
	ev->list = NULL;
	ev->list_count = ev->list_kept = 0;
	ev->stack = NULL;
	ev->old_addr = ev->size = ev->align = ev->sp = 0;
	ev->is_inner = false;
	ev->sample_shift = 0;
	ring_pass_labels(ring_mirror(r, ev->path), ev);
	switch (type) {
	case PAD_RECORD_ALLOC:
	case PAD_RECORD_REALLOC_END:
		return read_block(r, word, mark, room, ev);
	case PAD_RECORD_FREE:
	case PAD_RECORD_INNER_FREE:
	case PAD_RECORD_REALLOC_BEGIN:
	case PAD_RECORD_REALLOC_MAYBE:
	case PAD_RECORD_SAME:
		return decode_short(r, word, type, room, ev);
	}
	ring_break(r, "a record of an unknown kind");
	return 0;
}

/*
 * Reads the rings in the order of numbers.
 *
 * Nearly all records are plain allocations and frees. They are read ring by ring, and each goes to
 * the place in an array that its number says, a window of numbers at a time: so nothing has to be
 * compared, and no branch depends on which thread came next. All others are read when their turn
 * has come.
 */

#define PUBLISH_STEPS 16
#define WINDOW 512

/* A turn of reading. */
struct turn {
	struct ring *r;
	const struct ring_reader *reader;
	size_t count;            /* records delivered */
	size_t active;           /* how many rings have records: r->active */
	uint64_t first, span;    /* the window: its first number, and how many */
	/* slots whose next record is in the window, and is to be read by itself */
	uint32_t blocked[WINDOW];
	size_t blocked_count;
	uint8_t has_event[WINDOW];
	struct quick_event event[WINDOW];
};

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
	       ((block->flags & ~PAD_HAS_VIRTUAL) == PAD_HAS_STACK ? ring_stack_fits(r, block, m) :
						reader->is_counting && block->flags == 0) &&
	       ring_block_size(r, block);
}

/* Whether the stack of @block is that of its thread's last record. */
static inline bool is_same(const struct ring *r, const struct pad_record_block *block,
			   const struct ring_mirror *m)
{
	uint64_t listed = block->flags & PAD_HAS_VIRTUAL ? block->raw : 0;

	return block->fresh == 0 && block->kept == m->count && listed == m->listed &&
	       !(block->flags & PAD_HAS_VIRTUAL && ring_list_size(r, block));
}

/*
 * Reads the record of e->slot at @word, with @room bytes, if it is of the usual kinds, and nothing
 * is wrong with it: returns its size, else 0.
 */
static uint32_t read_quick(struct turn *t, const uint64_t *word, uint64_t mark, uint64_t room,
			   struct quick_event *e)
{
	struct ring *r = t->r;
	const struct ring_reader *reader = t->reader;
	const uint32_t short_size = 16 + ring_tail_size(r);
	union ring_header header;
	const struct pad_record_block *block = &header.block;
	const struct ring_mirror *m;
	uint64_t value;

	e->function = mark >> 4 & 15;
	e->is_free = false;
	e->node = 0;
	/* a request: a block that may cover others */
	if (e->function >= FUNCTION_REQUEST || room < short_size)
		return 0;
	switch (mark & 15) {
	case PAD_RECORD_FREE:
		e->addr = ring_load(&word[1]);
		e->is_free = true;
		return short_size;
	case PAD_RECORD_SAME:
		value = ring_load(&word[1]);
		e->addr = value / PAD_SAME_BYTES;
		e->size = value % PAD_SAME_BYTES;
		m = ring_mirror(r, e->slot);
		if (!reader->is_counting)
			e->node = m->has_node ? m->node : find_node(r, reader, word, e->slot, NULL);
		return short_size;
	case PAD_RECORD_ALLOC:
		if (room < sizeof(header))
			return 0;
		ring_load_header(word, mark, &header);
		m = ring_mirror(r, e->slot);
		if (!is_quick_block(r, block, m, reader) || block->size > room)
			return 0;
		e->addr = block->result;
		e->size = block->bytes;
		if (!reader->is_counting)
			e->node = m->has_node && is_same(r, block, m) ?
					  m->node :
					  find_node(r, reader, word, e->slot, block);
		return block->size;
	}
	return 0;
}

/*
 * Reads the shortest records in a row to their places in the window, up to the first one of another
 * kind, or the end of the ring, or of the line that dates them. Which of the two kinds one is
 * cannot be foreseen, so no branch depends on it.
 */
static void read_short(struct turn *t, uint32_t slot)
{
	_Static_assert((PAD_RECORD_SAME & 5) == 4 && (PAD_RECORD_FREE & 5) == 1,
		       "one bit says that it is a free, another that it is none");
	_Static_assert(PAD_SAME_BYTES == 1 << 16, "16 bits");
	const struct ring_mirror *mirror = ring_mirror(t->r, slot);
	struct ring_source *s = &t->r->source[slot];
	const struct ring_line *line = ring_line_at(t->r, slot, s->position, s->next);
	_Static_assert(PAD_TAIL == 16, "records of 16 or 32 bytes");
	const uint32_t tail = ring_tail_size(t->r), step_bits = tail ? 5 : 4;
	const uint32_t step = 1u << step_bits;
	const uint64_t stop = MIN(s->head, (s->position | s->mask) + 1);
	const uint64_t first = t->first, span = t->span;
	const uint64_t until = MIN(stop - s->position, line->end - s->position);
	const uint64_t whole = (stop - s->position) >> step_bits, start_ns = line->start.ns;
	const uint64_t coarse = line->coarse;
	const uint64_t *word = ring_word(s), *start = word;
	const uint64_t records = MIN((until + step - 1) >> step_bits, whole);
	const uint64_t *behind = word + records * (step / sizeof(*word));
	/* all ones, or 0 where there are no stacks */
	const uint32_t nodes = t->reader->is_counting ? 0 : UINT32_MAX, node = mirror->node & nodes;
	const uint32_t kinds = 1u << PAD_RECORD_FREE |
			       (mirror->has_node || !nodes ? 1u << PAD_RECORD_SAME : 0);
	uint64_t least = MAX(s->last + 1, first) - first;
	uint64_t run = (s->position - line->start.at) * line->slope, slope = step * line->slope;

	for (; word < behind; run += slope, word += step / sizeof(*word)) {
		uint64_t mark = ring_load(word), value = ring_load(&word[1]);
		uint64_t i = (mark >> PAD_MARK_LOW) - first;
		uint32_t type = mark & 15;
		uint8_t function = mark >> 4 & 15;

		if (i - least >= span - least || !(kinds >> type & 1) ||
		    function >= FUNCTION_REQUEST)
			break;
		uint64_t block = -(uint64_t)(type >> 2 & 1);
		t->has_event[i] = 1;
		t->event[i] = (struct quick_event){
			.time_ns = start_ns + (run >> RING_SLOPE_SHIFT),
			.addr = block ? value >> 16 : value,
			.size = value & (PAD_SAME_BYTES - 1) & block,
			.sp = tail ? ring_load(&word[2]) : 0,
			.node_alone = node & block,
			.kind = quick_kind(type & 1, function, (uint16_t)slot)};
		least = i + 1;
	}
	if (word != start) {
		s->last = first + least - 1;
		s->dates.now_ns = start_ns + ((run - slope) >> RING_SLOPE_SHIFT);
	}
	uint64_t size = (uint64_t)(word - start) * sizeof(*word);
	t->r->stats.bytes += size;
	t->r->stats.coarse += coarse * (size >> step_bits);
	s->position += size;
}

/* Sets s->next of @slot. */
static void find_next(struct ring *r, uint32_t slot)
{
	struct ring_source *s = &r->source[slot];

	s->next = RING_NO_NUMBER;
	while (s->position < s->head) {
		const uint64_t *word = ring_word(s);
		uint64_t mark = ring_load(word);
		if (mark == PAD_RECORD_TIME) {
			s->position += PAD_TIME_SIZE;
			ring_dates_pass(r, slot, s->position, ring_load(&word[1]));
		} else if (mark == PAD_RECORD_CLOCK) {
			s->position += PAD_TIME_SIZE;
			ring_dates_pass_word(r, slot, s->position, ring_load(&word[1]));
		} else if (mark == PAD_RECORD_FILL) {
			s->position = (s->position | s->mask) + 1;
		} else {
			s->next = mark >> PAD_MARK_LOW;
			break;
		}
	}
	if (s->position > s->head || s->next <= s->last) {
		ring_break(r, "a ring's records are not in order");
		s->next = RING_NO_NUMBER;
		s->head = s->position;
	}
}

/* How many bytes a record at the position can have. */
static uint64_t room_at(const struct ring_source *s)
{
	return MIN(s->head - s->position, s->mask + 1 - (s->position & s->mask));
}

/* The record at the position is delivered. */
static void step_over(struct ring *r, uint32_t slot, uint32_t size)
{
	struct ring_source *s = &r->source[slot];

	r->stats.bytes += size;
	r->stats.coarse += s->dates.line.coarse;
	s->position += size;
	s->last = s->next;
	find_next(r, slot);
}

/* Reads the next record of @slot to @e if it is of the usual kinds; returns its size, or 0. */
static uint32_t read_plain(struct turn *t, uint32_t slot, struct quick_event *e)
{
	const struct ring_source *s = &t->r->source[slot];
	const uint64_t *word = ring_word(s);
	uint64_t mark = ring_load(word), room = room_at(s);
	uint32_t tail = ring_tail_size(t->r);

	*e = (struct quick_event){.slot = (uint16_t)slot, .time_ns = ring_date(t->r, slot)};
	if (!t->reader->quick || mark >> PAD_MARK_LOW != s->next)
		return 0;
	uint32_t size = read_quick(t, word, mark, room, e);
	if (!size)
		return 0;
	e->sp = tail ? ring_load(&word[(size - PAD_TAIL) / sizeof(*word)]) : 0;
	return size;
}

/* The next record of @slot is to be read by itself. There is at most one for each number. */
static void block(struct turn *t, uint32_t slot)
{
	if (t->blocked_count == WINDOW)
		ring_break(t->r, "several of its records have the same number");
	else
		t->blocked[t->blocked_count++] = slot;
}

/* Reads what is in the window of @slot, up to the first record that has to be read by itself. */
static void read_window(struct turn *t, uint32_t slot)
{
	struct ring *r = t->r;
	struct quick_event e;

	while (r->source[slot].next - t->first < t->span) {
		uint64_t before = r->source[slot].position;
		if (t->reader->quick)
			read_short(t, slot);
		if (r->source[slot].position != before) {
			find_next(r, slot);
			continue;
		}
		uint32_t size = read_plain(t, slot, &e);
		if (!size) {
			block(t, slot);
			return;
		}
		t->has_event[r->source[slot].next - t->first] = 1;
		t->event[r->source[slot].next - t->first] = e;
		step_over(r, slot, size);
	}
}

/*
 * The events of all threads never go back in time. So where the date of one is later than it was,
 * those of others that follow it are as inexact.
 */
static void note_order(struct ring *r, const struct quick_event *event, size_t count)
{
	if (!ring_lacks_ticks(r))
		return;
	for (size_t i = 0; i < count; i++) {
		uint64_t ns = event[i].time_ns;
		r->stats.coarse += ns + RING_COARSE_NS < r->latest_ns;
		r->latest_ns = MAX(r->latest_ns, ns);
	}
}

/* Delivers the next record of @slot by itself. */
static void deliver_one(struct turn *t, uint32_t slot)
{
	struct ring *r = t->r;
	const struct ring_source *s = &r->source[slot];
	const uint64_t *word = ring_word(s);
	struct quick_event e;
	uint32_t size = read_plain(t, slot, &e);

	note_order(r, &e, 1);
	if (size) {
		t->reader->quick(t->reader->ctx, &e, 1);
	} else if ((ring_load(word) & 15) == PAD_RECORD_LIST) {
		size = read_list_part(r, slot, word, room_at(s));
		if (!size)
			return;
	} else if ((ring_load(word) & 15) == PAD_RECORD_LABEL) {
		size = read_label(r, slot, word, room_at(s));
		if (!size)
			return;
	} else {
		struct heap_event ev = {.time_ns = e.time_ns, .path = slot};
		size = ring_read_record(r, word, ring_load(word), room_at(s), &ev);
		if (!size)
			return;
		t->reader->event(t->reader->ctx, &ev);
	}
	t->count++;
	step_over(r, slot, size);
}

/* Delivers the events of the window from @start up to @end. */
static void pass_on(struct turn *t, size_t start, size_t end)
{
	size_t n = start;

	if (start >= end)
		return;
	if (!memchr(&t->has_event[start], 0, end - start))
		n = end;
	else
		for (size_t i = start; i < end; i++) {
			if (t->has_event[i])
				t->event[n++] = t->event[i];
		}
	if (n == start)
		return;
	note_order(t->r, &t->event[start], n - start);
	t->reader->quick(t->reader->ctx, &t->event[start], n - start);
	t->count += n - start;
}

/* Takes the slot with the lowest next number from the blocked ones. */
static uint32_t take_first_blocked(struct turn *t)
{
	size_t first = 0;

	for (size_t i = 1; i < t->blocked_count; i++) {
		if (t->r->source[t->blocked[i]].next < t->r->source[t->blocked[first]].next)
			first = i;
	}
	uint32_t slot = t->blocked[first];
	t->blocked[first] = t->blocked[--t->blocked_count];
	return slot;
}

/* Delivers the records of the next window. */
static void deliver_window(struct turn *t)
{
	struct ring *r = t->r;
	uint64_t least = r->next_number;
	size_t done = 0;

	t->first = r->number;
	t->span = MIN(r->next_number - r->number, (uint64_t)WINDOW);
	t->blocked_count = 0;
	memset(t->has_event, 0, t->span);
	for (size_t i = 0; i < t->active && !r->broken; i++)
		read_window(t, r->active[i]);
	while (t->blocked_count > 0 && !r->broken) {
		uint32_t slot = take_first_blocked(t);
		size_t at = r->source[slot].next - t->first;
		pass_on(t, done, at);
		done = MAX(done, at + 1);
		deliver_one(t, slot);
		read_window(t, slot);
	}
	pass_on(t, done, t->span);
	for (size_t i = 0; i < t->active; i++) {
		const struct ring_source *s = &r->source[r->active[i]];
		least = MIN(least, s->next);
		if (s->position - s->published > s->mask / PUBLISH_STEPS)
			ring_publish_slot(r, r->active[i]);
	}
	r->number = MAX(t->first + t->span, least);
}

/* The thread of @slot may be asleep: its next record shall have a stamp before it. */
static void ask_for_stamp(struct ring *r, uint32_t slot)
{
	struct pad_ring *shared = pad_memory_ring(r->memory, slot);

	if (r->source[slot].is_asked)
		return;
	r->source[slot].is_asked = true;
	__atomic_store_n(&shared->seen_ticks, ring_dates_seen(r, slot), __ATOMIC_RELAXED);
	__atomic_store_n(&shared->soft_limit, 0, __ATOMIC_RELEASE);
}

/*
 * Asks threads that wrote nothing while their rings were read: if the reader took their CPU, the
 * pause that they will notice began when it looked.
 */
static void ask_at_end(struct turn *t)
{
	struct ring *r = t->r;
	uint64_t before = tick_clock_now(r->clock);

	for (size_t i = 0; i < t->active && !r->broken; i++) {
		uint32_t slot = r->active[i];
		struct ring_source *s = &r->source[slot];
		if (s->position != s->head || ring_head(r, slot) != s->head)
			continue;
		ring_dates_turn(r, slot, before, before);
		ask_for_stamp(r, slot);
	}
}

/* Finds the rings that have records. @asked: of words alone, when the numbers were not read yet. */
static void begin(struct turn *t, uint64_t asked)
{
	struct ring *r = t->r;
	uint32_t used = r->memory->slots.used;

	t->active = 0;
	r->active = xgrow(r->active, &r->active_capacity, used + 1ul, sizeof(*r->active));
	/*
	 * A record may get its number long before it is complete, and then it must not be later
	 * than those of other threads with higher numbers.
	 */
	uint64_t before = asked ? asked : tick_clock_now(r->clock);
	for (uint32_t i = 0; i < used && !r->broken; i++) {
		uint64_t head = ring_head(r, i);
		r->source[i].head = head;
	}
	uint64_t after = tick_clock_now(r->clock);
	for (uint32_t i = 0; i < used && !r->broken; i++) {
		struct ring_source *s = &r->source[i];
		ring_dates_turn(r, i, before, after);
		if (s->head == s->position) {
			ask_for_stamp(r, i);
			continue;
		}
		s->is_asked = false;
		find_next(r, i);
		r->active[t->active++] = i;
	}
}

/* Delivers the records whose numbers were passed in an earlier turn. */
static void deliver_late(struct turn *t)
{
	struct ring *r = t->r;

	while (!r->broken) {
		uint64_t least = r->number;
		uint32_t slot = 0;
		for (size_t i = 0; i < t->active; i++) {
			if (r->source[r->active[i]].next < least) {
				slot = r->active[i];
				least = r->source[slot].next;
			}
		}
		if (least == r->number)
			return;
		deliver_one(t, slot);
		r->stats.late++;
	}
}

size_t ring_drain(struct ring *r, size_t max, const struct ring_reader *reader)
{
	uint64_t asked = r->word_clock ? tick_clock_now(r->clock) : 0;
	struct turn t;

	t.r = r;
	t.reader = reader;
	t.count = 0;
	ring_pending(r); /* before the heads */
	if (r->broken)
		return 0;
	if (reader->before)
		reader->before(reader->ctx, r->number < r->announced_number);
	r->announced_number = r->next_number;
	begin(&t, asked);
	deliver_late(&t);
	while (t.count < max && r->number < r->next_number && !r->broken)
		deliver_window(&t);
	if (t.count < max && !r->word_clock)
		ask_at_end(&t);
	r->stats.records += t.count;
	return t.count;
}
