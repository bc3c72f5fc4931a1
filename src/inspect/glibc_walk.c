/*
 * A chunk is reported once the next one is read, since that holds its "in use" bit:
 *
 *	at      size of the previous chunk if that is free, else the last word of its block
 *	at + 8  size | 4 outside the main arena | 1 if the previous chunk is in use
 *
 * Where a heap ends, or the program itself called sbrk, there are fenceposts: chunks below the
 * minimum size. The main arena's heap may continue after a gap behind them, at the first address
 * from which a sequence of valid chunks starts.
 */
#include "inspect/glibc_walk.h"

#include <string.h>

#define FENCEPOST_MAX 16u
#define GAP_MAX (UINT64_C(1) << 24)
#define CACHE_LINE 64u
#define FETCH_AHEAD 2048u
#define FETCH_MIN 256u /* size of a chunk */
#define CHAIN_MIN 8u /* so many chunks in a row cannot be a coincidence */

struct walk {
	struct inspect_memory *memory;
	const struct glibc_heap *heap;
	const struct glibc_lists *lists;
	size_t listed;          /* index of the next element of lists->chunks */
	const struct glibc_visitor *visitor;
	uintptr_t fetched;      /* up to here, of the window */
	bool is_ended;          /* stopped by the visitor */
	bool is_broken;         /* a part in the middle could not be followed */
};

static const enum glibc_chunk_kind kind_of_list[] = {
	[GLIBC_TCACHE] = CHUNK_TCACHE, [GLIBC_FASTBIN] = CHUNK_FASTBIN,
	[GLIBC_UNSORTED] = CHUNK_UNSORTED, [GLIBC_TCACHE_ITSELF] = CHUNK_OWN,
};

/*
 * Another thread has read the window: its bytes are in another CPU's cache. Where the next header
 * is this one says, and where chunks are large no CPU can guess it: so all that follows is fetched.
 */
static void prefetch(struct walk *w, uintptr_t p)
{
	if (w->fetched < p || w->fetched > p + 2 * FETCH_AHEAD)
		w->fetched = p;
	for (; w->fetched < p + FETCH_AHEAD; w->fetched += CACHE_LINE)
		__builtin_prefetch((const void *)w->fetched);
}

static bool read_head(struct walk *w, taddr_t at, uint64_t *out)
{
	if (at + GLIBC_HEADER > w->heap->end)
		return false;
	const void *p = memory_peek(w->memory, at + sizeof(*out), sizeof(*out));

	memcpy(out, p, sizeof(*out));
	if (*out >= FETCH_MIN)
		prefetch(w, (uintptr_t)p);
	return true;
}

static bool is_chunk(const struct walk *w, taddr_t at, uint64_t head)
{
	uint64_t size = head & ~(uint64_t)GLIBC_FLAGS;

	return size >= GLIBC_CHUNK_MIN && size % 16 == 0 && !(head & GLIBC_IS_MMAPPED) &&
	       size <= w->heap->end - at;
}

static bool is_fencepost(uint64_t head)
{
	return head && !(head & GLIBC_IS_MMAPPED) && head <= (FENCEPOST_MAX | GLIBC_FLAGS);
}

/*
 * Whether @at is where malloc ended the heap, or a part of it: a header without a block, then a
 * second one, of no size in an arena's earlier heaps.
 */
static bool is_part_end(struct walk *w, taddr_t at)
{
	uint64_t first, second, last = w->heap->is_main ? FENCEPOST_MAX : 0;

	return read_head(w, at, &first) && read_head(w, at + FENCEPOST_MAX, &second) &&
	       (first | GLIBC_IS_BEFORE_USED) == (FENCEPOST_MAX | GLIBC_IS_BEFORE_USED) &&
	       second == (last | GLIBC_IS_BEFORE_USED);
}

/* The state of @c according to the lists. The heap itself only shows whether it is in use. */
static void look_up(struct walk *w, struct glibc_chunk *c, bool is_used)
{
	c->kind = is_used ? CHUNK_LIVE : CHUNK_BIN;
	for (; w->listed < w->lists->chunks.count; w->listed++) {
		const struct glibc_listed *l = &w->lists->chunks.data[w->listed];

		if (l->chunk > c->addr)
			return;
		bool is_same = l->chunk == c->addr && l->size == c->size;

		if (is_same && is_used != (l->list == GLIBC_UNSORTED))
			c->kind = kind_of_list[l->list];
		else
			(*w->visitor->unlisted)++;
	}
}

static void report(struct walk *w, struct glibc_chunk *c, bool is_used)
{
	if (c->size == 0)
		return;
	look_up(w, c, is_used);
	w->is_ended |= !w->visitor->fn(w->visitor->ctx, c);
	c->size = 0;
}

static void report_as(struct walk *w, taddr_t at, uint64_t size, enum glibc_chunk_kind kind)
{
	const struct glibc_chunk c = {.addr = at, .size = size, .kind = kind};

	if (size > 0)
		w->is_ended |= !w->visitor->fn(w->visitor->ctx, &c);
}

/* Whether valid chunks follow one another from @at to the heap's end, or for long enough. */
static bool leads_on(struct walk *w, taddr_t at)
{
	uint64_t head;

	for (uint32_t i = 0; i < CHAIN_MIN; i++) {
		if (!memory_read_word(w->memory, at + sizeof(head), &head) ||
		    !is_chunk(w, at, head))
			return false;
		if (at == w->heap->top)
			return true;
		at += head & ~(uint64_t)GLIBC_FLAGS;
	}
	return true;
}

/* Where chunks continue after the fenceposts that end at @at; the heap's end if nowhere. */
static taddr_t find_next_part(struct walk *w, taddr_t at)
{
	taddr_t last = w->heap->end - at > GAP_MAX ? at + GAP_MAX : w->heap->end;

	if (w->heap->top && w->heap->top >= at)
		for (; at + GLIBC_CHUNK_MIN <= last; at += 16)
			if (leads_on(w, at))
				return at;
	return w->heap->end;
}

/*
 * Handles a fencepost: the heap ends here, or continues after a gap, at *at_out. False if the rest
 * cannot be walked.
 */
static bool pass_fenceposts(struct walk *w, taddr_t at, taddr_t *at_out)
{
	uint64_t head;
	taddr_t start = at;

	bool is_whole = is_part_end(w, at);

	w->is_broken |= !is_whole;
	while (read_head(w, at, &head) && is_fencepost(head))
		at += 16;
	taddr_t next = find_next_part(w, at);
	bool is_end = w->heap->top == 0, is_foreign = is_whole && next < w->heap->end;

	report_as(w, start, is_end ? next - start : at - start, CHUNK_OWN);
	if (!is_end)
		report_as(w, at, next - at, is_foreign ? CHUNK_FOREIGN : CHUNK_UNKNOWN);
	*at_out = next;
	return is_end || next < w->heap->end;
}

/* Skips the elements of lists that are below @at. */
static void skip_listed(struct walk *w, taddr_t at)
{
	w->listed = vec_search(&w->lists->chunks, e, e->chunk < at);
}

/*
 * Walks the chunks from @at on. Returns true at a fencepost, whose address is stored, or at the
 * end; false on failure.
 */
enum progress { AT_FENCEPOST, AT_END, AT_NOTHING };

static enum progress walk_chunks(struct walk *w, taddr_t *at_io)
{
	struct glibc_chunk before = {0};
	taddr_t at = *at_io;
	uint64_t head;

	while (!w->is_ended) {
		*at_io = at;
		if (!read_head(w, at, &head)) {
			report(w, &before, true);
			return at == w->heap->end && !w->heap->top ? AT_END : AT_NOTHING;
		}
		report(w, &before, head & GLIBC_IS_BEFORE_USED);
		if (!is_chunk(w, at, head))
			return is_fencepost(head) ? AT_FENCEPOST : AT_NOTHING;
		before = (struct glibc_chunk){.addr = at, .size = head & ~(uint64_t)GLIBC_FLAGS};
		if (at == w->heap->top) {
			if (before.size != w->heap->end - at)
				return AT_NOTHING;
			report_as(w, at, before.size, CHUNK_TOP);
			*at_io = at + before.size;
			return AT_END;
		}
		at += before.size;
	}
	return AT_END;
}

bool glibc_walk(struct inspect_memory *m, const struct glibc_heap *h,
		const struct glibc_lists *lists, const struct glibc_visitor *v)
{
	struct walk w = {.memory = m, .heap = h, .lists = lists, .visitor = v};
	enum progress progress;
	taddr_t at = h->start;

	skip_listed(&w, at);
	while ((progress = walk_chunks(&w, &at)) == AT_FENCEPOST && at < h->end) {
		if (!pass_fenceposts(&w, at, &at)) {
			progress = AT_NOTHING;
			break;
		}
		if (at >= h->end) {
			progress = AT_END;
			break;
		}
		skip_listed(&w, at);
	}
	if (!w.is_ended)
		report_as(&w, at, h->end - MIN(at, h->end),
			  progress == AT_END ? CHUNK_OWN : CHUNK_UNKNOWN);
	return progress != AT_NOTHING && !w.is_broken;
}
