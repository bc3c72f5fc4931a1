/* Searches written memory page by page. See glibc.h. */
#include "malloc/glibc.h"

#define PAGE ((taddr_t)PAGE_SIZE_MIN)
#define ALIGNMENT_MIN 32u
#define ALIGNMENT_MAX (UINT64_C(1) << 40)

#define IS_HUGE UINT64_C(1) /* in a header's word before the size, since 2.43 */

struct mmapped_header {
	uint64_t before, head;
};

struct mmapped_finder {
	struct inspect_memory *memory;
	uint64_t tail; /* of a mapping, behind the chunk */
};

static bool read_header(const struct mmapped_finder *f, taddr_t chunk, struct mmapped_header *out)
{
	return memory_read(f->memory, chunk, out, sizeof(*out)) &&
	       (out->head & GLIBC_FLAGS) == GLIBC_IS_MMAPPED;
}

static uint64_t size_of(const struct mmapped_header *h)
{
	return h->head & ~(uint64_t)GLIBC_FLAGS;
}

/* The distance from the start of the mapping. */
static uint64_t before_of(const struct mmapped_finder *f, const struct mmapped_header *h)
{
	return f->tail ? h->before & ~IS_HUGE : h->before;
}

/* Whether the chunk at @chunk belongs to a mapping at @start; *size_out is the mapping's size. */
static bool is_of(const struct mmapped_finder *f, taddr_t start, taddr_t chunk, taddr_t end,
		  uint64_t *size_out)
{
	struct mmapped_header h;

	if (!read_header(f, chunk, &h) || before_of(f, &h) != chunk - start)
		return false;
	uint64_t size = size_of(&h) + f->tail;

	if (size < GLIBC_CHUNK_MIN || size > end - chunk || (size + chunk - start) % PAGE)
		return false;
	*size_out = size + chunk - start;
	return true;
}

/*
 * Checks for a mapping at @start. If an alignment was requested, the block is at one of two places,
 * and the header at the start is stale: it has the size that the mapping had before realloc.
 */
static bool find_block(const struct mmapped_finder *f, taddr_t start, taddr_t end,
		       struct glibc_mmapped *out)
{
	uint64_t size;
	struct mmapped_header stale;

	if (!read_header(f, start, &stale))
		return false;
	for (uint64_t a = ALIGNMENT_MIN; a <= ALIGNMENT_MAX && a <= size_of(&stale); a *= 2) {
		taddr_t block = ROUND_UP(start + GLIBC_HEADER, a);

		for (int i = 0; i < 2; i++, block += a) {
			uint64_t found;

			if (block == start + GLIBC_HEADER || block >= end ||
			    !is_of(f, start, block - GLIBC_HEADER, end, &found))
				continue;
			*out = (struct glibc_mmapped){start, start + found, block};
			return true;
		}
	}
	if (!is_of(f, start, start, end, &size))
		return false;
	*out = (struct glibc_mmapped){start, start + size, start + GLIBC_HEADER};
	return true;
}

/* -- headers at written pages -- */

#define BATCH 1024u

struct batch {
	taddr_t addr[BATCH];
	struct mmapped_header header[BATCH];
	size_t count;
};

/* Collects the written pages in [@at, @end), as many as fit. Returns where the search stopped. */
static taddr_t fill_batch(struct inspect_memory *m, taddr_t at, taddr_t end, struct batch *b)
{
	b->count = 0;
	for (size_t i = resident_find(m->pages, at); i < m->pages->list.count; i++) {
		const struct page_run *r = &m->pages->list.data[i];

		for (at = MAX(at, r->start); at < MIN(r->end, end); at += PAGE) {
			if (b->count == BATCH)
				return at;
			b->addr[b->count++] = at;
		}
		if (r->end >= end)
			break;
	}
	return end;
}

/* -- blocks that were moved -- */

static bool find_in_batch(const struct mmapped_finder *f, struct addr_range r,
			  const struct batch *b, struct glibc_mmapped *out)
{
	uint64_t size;

	for (size_t i = 0; i < b->count; i++) {
		taddr_t chunk = b->addr[i];

		if (before_of(f, &b->header[i]) != chunk - r.start ||
		    !is_of(f, r.start, chunk, r.end, &size))
			continue;
		*out = (struct glibc_mmapped){r.start, r.start + size, chunk + GLIBC_HEADER};
		return true;
	}
	return false;
}

/*
 * Checks for an aligned block in a mapping at @r.start that realloc has moved: the distance from
 * the start is what it was, and leads to no multiple of the alignment any more. It was a multiple
 * of a page for alignments above that. @stale, the header at the start, has the size that the
 * mapping had, which exceeds the distance. No page is read that was never written.
 */
static bool find_moved(const struct mmapped_finder *f, struct addr_range r,
		       const struct mmapped_header *stale, struct glibc_mmapped_list *list,
		       struct glibc_mmapped *out)
{
	struct batch *b = xmalloc(sizeof(*b));
	bool is_found = false;
	taddr_t at = r.start;
	taddr_t end = at + MIN(r.end - at, size_of(stale));

	while (at < end && list->pages_left > 0 && !is_found) {
		at = fill_batch(f->memory, at, end, b);
		list->pages_left -= MIN(list->pages_left, b->count);
		for (size_t i = 0; i < b->count; i++)
			b->addr[i] += PAGE - GLIBC_HEADER;
		memory_gather(f->memory, b->addr, b->count, sizeof(*b->header), b->header);
		is_found = find_in_batch(f, r, b, out);
	}
	free(b);
	return is_found;
}

/* -- candidates for the first page of a mapping -- */

/* Bytes of a mapping that follow its chunk. */
static uint64_t tail_of(const struct glibc *g)
{
	return g->arenas.count > 0 && g->arenas.data[0].size < GLIBC_STATE_SIZE_FAST ?
		       GLIBC_HEADER : 0;
}

uint64_t glibc_mmapped_usable(const struct glibc *g, const struct glibc_mmapped *b)
{
	uint64_t tail = tail_of(g);

	return b->end - b->block - (tail ? tail - sizeof(uint64_t) : 0);
}

void glibc_mmapped_find(struct inspect_memory *m, const struct glibc *g, struct addr_range range,
			struct glibc_mmapped_list *out)
{
	taddr_t at = range.start, free_from = at;
	struct batch *b = xmalloc(sizeof(*b));
	const struct mmapped_finder f = {m, tail_of(g)};

	while (at < range.end &&
	       !(g->params.is_known && out->list.count >= g->params.mmaps)) {
		at = fill_batch(m, MAX(at, free_from), range.end, b);
		memory_gather(m, b->addr, b->count, sizeof(*b->header), b->header);
		for (size_t i = 0; i < b->count; i++) {
			struct addr_range rest = {b->addr[i], range.end};
			struct glibc_mmapped found;

			if (b->addr[i] < free_from || before_of(&f, &b->header[i]) != 0 ||
			    (b->header[i].head & GLIBC_FLAGS) != GLIBC_IS_MMAPPED)
				continue;
			if (!find_moved(&f, rest, &b->header[i], out, &found) &&
			    !find_block(&f, rest.start, rest.end, &found))
				continue;
			*vec_add(&out->list) = found;
			out->bytes += found.end - found.start;
			free_from = found.end;
		}
	}
	free(b);
}
