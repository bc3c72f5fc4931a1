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
	return l->entry_kind == VIRTUAL_ENTRY_EACH ? size : MAX(size, l->entry + (size_t)1);
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

static uint64_t word_at(const uint8_t *bytes, size_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

static void decode_frame(const struct virtual_layout *l, const uint8_t *bytes,
			 struct virtual_frame *out)
{
	int32_t index;

	*out = (struct virtual_frame){.identity = word_at(bytes, l->identity) & l->identity_mask};
	if (l->position_size == sizeof(index)) {
		memcpy(&index, bytes + l->position, sizeof(index));
		out->position = (uint64_t)(int64_t)index;
	} else {
		out->position = word_at(bytes, l->position);
	}
	switch (l->entry_kind) {
	case VIRTUAL_ENTRY_EACH:
		out->is_entry = true;
		break;
	case VIRTUAL_ENTRY_FLAG:
		out->is_entry = bytes[l->entry] != 0;
		break;
	case VIRTUAL_ENTRY_SHIM:
		out->is_entry = bytes[l->entry] >= l->entry_min;
		out->identity = out->is_entry ? 0 : out->identity;
	}
}

ssize_t virtual_frames_walk(const struct virtual_layout *l, const struct language_memory *m,
			    taddr_t state, struct virtual_frame *out, size_t max)
{
	struct frame_reader r = {.layout = l, .memory = m, .size = frame_size(l)};
	uint8_t bytes[FRAME_BYTES_MAX];
	taddr_t frame = state;
	size_t count = 0;

	if (r.size > sizeof(bytes))
		return -EFAULT;
	for (uint8_t i = 0; i < l->heads && frame; i++)
		if (!language_read_word(m, frame + l->head[i], &frame))
			return -EFAULT;
	for (; frame; frame = word_at(bytes, l->next)) {
		if (count == max)
			return -E2BIG;
		if (!read_frame(&r, frame, bytes))
			return -EFAULT;
		decode_frame(l, bytes, &out[count++]);
	}
	if (l->has_base && count > 0 && !out[count - 1].identity)
		count--;
	return (ssize_t)count;
}

/* -- functions -- */

uint64_t virtual_stamp(const struct virtual_layout *l, const struct language_memory *m,
		       uint64_t identity)
{
	struct pad_stamp stamp;
	uint64_t type, name;

	if (!identity || identity % sizeof(identity) || !l->function.type_value ||
	    !language_read_word(m, identity + l->function.type, &type) ||
	    type != l->function.type_value ||
	    !language_read_word(m, identity + l->function.name, &name) ||
	    !language_read_word(m, identity + l->function.file, &stamp.file) ||
	    !language_read_word(m, identity + l->function.line, &stamp.line) ||
	    !language_read_word(m, identity + l->function.table, &stamp.table) ||
	    !language_read_word(m, name + l->function.hash, &stamp.name_hash) ||
	    !language_read_word(m, stamp.file + l->function.hash, &stamp.file_hash))
		return 0;
	return pad_stamp_of(&stamp);
}

/* -- merging -- */

/* The run that begins with frame[next], the outermost of it, ends before the next entry. */
static void take_run(struct virtual_merge *g)
{
	g->is_wrong |= !g->frame[g->next].is_entry;
	do
		g->next++;
	while (g->next < g->frames && !g->frame[g->next].is_entry);
}

enum virtual_step virtual_merge_step(struct virtual_merge *g, taddr_t pc, size_t *first_out)
{
	enum virtual_loop_kind kind = virtual_loop_find(g->layout, pc);
	bool was_loop = g->was_loop;

	g->was_loop = kind != VIRTUAL_NO_LOOP;
	if (kind == VIRTUAL_NO_LOOP)
		return VIRTUAL_SHOW_NATIVE;
	if (kind == VIRTUAL_LOOP_PART && was_loop)
		return VIRTUAL_SHOW_NONE;
	g->loops++;
	if (g->next == g->frames) {
		g->bare++;
		return VIRTUAL_SHOW_NATIVE;
	}
	*first_out = g->next;
	take_run(g);
	for (size_t i = *first_out; i < g->next; i++)
		if (g->frame[i].identity)
			return VIRTUAL_SHOW_RUN;
	return VIRTUAL_SHOW_NATIVE;
}

bool virtual_merge_is_right(const struct virtual_merge *g)
{
	return !g->is_wrong && g->bare <= 1 && g->next == g->frames;
}
