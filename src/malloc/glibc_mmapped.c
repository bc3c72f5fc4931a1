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
	const struct glibc_params *params;
	struct glibc_mmapped_list *list; /* what was found */
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
			*out = (struct glibc_mmapped){start, start + found, block, false};
			return true;
		}
	}
	if (!is_of(f, start, start, end, &size))
		return false;
	*out = (struct glibc_mmapped){start, start + size, start + GLIBC_HEADER, false};
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
		*out = (struct glibc_mmapped){r.start, r.start + size,
					      chunk + GLIBC_HEADER, false};
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

/* Other memory can look like this many blocks, besides those that malloc has counted. */
#define FALSE_MAX 4096u

static bool is_full(const struct glibc *g, const struct glibc_mmapped_list *list)
{
	return g->params.is_known && (g->params.mmaps == 0 ||
				      list->list.count >= g->params.mmaps + FALSE_MAX);
}

/* The block whose mapping begins at @r.start, where @h is. */
static bool find_at(const struct mmapped_finder *f, struct addr_range r,
		    const struct mmapped_header *h, struct glibc_mmapped *out)
{
	if (before_of(f, h) != 0 || (h->head & GLIBC_FLAGS) != GLIBC_IS_MMAPPED)
		return false;
	if (!find_moved(f, r, h, f->list, out) && !find_block(f, r.start, r.end, out))
		return false;
	return !f->params->is_known || out->end - out->start <= f->params->mmapped_bytes;
}

static bool is_written(const struct inspect_memory *m, taddr_t page)
{
	size_t i = resident_find(m->pages, page);

	return i < m->pages->list.count && m->pages->list.data[i].start <= page;
}

void glibc_mmapped_find_first(struct inspect_memory *m, const struct glibc *g,
			      struct addr_range range, taddr_t end, struct glibc_mmapped_list *out)
{
	const struct mmapped_finder f = {m, tail_of(g), &g->params, out};
	struct addr_range rest = {range.start, end};
	struct glibc_mmapped found;
	struct mmapped_header h;

	while (rest.start < range.end && !is_full(g, out) && is_written(m, rest.start) &&
	       memory_read(m, rest.start, &h, sizeof(h)) && find_at(&f, rest, &h, &found)) {
		found.is_first = true;
		*vec_add(&out->list) = found;
		rest.start = out->covered = found.end;
	}
}

void glibc_mmapped_find(struct inspect_memory *m, const struct glibc *g, struct addr_range range,
			taddr_t end, struct glibc_mmapped_list *out)
{
	taddr_t at = range.start, first = at; /* where a block would be the first one */
	struct batch *b = xmalloc(sizeof(*b));
	const struct mmapped_finder f = {m, tail_of(g), &g->params, out};

	while (at < range.end && !is_full(g, out)) {
		at = fill_batch(m, MAX(at, first), range.end, b);
		memory_gather(m, b->addr, b->count, sizeof(*b->header), b->header);
		for (size_t i = 0; i < b->count && !is_full(g, out); i++) {
			struct addr_range rest = {b->addr[i], end};
			struct glibc_mmapped found;

			if (b->addr[i] < first || !find_at(&f, rest, &b->header[i], &found))
				continue;
			found.is_first = found.start == first;
			*vec_add(&out->list) = found;
			if (found.is_first || !g->params.is_known)
				first = out->covered = found.end;
		}
	}
	free(b);
}

/* -- which of them are blocks -- */

#define CHOICE_MAX 512u /* candidates, and the depth of the recursion */
#define CHOICE_STEPS 200000u

struct choice {
	const struct glibc_mmapped *candidate[CHOICE_MAX]; /* ascending */
	uint64_t most[CHOICE_MAX + 1]; /* bytes of this candidate and those behind it */
	bool takes[CHOICE_MAX], best[CHOICE_MAX];
	size_t count;
	uint32_t steps;         /* that are left */
	uint32_t found;         /* choices that fit, of which best is the first */
};

static uint64_t mapping_size(const struct glibc_mmapped *b)
{
	return b->end - b->start;
}

/* Tries to take @blocks of @bytes from the candidates from @i on that begin at or above @at. */
static void try_choices(struct choice *c, size_t i, uint64_t blocks, uint64_t bytes, taddr_t at)
{
	if (c->steps == 0 || c->found > 1 || blocks > c->count - i || bytes > c->most[i])
		return;
	c->steps--;
	if (blocks == 0) {
		if (bytes == 0 && c->found++ == 0)
			memcpy(c->best, c->takes, sizeof(c->best));
		return;
	}
	const struct glibc_mmapped *b = c->candidate[i];

	if (b->start >= at && mapping_size(b) <= bytes) {
		c->takes[i] = true;
		try_choices(c, i + 1, blocks - 1, bytes - mapping_size(b), b->end);
		c->takes[i] = false;
	}
	try_choices(c, i + 1, blocks, bytes, at);
}

/* Removes what begins in a block that is the first of a mapping, or reaches into one. */
static void drop_overlaps(struct glibc_mmapped_list *list)
{
	struct glibc_mmapped *b = list->list.data;
	size_t n = 0, next = 0;
	taddr_t at = 0;

	for (size_t i = 0; i < list->list.count; i++) {
		while (next < list->list.count && (next <= i || !b[next].is_first))
			next++;
		bool reaches = next < list->list.count && b[i].end > b[next].start;

		if (!b[i].is_first && (b[i].start < at || reaches))
			continue;
		if (b[i].is_first)
			at = b[i].end;
		b[n++] = b[i];
	}
	list->list.count = n;
}

/* The candidates of @list. Those that are taken without choice are subtracted from what is left. */
static bool add_candidates(struct choice *c, const struct glibc_mmapped_list *list,
			   bool trusts_first, uint64_t *blocks, uint64_t *bytes)
{
	for (size_t i = 0; i < list->list.count; i++) {
		const struct glibc_mmapped *b = &list->list.data[i];

		if (trusts_first && b->is_first) {
			if (*blocks == 0 || mapping_size(b) > *bytes)
				return false;
			*blocks -= 1;
			*bytes -= mapping_size(b);
		} else if (c->count == CHOICE_MAX) {
			return false;
		} else {
			c->candidate[c->count++] = b;
		}
	}
	for (size_t i = c->count; i > 0; i--)
		c->most[i - 1] = c->most[i] + mapping_size(c->candidate[i - 1]);
	return true;
}

/* Leaves the only choice that fits. @trusts_first: it has all that are the first of mappings. */
static bool choose(const struct glibc *g, struct glibc_mmapped_list *list, bool trusts_first)
{
	uint64_t blocks = g->params.mmaps, bytes = g->params.mmapped_bytes;
	struct choice *c = xcalloc(1, sizeof(*c));
	size_t n = 0, k = 0;

	c->steps = CHOICE_STEPS;
	if (add_candidates(c, list, trusts_first, &blocks, &bytes))
		try_choices(c, 0, blocks, bytes, 0);
	bool is_only = c->found == 1 && c->steps > 0;

	for (size_t i = 0; is_only && i < list->list.count; i++) {
		bool is_trusted = trusts_first && list->list.data[i].is_first;

		if (is_trusted || c->best[k++])
			list->list.data[n++] = list->list.data[i];
	}
	if (is_only)
		list->list.count = n;
	free(c);
	return is_only;
}

/* The best that can be done: no more than were counted. */
static void keep_some(const struct glibc *g, struct glibc_mmapped_list *list)
{
	uint64_t bytes = g->params.mmapped_bytes;
	taddr_t at = 0;
	size_t n = 0;

	for (size_t i = 0; i < list->list.count; i++) {
		const struct glibc_mmapped b = list->list.data[i];

		if (b.start < at ||
		    (g->params.is_known && (n == g->params.mmaps || mapping_size(&b) > bytes)))
			continue;
		bytes -= g->params.is_known ? mapping_size(&b) : 0;
		at = b.end;
		list->list.data[n++] = b;
	}
	list->list.count = n;
}

bool glibc_mmapped_choose(const struct glibc *g, struct glibc_mmapped_list *list)
{
	if (g->params.is_known) {
		if (choose(g, list, false))
			return true;
		drop_overlaps(list);
		if (choose(g, list, true))
			return true;
	}
	keep_some(g, list);
	return false;
}
