/*
 * Walks the lists of interpreters' frames, and merges them with native stacks. What is read is the
 * program's: addresses may lead anywhere, and lists need not end.
 */
#include "languages/virtual_frames.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>

bool language_read_word(const struct language_memory *m, taddr_t addr, uint64_t *out)
{
	return m->read(m->ctx, addr, out, sizeof(*out));
}

/* -- the loop -- */

#define LOOP_GAP 64u /* padding between functions */

void virtual_layout_deinit(struct virtual_layout *l)
{
	vec_deinit(&l->loops);
}

void virtual_loop_add(struct virtual_layout *l, const struct virtual_loop *loop)
{
	size_t at = vec_search(&l->loops, e, e->start < loop->start), to = 0;

	if (loop->end <= loop->start)
		return;
	vec_add(&l->loops);
	memmove(&l->loops.data[at + 1], &l->loops.data[at],
		(l->loops.count - 1 - at) * sizeof(*loop));
	l->loops.data[at] = *loop;
	for (size_t i = 1; i < l->loops.count; i++) {
		struct virtual_loop *last = &l->loops.data[to], next = l->loops.data[i];

		if (next.kind == last->kind && next.start <= last->end + LOOP_GAP) {
			last->end = MAX(last->end, next.end);
		} else if (next.end > last->end) {
			next.start = MAX(next.start, last->end);
			l->loops.data[++to] = next;
		}
	}
	l->loops.count = to + 1;
}

enum virtual_loop_kind virtual_loop_find(const struct virtual_layout *l, taddr_t pc)
{
	size_t i = vec_search(&l->loops, e, e->end <= pc);

	return i < l->loops.count && pc >= l->loops.data[i].start ? l->loops.data[i].kind :
								    VIRTUAL_NO_LOOP;
}

/* -- publishing -- */

static void fill_ranges(const struct virtual_layout *from, struct pad_virtual_layout *out)
{
	for (size_t i = 0; i < from->loops.count; i++) {
		const struct virtual_loop *loop = &from->loops.data[i];

		if (out->ranges < PAD_VIRTUAL_RANGES)
			out->range[out->ranges++].start = loop->start + 1;
		out->range[out->ranges - 1].end = loop->end + 1;
	}
}

static void fill_layout(const struct virtual_layout *l, struct pad_virtual_layout *out)
{
	static const uint32_t states[] = {
		[VIRTUAL_STATE_UNKNOWN] = PAD_STATE_NONE,
		[VIRTUAL_STATE_GLOBAL] = PAD_STATE_GLOBAL,
		[VIRTUAL_STATE_TLS] = PAD_STATE_TLS,
		[VIRTUAL_STATE_FIXED] = PAD_STATE_FIXED,
		[VIRTUAL_STATE_STACK] = PAD_STATE_STACK,
	};
	static const uint32_t entries[] = {
		[VIRTUAL_ENTRY_EACH] = PAD_ENTRY_EACH,
		[VIRTUAL_ENTRY_FLAG] = PAD_ENTRY_FLAG,
		[VIRTUAL_ENTRY_SHIM] = PAD_ENTRY_SHIM,
	};

	out->state_kind = states[l->thread.kind];
	out->place = l->thread.place;
	out->owner = l->thread.owner;
	out->heads = l->heads;
	out->head[0] = l->head[0];
	out->head[1] = l->head[1];
	out->next = l->next;
	out->identity = l->identity;
	out->identity_mask = l->identity_mask;
	out->position = l->position;
	out->position_size = l->position_size;
	out->entry_kind = entries[l->entry_kind];
	/* for all of one kind any byte will do that does not change */
	out->entry = l->entry_kind == VIRTUAL_ENTRY_EACH ? l->identity : l->entry;
	out->entry_min = l->entry_min;
	out->entry_mask = l->entry_mask;
	out->via = l->via;
	out->native = (uint64_t)(int64_t)l->native;
	out->stride = l->stride;
	out->stack = l->stack;
	out->stack_words = l->stack_words;
	out->arrays = l->arrays;
	out->values = l->values;
	out->kinds = l->kinds;
	memcpy(out->kind, l->kind, sizeof(out->kind));
}

void virtual_layout_publish(const struct virtual_layout *l, bool is_found,
			    struct pad_virtual_layout *out)
{
	fill_ranges(l, out);
	if (is_found)
		fill_layout(l, out);
}

/* -- walking -- */

#define PAGE ((taddr_t)PAGE_SIZE_MIN)

/* Frames follow one another in memory, so most are in the page of the one before. */
struct frame_reader {
	const struct virtual_layout *layout;
	const struct language_memory *memory;
	size_t size; /* of what is read of each frame */
	taddr_t page;
	uint8_t data[PAGE_SIZE_MIN];
};

#define FRAME_BYTES_MAX 256u

static size_t frame_size(const struct virtual_layout *l)
{
	size_t size = MAX(l->next, l->identity) + sizeof(uint64_t);

	size = MAX(size, (size_t)l->position + l->position_size);
	size = MAX(size, l->via + sizeof(uint64_t));
	return l->entry_kind == VIRTUAL_ENTRY_EACH || l->via ? size :
							       MAX(size, l->entry + (size_t)1);
}

static bool read_frame(struct frame_reader *r, taddr_t addr, uint8_t *out)
{
	taddr_t page = ROUND_DOWN(addr, PAGE);

	if (addr % sizeof(uint64_t) || addr < PAGE || addr + r->size < addr)
		return false;
	if (addr + r->size > page + PAGE)
		return r->memory->read(r->memory->ctx, addr, out, r->size);
	if (r->page != page) {
		r->page = 0;
		if (!r->memory->read(r->memory->ctx, page, r->data, PAGE))
			return r->memory->read(r->memory->ctx, addr, out, r->size);
		r->page = page;
	}
	memcpy(out, r->data + (addr - page), r->size);
	return true;
}

/* The kind of the function's object at @identity; NULL: none that is known. */
static const struct pad_function_kind *find_kind(const struct virtual_layout *l,
						 const struct language_memory *m, uint64_t identity)
{
	uint64_t word;

	for (uint8_t i = 0; i < l->kinds; i++)
		if (language_read_word(m, identity + l->kind[i].type, &word) &&
		    (word & l->kind[i].type_mask) == l->kind[i].type_value)
			return &l->kind[i];
	return NULL;
}

static void apply_kind(const struct virtual_layout *l, const struct language_memory *m,
		       struct virtual_frame *f)
{
	const struct pad_function_kind *k = find_kind(l, m, f->identity);

	if (!k)
		return;
	if (k->flags & PAD_KIND_NATIVE) {
		f->is_entry = false;
		f->position = 0;
	}
	if (k->flags & PAD_KIND_NONE)
		f->identity = 0;
}

static bool decode_frame(const struct frame_reader *r, const uint8_t *bytes,
			 struct virtual_frame *out)
{
	const struct virtual_layout *l = r->layout;
	uint64_t part = l->via ? load_u64(bytes + l->via) : 0;
	uint8_t entry = bytes[l->via ? 0 : l->entry];
	int32_t index;

	*out = (struct virtual_frame){.identity = load_u64(bytes + l->identity)};
	if (l->via && !r->memory->read(r->memory->ctx, part + l->entry, &entry, sizeof(entry)))
		return false;
	if (!out->identity && l->native &&
	    !language_read_word(r->memory, part + (taddr_t)l->native, &out->identity))
		return false;
	out->identity &= l->identity_mask;
	if (l->position_size == sizeof(index)) {
		memcpy(&index, bytes + l->position, sizeof(index));
		out->position = (uint64_t)(int64_t)index;
	} else {
		out->position = load_u64(bytes + l->position);
	}
	switch (l->entry_kind) {
	case VIRTUAL_ENTRY_EACH:
		out->is_entry = true;
		break;
	case VIRTUAL_ENTRY_FLAG:
		out->is_entry = entry & l->entry_mask;
		break;
	case VIRTUAL_ENTRY_SHIM:
		out->is_entry = entry >= l->entry_min;
		out->identity = out->is_entry ? 0 : out->identity;
	}
	if (l->kinds > 1 && out->identity)
		apply_kind(l, r->memory, out);
	return true;
}

/* The frame outside of that at @frame, which is @bytes; 0: there is none. */
static taddr_t next_frame(const struct virtual_layout *l, const uint8_t *bytes, taddr_t frame,
			  taddr_t end)
{
	if (!l->stride)
		return load_u64(bytes + l->next);
	return frame < end && end - frame > l->stride ? frame + l->stride : 0;
}

/* -- arrays -- */

/* A walk of arrays: pad_virtual.h. */
struct array_walk {
	const struct virtual_layout *layout;
	const struct language_memory *memory;
	struct virtual_frame *out;
	size_t count, max;
	taddr_t position, place; /* of the next function; pad_place */
};

static ssize_t add_frame(struct array_walk *w, struct virtual_frame f)
{
	uint32_t number = 0;

	if (w->count == w->max)
		return -E2BIG;
	if (f.source && !w->memory->read(w->memory->ctx, f.source + w->layout->arrays.number,
					 &number, sizeof(number)))
		return -EFAULT;
	f.position |= pad_place_number(number);
	if (w->layout->kinds > 1 && f.identity)
		apply_kind(w->layout, w->memory, &f);
	w->out[w->count++] = f;
	return 0;
}

static ssize_t walk_element(struct array_walk *w, taddr_t at)
{
	const struct virtual_layout *l = w->layout;
	const struct pad_virtual_arrays *a = &l->arrays;
	struct virtual_frame f = {.at = at, .is_entry = true};
	uint64_t back;
	uint8_t type;

	if (!w->memory->read(w->memory->ctx, at + a->type, &type, sizeof(type)))
		return -EFAULT;
	bool is_other = pad_byte_in(a->other_functions, type);

	if (pad_byte_in(a->shims, type))
		return add_frame(w, f);
	if (!is_other && !pad_byte_in(a->functions, type))
		return 0;
	f.source = w->position;
	f.position = w->place;
	if (!language_read_word(w->memory, at + (is_other ? a->other_identity : l->identity),
				&f.identity) ||
	    !language_read_word(w->memory, at + a->back, &back) ||
	    !language_read_word(w->memory, at + a->caller, &w->position))
		return -EFAULT;
	w->place = pad_place(back);
	f.is_entry = !back && !pad_byte_in(a->joined, type);
	return add_frame(w, f);
}

#define ARRAYS_MAX (1u << 16)
#define ELEMENTS_MAX (1u << 24)

static ssize_t walk_arrays(struct array_walk *w, taddr_t state)
{
	const struct virtual_layout *l = w->layout;
	const struct pad_virtual_arrays *a = &l->arrays;
	struct virtual_frame outermost = {.at = state, .is_entry = true};
	taddr_t array, elements, place;
	int32_t last;
	ssize_t err = 0;

	if (!language_read_word(w->memory, state + l->head[0], &array) ||
	    !language_read_word(w->memory, state + l->position, &w->position) ||
	    !language_read_word(w->memory, state + a->place, &place))
		return -EFAULT;
	w->place = pad_place(place) | PAD_PLACE_IS_INNERMOST;
	for (uint32_t n = 0; array; n++) {
		if (!language_read_word(w->memory, array + a->elements, &elements) ||
		    !w->memory->read(w->memory->ctx, array + a->last, &last, sizeof(last)) ||
		    last > (int32_t)ELEMENTS_MAX || n == ARRAYS_MAX)
			return -EFAULT;
		for (int32_t i = last; i >= 0 && err == 0; i--)
			err = walk_element(w, elements + (uint64_t)i * a->element);
		if (err != 0)
			return err;
		if (!language_read_word(w->memory, array + a->outer, &array))
			return -EFAULT;
	}
	outermost.source = w->position;
	outermost.position = w->place;
	if (!language_read_word(w->memory, state + a->outermost, &outermost.identity) ||
	    (!outermost.identity &&
	     !language_read_word(w->memory, state + a->outermost_else, &outermost.identity)))
		return -EFAULT;
	err = add_frame(w, outermost);
	return err == 0 ? (ssize_t)w->count : err;
}

/* -- lists of any kind -- */

ssize_t virtual_frames_walk(const struct virtual_layout *l, const struct language_memory *m,
			    taddr_t state, struct virtual_frame *out, size_t max)
{
	struct array_walk arrays = {.layout = l, .memory = m, .out = out, .max = max};
	struct frame_reader r = {.layout = l, .memory = m, .size = frame_size(l)};
	uint8_t bytes[FRAME_BYTES_MAX];
	taddr_t frame = state, end = 0;
	uint64_t words = 0;
	size_t count = 0;

	if (l->arrays.element)
		return walk_arrays(&arrays, state);
	if (r.size > sizeof(bytes))
		return -EFAULT;
	for (uint8_t i = 0; i < l->heads && frame; i++)
		if (!language_read_word(m, frame + l->head[i], &frame))
			return -EFAULT;
	if (l->stride) {
		if (!language_read_word(m, state + l->stack, &end) ||
		    !language_read_word(m, state + l->stack_words, &words))
			return -EFAULT;
		end += words * sizeof(uint64_t);
		frame = frame < end ? frame : 0;
	}
	for (; frame; frame = next_frame(l, bytes, frame, end)) {
		if (count == max)
			return -E2BIG;
		if (!read_frame(&r, frame, bytes) || !decode_frame(&r, bytes, &out[count]))
			return -EFAULT;
		out[count++].at = frame;
	}
	return (ssize_t)count;
}

/* -- functions -- */

uint64_t virtual_stamp(const struct virtual_layout *l, const struct language_memory *m,
		       uint64_t identity)
{
	const struct pad_function_kind *k =
		identity && identity % sizeof(identity) == 0 ? find_kind(l, m, identity) : NULL;
	struct pad_stamp stamp = {0};
	uint64_t name;

	if (!k || k->flags & PAD_KIND_NONE ||
	    !language_read_word(m, identity + k->name, &name) ||
	    !language_read_word(m, identity + k->file, &stamp.file))
		return 0;
	uint64_t object = k->flags & PAD_KIND_DEEP ? name : identity;

	if (!language_read_word(m, object + k->line, &stamp.line) ||
	    !language_read_word(m, object + k->table, &stamp.table) ||
	    (name && !language_read_word(m, name + k->name_hash, &stamp.name_hash)) ||
	    (stamp.file && !language_read_word(m, stamp.file + k->file_hash, &stamp.file_hash)))
		return 0;
	return pad_stamp_of(&stamp);
}

/* -- merging -- */

/* The run that begins with frame[next], the outermost of it, ends before the next entry. */
static void take_run(struct virtual_merge *g)
{
	size_t first = g->last_run = g->next++;

	g->is_wrong |= !g->frame[first].is_entry;
	if (g->unchanged > g->next && g->run[g->unchanged - 1] == first)
		g->next = g->unchanged;
	while (g->next < g->frames && !g->frame[g->next].is_entry)
		g->next++;
}

struct virtual_merge virtual_merge_begin(const struct virtual_layout *l,
					 const struct virtual_frame *frame, size_t frames)
{
	struct virtual_merge g = {.layout = l, .frame = frame, .frames = frames};

	if (l->has_base && frames)
		do
			g.next++;
		while (g.next < frames && !frame[g.next].is_entry);
	return g;
}

bool virtual_merge_skip_callers(struct virtual_merge *g, size_t loops)
{
	size_t i = g->frames;

	if (!g->layout->has_callers_runs || !loops)
		return false;
	/* to the outermost frame of the run that the outermost loop is */
	while (i > 0 && (!g->frame[i - 1].is_entry || --loops > 0))
		i--;
	if (i <= 1)
		return false;
	*g = virtual_merge_begin(g->layout, g->frame, g->frames);
	g->next = i - 1;
	return true;
}

static bool is_loop(enum virtual_loop_kind kind)
{
	return kind == VIRTUAL_LOOP || kind == VIRTUAL_LOOP_PART;
}

void virtual_merge_resume(struct virtual_merge *g, const taddr_t *pc, size_t kept, size_t next)
{
	enum virtual_loop_kind kind =
		kept ? virtual_loop_find(g->layout, pc[kept - 1]) : VIRTUAL_NO_LOOP;

	g->next = next;
	g->was_loop = is_loop(kind);
	for (size_t i = kept; g->layout->arrays.element && i > 0 && !is_loop(kind); i--) {
		kind = virtual_loop_find(g->layout, pc[i - 1]);
		if (kind == VIRTUAL_NO_LOOP)
			continue;
		g->caller = is_loop(kind) ? VIRTUAL_NO_LOOP : kind;
		break;
	}
}

/* The functions outside of the first entry, if the first loop does not run them. */
static void pass_outermost(struct virtual_merge *g, enum virtual_loop_kind caller)
{
	size_t end = 1;

	if (caller != VIRTUAL_CALLS_RUN || g->next)
		return;
	while (end < g->frames && !g->frame[end].is_entry)
		end++;
	g->next = end < g->frames ? end : 0;
}

enum virtual_step virtual_merge_step(struct virtual_merge *g, taddr_t pc, size_t *first_out)
{
	enum virtual_loop_kind kind = virtual_loop_find(g->layout, pc), caller = g->caller;
	bool was_loop = g->was_loop;

	g->was_loop = is_loop(kind);
	if (kind == VIRTUAL_NO_LOOP)
		return VIRTUAL_SHOW_NATIVE;
	g->caller = g->was_loop ? VIRTUAL_NO_LOOP : kind;
	if (!g->was_loop)
		return VIRTUAL_SHOW_NATIVE;
	if ((kind == VIRTUAL_LOOP_PART && was_loop) || (caller == VIRTUAL_CALLS_SAME && g->next))
		return VIRTUAL_SHOW_NONE;
	g->loops++;
	if (g->next == g->frames) {
		g->bare++;
		return VIRTUAL_SHOW_NATIVE;
	}
	*first_out = g->next;
	pass_outermost(g, caller);
	take_run(g);
	for (size_t i = *first_out; i < g->next; i++)
		if (g->frame[i].identity)
			return VIRTUAL_SHOW_RUN;
	return VIRTUAL_SHOW_NATIVE;
}

size_t virtual_merge_rest(const struct virtual_merge *g)
{
	size_t end = g->next;

	if (g->is_wrong || g->bare || g->next == g->frames)
		return end;
	if (g->layout->has_loose_runs)
		return g->frames;
	if (!g->layout->arrays.element || g->next)
		return end;
	/* no loop runs: the outermost functions began before */
	do
		end++;
	while (end < g->frames && !g->frame[end].is_entry);
	return end;
}

bool virtual_merge_is_right(const struct virtual_merge *g)
{
	return !g->is_wrong && g->bare <= 1 &&
	       (g->next == g->frames || g->layout->arrays.element ||
		virtual_merge_rest(g) == g->frames);
}
