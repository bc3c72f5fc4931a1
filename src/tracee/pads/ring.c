/*
 * The mirrors of the slots' last stacks.
 */
#include "tracee/pads/ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/types.h"
#include "tracee/os/cpu_counters.h"
#include "tracee/pads/pad_clock.h"

struct ring_mirror *ring_add_mirror(struct ring *r, uint32_t slot)
{
	size_t count = slot + 1 + slot / 2;

	r->mirror = xrealloc(r->mirror, count, sizeof(*r->mirror));
	memset(r->mirror + r->mirror_count, 0, (count - r->mirror_count) * sizeof(*r->mirror));
	r->mirror_count = count;
	return &r->mirror[slot];
}

static void ring_free_mirrors(struct ring *r)
{
	for (size_t i = 0; i < r->mirror_count; i++) {
		free(r->mirror[i].frame);
		free(r->mirror[i].list);
		free(r->mirror[i].label);
	}
	free(r->mirror);
}

void ring_reset_slot(struct ring *r, uint32_t slot)
{
	struct ring_mirror *m = ring_mirror(r, slot);

	m->count = m->listed = m->list_passed = 0;
	m->has_node = false;
	m->is_new_to_sink = false;
	if (m->label)
		memset(m->label, 0, PAD_LABELS * sizeof(*m->label));
	m->label_changes++;
}

void ring_pass_labels(const struct ring_mirror *m, struct heap_event *ev)
{
	static const struct pad_label_value none[PAD_LABELS];

	ev->label = m->label ? m->label : none;
	ev->label_changes = m->label_changes;
}

void ring_read_label(struct ring *r, uint32_t slot, const uint64_t *word,
		     const struct pad_record_label *record)
{
	struct ring_mirror *m = ring_mirror(r, slot);

	if (!m->label)
		m->label = xcalloc(PAD_LABELS, sizeof(*m->label));
	struct pad_label_value *v = &m->label[record->label];

	const uint64_t *from = word + sizeof(*record) / sizeof(*word);
	uint32_t state = record->state & ~(uint32_t)PAD_LABEL_OF_CALL;

	*v = (struct pad_label_value){.state = state, .size = record->bytes};
	for (uint32_t i = 0; i < pad_label_words(v); i++)
		v->word[i] = ring_load(from++);
	if (record->state & PAD_LABEL_OF_CALL) {
		v->sp = ring_load(from++);
		v->return_pc = ring_load(from);
	}
	m->label_changes++;
	m->has_node = false;
}

void ring_set_labels(struct ring *r, uint32_t slot, const struct pad_label_value *label)
{
	struct ring_mirror *m = ring_mirror(r, slot);

	if (!m->label)
		m->label = xcalloc(PAD_LABELS, sizeof(*m->label));
	for (uint32_t i = 0; i < PAD_LABELS; i++)
		if (label[i].size <= PAD_LABEL_BYTES && label[i].state < PAD_LABEL_STATES)
			m->label[i] = label[i];
	m->label_changes++;
}

/* The list of a record: the first @kept frames are as before, @fresh others are at @frame. */
static void read_list(struct ring_mirror *m, const uint64_t *frame, uint32_t kept, uint32_t fresh)
{
	if (kept + fresh >= m->list_capacity)
		m->list = xgrow(m->list, &m->list_capacity, kept + fresh + 1u, sizeof(*m->list));
	for (uint32_t i = 0; i < fresh; i++)
		m->list[kept + i] = (struct pad_listed_frame){ring_load(&frame[2 * i]),
							      ring_load(&frame[2 * i + 1])};
	m->listed = kept + fresh;
	m->list_passed = MIN(m->list_passed, (size_t)kept);
}

void ring_read_list(struct ring *r, uint32_t slot, const uint64_t *word,
		    const struct pad_record_list *record)
{
	struct ring_mirror *m = ring_mirror(r, slot);

	read_list(m, word + sizeof(*record) / sizeof(*word), record->kept,
		  (uint32_t)ring_listed_frames(r, record));
	m->has_node = false;
}

/* The list of the event, which the sink then has. */
static void pass_list(struct ring_mirror *m, struct heap_event *ev)
{
	ev->list = m->list;
	ev->list_count = (uint32_t)m->listed;
	ev->list_kept = m->is_new_to_sink ? 0 : (uint32_t)m->list_passed;
	m->list_passed = m->listed;
}

void ring_forget_nodes(struct ring *r)
{
	for (size_t i = 0; i < r->mirror_count; i++) {
		r->mirror[i].has_node = false;
		r->mirror[i].is_new_to_sink = true;
	}
}

/* Which of the frames, whose addresses are marked, were left by a guess. */
static void read_guesses(struct ring *r, struct ring_mirror *m,
			 const struct pad_record_block *block, struct heap_event *ev)
{
	r->guess.count = 0;
	for (uint32_t i = block->kept; i < m->count; i++) {
		uint64_t pc = m->frame[i] + 1;

		if (!(pc & PAD_GUESSED))
			continue;
		m->frame[i] = (pc & ~PAD_GUESSED) - 1;
		*vec_add(&r->guess) = i;
	}
	m->kept = r->guess.count ? r->guess.data[0] : m->count;
	ev->guess = r->guess.data;
	ev->guess_count = (uint32_t)r->guess.count;
}

void ring_read_stack(struct ring *r, const uint64_t *word, const struct pad_record_block *block,
		     struct heap_event *ev)
{
	struct ring_mirror *m = ring_mirror(r, ev->path);
	const uint64_t *pc = word + sizeof(*block) / sizeof(*word);

	if (block->kept + block->fresh >= m->capacity)
		m->frame = xgrow(m->frame, &m->capacity, block->kept + block->fresh + 1u,
				 sizeof(*m->frame));
	for (uint32_t i = 0; i < block->fresh; i++)
		m->frame[block->kept + i] = ring_load(&pc[i]) - 1;
	m->count = block->kept + block->fresh;
	if (block->flags & PAD_HAS_GUESSES)
		read_guesses(r, m, block, ev);

	if (block->flags & PAD_HAS_VIRTUAL)
		read_list(m, pc + block->fresh, block->raw, ring_list_size(r, block));
	else
		m->listed = m->list_passed = 0;
	m->has_node = false;
	pass_list(m, ev);
	ev->frame = m->frame;
	ev->frame_count = (uint32_t)m->count;
	ev->kept = m->is_new_to_sink ? 0 : block->kept;
	ring_pass_labels(m, ev);
	m->is_new_to_sink = false;
	if (block->flags & PAD_HAS_GUESSES)
		m->count = m->kept;
}

void ring_read_same_stack(struct ring *r, struct heap_event *ev)
{
	struct ring_mirror *m = ring_mirror(r, ev->path);

	ev->frame = m->frame;
	ev->frame_count = (uint32_t)m->count;
	ev->kept = m->is_new_to_sink ? 0 : ev->frame_count;
	pass_list(m, ev);
	ring_pass_labels(m, ev);
	m->is_new_to_sink = false;
}

/* Lines from stamps and turns. */

#define TIME_MAX (UINT64_C(1) << 24) /* ns of a slope: times a ring of records it fits in 64 bits */

void ring_dates_turn(struct ring *r, uint32_t slot, uint64_t before, uint64_t after)
{
	struct ring_source *s = &r->source[slot];
	struct ring_dates *d = &s->dates;
	struct ring_turn *last = d->turns ? &d->turn[d->turns - 1] : NULL;

	d->line.end = 0;
	if (last && last->head == s->head) {
		last->number = r->next_number;
		last->not_yet_ns = before;
		return;
	}
	if (d->turns == RING_TURNS)
		memmove(d->turn, d->turn + 1, --d->turns * sizeof(*d->turn));
	d->turn[d->turns++] = (struct ring_turn){s->head, r->next_number, after, before};
}

uint64_t ring_dates_seen(const struct ring *r, uint32_t slot)
{
	const struct ring_dates *d = &r->source[slot].dates;
	uint64_t ns = d->turn[d->turns - 1].there_ns, last = r->clock->last.ns;

	return r->clock->last.ticks + tick_clock_ticks(r->clock, MAX(ns, last) - last) -
	       tick_clock_ticks(r->clock, last - MIN(ns, last));
}

/* @ns over @bytes. */
static uint64_t slope_of(uint64_t ns, uint64_t bytes)
{
	return bytes ? (MIN(ns, TIME_MAX) << RING_SLOPE_SHIFT) / bytes : 0;
}

void ring_dates_pass(struct ring *r, uint32_t slot, uint64_t end, uint64_t ticks)
{
	struct ring_dates *d = &r->source[slot].dates;
	uint64_t ns = tick_clock_ns(r->clock, ticks);

	if (d->last.at && ns > d->last.ns && ns - d->last.ns <= RING_GAP_NS)
		d->rate = slope_of(ns - d->last.ns, end - PAD_TIME_SIZE - d->last.at);
	d->last = (struct ring_stamp){end, ns};
	d->last_end = 0;
	d->line.end = 0;
}

#define PRINTED_NS 100000u /* times are printed in tenths of a millisecond */

uint64_t ring_stats_error(const struct ring_stats *stats)
{
	uint64_t steps = (stats->coarse_ns + PRINTED_NS - 1) / PRINTED_NS;

	return stats->coarse > stats->records / 100 ? steps * PRINTED_NS : 0;
}

#define WORD_PAUSE_NS (3 * PAD_CLOCK_NS) /* words of a busy thread are closer */
#define WORD_BUSY_BYTES 1024u            /* it writes more between two */

void ring_dates_pass_word(struct ring *r, uint32_t slot, uint64_t end, uint64_t ns)
{
	struct ring_dates *d = &r->source[slot].dates;
	uint64_t bytes = end - PAD_TIME_SIZE - d->last.at, before = d->last.ns;
	bool is_close = d->last_end && ns > before && ns - before < WORD_PAUSE_NS;

	if (is_close)
		d->rate = slope_of(ns - before, bytes);
	d->is_busy = is_close && bytes >= WORD_BUSY_BYTES;
	d->last = (struct ring_stamp){end, ns};
	d->last_end = r->word_clock ? pad_clock_end(r->word_clock, ns) : UINT64_MAX;
	d->line.end = 0;
}

/*
 * The turns around the record at @position: before.ns, when it did not exist yet, and after->ns,
 * when it did; 0 = unknown. A head right behind the last stamp says nothing: a stamp is written
 * when its record is about to follow. Nor does one at a record that had its number.
 */
static void find_turns(const struct ring_dates *d, uint64_t position, uint64_t number,
		       struct ring_stamp *before, struct ring_stamp *after)
{
	uint32_t i = d->turns;

	*before = *after = (struct ring_stamp){0};
	while (i > 0 && d->turn[i - 1].head > position)
		i--;
	if (i < d->turns)
		*after = (struct ring_stamp){d->turn[i].head, d->turn[i].there_ns};
	for (; i > 0 && (!d->last.at || d->turn[i - 1].head > d->last.at); i--) {
		const struct ring_turn *t = &d->turn[i - 1];
		if (t->number > number)
			continue;
		*before = (struct ring_stamp){t->head, t->not_yet_ns};
		return;
	}
}

static uint64_t run_of(uint64_t slope, uint64_t bytes)
{
	return bytes * slope >> RING_SLOPE_SHIFT;
}

#define GAIN_MAX (UINT64_C(1) << (63 - RING_SLOPE_SHIFT)) /* 39 hours */

/* How many bytes a line with @slope takes to gain @ns. */
static uint64_t bytes_until(uint64_t slope, uint64_t ns)
{
	return slope && ns < GAIN_MAX ? (ns << RING_SLOPE_SHIFT) / slope + 1 : UINT32_MAX;
}

#define AHEAD_NS (RING_GAP_NS / 10)

/*
 * Sets the line for @position to a piece of @line. Dates do not precede the last one, nor exceed
 * @most_ns: where @line does, the piece is level. Where the last one is only a little later than
 * @line, the whole of @line continues from there less steeply: each piece costs time.
 */
static void draw(struct ring_dates *d, uint64_t position, struct ring_line line, uint64_t most_ns)
{
	uint64_t least = d->now_ns, most = MAX(most_ns, least), end = line.end;
	uint64_t ns = line.start.ns + run_of(line.slope, position - line.start.at);

	if (ns < least && least < most && least - ns < AHEAD_NS && line.slope) {
		line.start = (struct ring_stamp){position, least};
		line.slope -= line.slope / 4;
		end = position + bytes_until(line.slope, most - least);
	} else if (ns >= least && ns < most) {
		end = line.start.at + bytes_until(line.slope, most - line.start.ns);
	} else {
		if (ns < least)
			end = line.start.at + bytes_until(line.slope, least - line.start.ns);
		if (ns + RING_COARSE_NS < least) /* as inexact as the last one */
			line.coarse = 1;
		line.start = (struct ring_stamp){position, MIN(MAX(ns, least), most)};
		line.slope = 0;
	}
	line.end = MIN(line.end, MAX(end, position + 1));
	d->line = line;
}

static void place(struct ring *r, struct ring_dates *d, uint64_t position, uint64_t number)
{
	struct ring_stamp before, after, from = d->last;
	uint64_t most, gap;

	find_turns(d, position, number, &before, &after);
	most = after.ns;
	if (!d->last.at) { /* between the turns */
		from = before.ns ? before : (struct ring_stamp){position, after.ns};
		d->rate = slope_of(after.ns - MIN(from.ns, after.ns), after.at - from.at);
	} else {
		if (before.ns > d->last.ns)
			from = (struct ring_stamp){position, before.ns};
		most = MIN(d->last_end ? d->last_end : from.ns + RING_GAP_NS / 2, after.ns);
	}
	gap = MAX(most, from.ns) - from.ns;
	bool is_flat = d->last_end && !d->is_busy && gap < WORD_PAUSE_NS;
	bool has_start = d->last.at || before.ns;
	uint64_t error = has_start ? gap : MAX(most, r->started_ns) - r->started_ns;
	bool is_coarse = error > RING_COARSE_NS && ring_lacks_ticks(r);

	if (is_coarse)
		r->stats.coarse_ns = MAX(r->stats.coarse_ns, error);
	if (is_flat)
		from = (struct ring_stamp){position, from.ns + gap / 2};
	draw(d, position, (struct ring_line){from, is_flat ? 0 : d->rate, after.at, is_coarse},
	     most);
}

const struct ring_line *ring_line_at(struct ring *r, uint32_t slot, uint64_t position,
				     uint64_t number)
{
	struct ring_dates *d = &r->source[slot].dates;

	if (position >= d->line.end)
		place(r, d, position, number);
	return &d->line;
}

uint64_t ring_date(struct ring *r, uint32_t slot)
{
	const struct ring_source *s = &r->source[slot];
	struct ring_dates *d = &r->source[slot].dates;
	const struct ring_line *line = ring_line_at(r, slot, s->position, s->next);

	d->now_ns = line->start.ns + run_of(line->slope, s->position - line->start.at);
	return d->now_ns;
}

/* The positions of the rings' reader. */

void ring_init(struct ring *r, struct pad_memory *memory, const struct arch *arch,
	       struct tick_clock *clock)
{
	*r = (struct ring){
		.memory = memory, .arch = arch, .clock = clock, .number = 1, .next_number = 1,
		.started_ns = clock_now_ns()};
}

void ring_deinit(struct ring *r)
{
	ring_free_mirrors(r);
	free(r->source);
	free(r->active);
	free(r->raw);
	vec_deinit(&r->guess);
}

void ring_break(struct ring *r, const char *why)
{
	if (r->broken)
		return;
	r->broken = why;
	/* from now on pads record nothing, and threads do not wait for room */
	pad_memory_set_off(r->memory, true);
}

struct ring_source *ring_source(struct ring *r, uint32_t slot)
{
	for (; r->source_count <= slot; r->source_count++) {
		uint32_t i = (uint32_t)r->source_count;
		r->source = xgrow(r->source, &r->source_capacity, i + 1ul, sizeof(*r->source));
		r->source[i] = (struct ring_source){
			.bytes = pad_memory_ring_bytes(r->memory, i),
			.mask = pad_memory_ring_size(r->memory, i) - 1,
		};
	}
	return &r->source[slot];
}

uint64_t ring_head(struct ring *r, uint32_t slot)
{
	const struct ring_source *s = ring_source(r, slot);
	uint64_t head = __atomic_load_n(&pad_memory_ring(r->memory, slot)->head, __ATOMIC_ACQUIRE);

	if (head - s->published <= s->mask + 1 && head >= s->position && head % 16 == 0)
		return head;
	ring_break(r, "a ring's head is nowhere near what was written");
	return s->position;
}

#define NUMBER_MAX (1ull << (64 - PAD_MARK_LOW))

uint64_t ring_pending(struct ring *r)
{
	uint64_t next = __atomic_load_n(&r->memory->control->next_number, __ATOMIC_ACQUIRE);

	if (r->broken)
		return 0;
	if (next < r->next_number || next >= NUMBER_MAX) {
		ring_break(r, "the numbers of its records go back");
		return 0;
	}
	r->next_number = next;
	return next - r->number;
}

void ring_publish_slot(struct ring *r, uint32_t slot)
{
	struct ring_source *s = ring_source(r, slot);

	if (s->position == s->published)
		return;
	s->published = s->position;
	__atomic_store_n(&pad_memory_ring(r->memory, slot)->limit, s->published + s->mask + 1,
			 __ATOMIC_RELEASE);
}

void ring_publish(struct ring *r)
{
	for (uint32_t i = 0; i < r->source_count; i++)
		ring_publish_slot(r, i);
}

/*
 * Copies of a ring for a fork.
 */

struct ring_unfinished *ring_save_unfinished(struct ring *r, uint32_t slot)
{
	uint64_t head = ring_head(r, slot);
	const struct ring_source *s = ring_source(r, slot);
	uint64_t at = head & s->mask, size = MIN(s->mask + 1 - at, r->memory->written.record_max);
	struct ring_unfinished *saved = xmalloc(sizeof(*saved) + size);

	saved->head = head;
	saved->size = size;
	memcpy(saved->data, s->bytes + at, size);
	return saved;
}

void ring_restore_unfinished(struct ring *r, uint32_t slot, const struct ring_unfinished *saved)
{
	struct ring_source *s = ring_source(r, slot);
	struct pad_ring *shared = pad_memory_ring(r->memory, slot);

	s->position = s->published = saved->head;
	shared->head = saved->head;
	shared->limit = saved->head + s->mask + 1;
	memcpy(pad_memory_ring_bytes(r->memory, slot) + (saved->head & s->mask), saved->data,
	       saved->size);
}

void ring_fork(struct ring *r, const struct ring *parent, uint32_t slot)
{
	struct ring_mirror *m;

	*r = (struct ring){
		.arch = parent->arch,
		.clock = parent->clock,
		.broken = parent->broken,
		.number = parent->next_number,
		.next_number = parent->next_number,
		.started_ns = clock_now_ns(),
	};
	m = ring_mirror(r, slot);
	if (slot >= parent->mirror_count || parent->mirror[slot].count == 0)
		return;
	m->count = m->capacity = parent->mirror[slot].count;
	m->frame = xmemdup(parent->mirror[slot].frame, m->count * sizeof(*m->frame));
	m->is_new_to_sink = true;
}
