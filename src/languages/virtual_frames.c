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

/* -- merging -- */

struct merger {
	const struct virtual_layout *layout;
	const struct merge_input *in;
	struct merged_frame *out;
	size_t count, next; /* next: of in->frame */
};

/*
 * Whether native frame @i is a run of the loop. A part that was called from the loop belongs to its
 * caller's run.
 */
static bool is_run(const struct merger *g, size_t i)
{
	enum virtual_loop_kind kind = virtual_loop_find(g->layout, g->in->pc[i]);

	return kind == VIRTUAL_LOOP ||
	       (kind == VIRTUAL_LOOP_PART &&
		(i + 1 == g->in->pcs ||
		 virtual_loop_find(g->layout, g->in->pc[i + 1]) == VIRTUAL_NO_LOOP));
}

static void add_frame(struct merger *g, bool is_virtual, size_t index)
{
	g->out[g->count++] = (struct merged_frame){is_virtual, (uint32_t)index};
}

/* The functions of the next run; the native frame @i if it has none. */
static void add_run(struct merger *g, size_t i)
{
	size_t before = g->count;
	bool is_last = false;

	while (!is_last) {
		const struct virtual_frame *f = &g->in->frame[g->next];

		is_last = f->is_entry;
		if (f->identity)
			add_frame(g, true, g->next);
		g->next++;
	}
	if (g->count == before)
		add_frame(g, false, i);
}

ssize_t virtual_frames_merge(const struct virtual_layout *l, const struct merge_input *in,
			     struct merged_frame *out, bool *bare_out)
{
	struct merger g = {.layout = l, .in = in, .out = out};
	size_t loops = 0, runs = 0;

	for (size_t i = 0; i < in->pcs; i++)
		loops += is_run(&g, i);
	for (size_t i = 0; i < in->frames; i++)
		runs += in->frame[i].is_entry;
	if (loops != runs && loops != runs + 1)
		return -EILSEQ;
	if (in->frames && !in->frame[in->frames - 1].is_entry)
		return -EILSEQ;
	size_t bare = loops - runs; /* whose function is not in the list yet */

	*bare_out = bare > 0;
	for (size_t i = 0; i < in->pcs; i++) {
		if (!is_run(&g, i)) {
			/* a part of the loop's code is shown by the functions of its caller */
			if (virtual_loop_find(l, in->pc[i]) == VIRTUAL_NO_LOOP)
				add_frame(&g, false, i);
		} else if (bare) {
			bare--;
			add_frame(&g, false, i);
		} else {
			add_run(&g, i);
		}
	}
	return (ssize_t)g.count;
}
