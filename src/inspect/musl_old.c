/*
 * Areas are searched in memory that was written, where one may begin, and followed from chunk to
 * chunk: each must have the size that the next one says. See musl_old.h.
 */
#include "inspect/musl_old.h"

#define PAGE ((taddr_t)PAGE_SIZE_MIN)
#define UNIT 32u
#define HEADER 16u
#define IN_USE UINT64_C(1)
#define BINS 64u
#define BIN_SIZE 24u
#define WORDS (PAGE_SIZE_MIN / 8u)
/* Free memory may have been returned: an area may be larger than what is resident. */
#define AREA_FACTOR 64u
#define AREA_MIN (UINT64_C(1) << 30)

struct chunk {
	uint64_t before, size; /* | IN_USE */
};
struct bin {
	uint32_t lock, waiters;
	taddr_t first, last;
};
struct bins {
	uint64_t used;
	struct bin bin[BINS];
};
_Static_assert(sizeof(struct bins) == 8 + BINS * BIN_SIZE, "as in 1.1");

struct finder {
	const struct allocator_input *in;
	struct inspect_memory *memory;
	struct slabs *slabs;
	uint64_t left;  /* bytes that areas may still have */
	uint64_t steps; /* that may still be made from chunk to chunk */
	size_t data;    /* index of the data that ends above where the search is */
};

/* -- lists -- */

/* Whether a list is at @at, where its first and last chunk are; @empty_out: there are none. */
static bool is_list(struct inspect_memory *m, taddr_t at, taddr_t first, taddr_t last,
		    bool *empty_out)
{
	taddr_t self = at - HEADER;
	uint64_t next, before;

	*empty_out = first == self && last == self;
	return *empty_out ||
	       (first % UNIT == HEADER && last % UNIT == HEADER &&
		memory_read_word(m, first + 24, &before) && before == self &&
		memory_read_word(m, last + 16, &next) && next == self);
}

static bool is_bins(struct inspect_memory *m, taddr_t at)
{
	struct bins b;
	size_t used = 0;

	if (!memory_read(m, at, &b, sizeof(b)))
		return false;
	for (uint32_t i = 0; i < BINS; i++) {
		const struct bin *e = &b.bin[i];
		bool is_used = e->first || e->last, is_empty = true;

		if (e->lock > 1 ||
		    (is_used && !is_list(m, at + 16 + i * BIN_SIZE, e->first, e->last, &is_empty)))
			return false;
		if ((b.used >> i & 1) == is_empty)
			return false;
		used += is_used;
	}
	return used > 0;
}

/* Whether one of the words at @page is that of a list. */
static bool has_bins(struct inspect_memory *m, taddr_t page)
{
	uint64_t word[WORDS + 1] = {0};
	bool is_empty;

	if (!memory_read(m, page, word, sizeof(word)) &&
	    !memory_read(m, page, word, PAGE_SIZE_MIN))
		return false;
	for (uint32_t k = 0; k < WORDS; k++) {
		taddr_t at = page + k * sizeof(*word);

		if (!word[k] || !word[k + 1] ||
		    !is_list(m, at, word[k], word[k + 1], &is_empty))
			continue;
		for (uint32_t i = 0; i < BINS; i++)
			if (is_bins(m, at - 16 - i * BIN_SIZE))
				return true;
	}
	return false;
}

/* -- areas -- */

static bool read_chunk(const struct finder *f, taddr_t at, struct chunk *out)
{
	*out = *(const struct chunk *)memory_peek(f->memory, at, sizeof(*out));
	return true;
}

/*
 * The last chunk of the area that begins with the one at @first; 0: none does. A chunk that
 * contradicts the one before it ends the area too.
 */
static taddr_t follow(struct finder *f, taddr_t first)
{
	const struct maps *maps = &f->memory->pages->maps;
	struct chunk c, next;
	taddr_t at = first;

	if (!read_chunk(f, at, &c) || c.before != IN_USE || c.size <= IN_USE)
		return 0;
	while (c.size != IN_USE && f->steps > 0) {
		uint64_t size = c.size & ~IN_USE;

		f->steps--;
		if (size == 0 || size % UNIT || size > f->left - (at - first) ||
		    !maps_find(maps, at + size) || !read_chunk(f, at + size, &next) ||
		    next.before != c.size)
			break;
		at += size;
		c = next;
	}
	f->slabs->broken += c.size != IN_USE && at > first;
	return at > first && (at - first) / UNIT <= UINT32_MAX ? at : 0;
}

static void set_run(struct slabs *p, const struct slab *slab, uint32_t i, uint32_t n)
{
	slabs_set(p, slab, i, PLACE_LIVE);
	for (uint32_t k = 1; k < n; k++)
		slabs_set(p, slab, i + k, PLACE_INNER);
}

static void add_area(struct finder *f, taddr_t first, taddr_t end)
{
	bool is_page = first % PAGE == HEADER;
	struct slab slab = {.start = is_page ? first - HEADER : first, .end = end + HEADER,
			    .first = first, .stride = UNIT,
			    .places = (uint32_t)((end - first) / UNIT), .rest = ROW_OWN,
			    .has_runs = true};
	struct chunk c;
	size_t number;

	f->left -= end - first;
	if (!slabs_add(f->slabs, &slab, &number))
		return;
	for (taddr_t at = first; at < end; at += c.size & ~IN_USE) {
		read_chunk(f, at, &c);
		if (c.size & IN_USE)
			set_run(f->slabs, slab_at(f->slabs, number),
				(uint32_t)((at - first) / UNIT), (uint32_t)(c.size / UNIT));
	}
}

static bool find_block(struct inspect_memory *m, const struct slab *slab, uint32_t i,
		       struct slab_block *out)
{
	taddr_t at = slab->first + i * slab->stride;
	uint64_t size;

	*out = (struct slab_block){at, slab->stride};
	if (!slab->has_runs)
		return true;
	if (!memory_read_word(m, at + 8, &size) || !(size & IN_USE) || size < UNIT)
		return false;
	*out = (struct slab_block){at + HEADER, (size & ~IN_USE) - HEADER};
	return true;
}

/* -- blocks with mappings of their own -- */

/* Where the block begins in the mapping [@start, @end). */
static taddr_t find_mapped(const struct finder *f, taddr_t start, taddr_t end)
{
	struct chunk c;

	for (uint64_t align = 2 * UNIT; align < end - start; align *= 2) {
		taddr_t block = ROUND_UP(start + UNIT, align);

		if (block >= end)
			break;
		if (read_chunk(f, block - HEADER, &c) && c.before == block - HEADER - start &&
		    c.size == end - (block - HEADER))
			return block;
	}
	return start + UNIT;
}

/* Returns where the mapping of the block that begins at @start ends; 0: none does. */
static taddr_t add_mapped(struct finder *f, taddr_t start)
{
	const struct map *map = maps_find(&f->memory->pages->maps, start);
	struct chunk c;
	size_t number;

	if (!map || *map->path || !read_chunk(f, start + HEADER, &c) || c.before != HEADER ||
	    (c.size + HEADER) % PAGE || c.size < HEADER || c.size > map->end - start - HEADER)
		return 0;
	struct slab slab = {.start = start, .end = start + HEADER + c.size, .places = 1,
			    .rest = ROW_OWN};

	slab.first = find_mapped(f, start, slab.end);
	slab.stride = slab.end - slab.first;
	if (slabs_add(f->slabs, &slab, &number))
		slabs_set(f->slabs, slab_at(f->slabs, number), 0, PLACE_LIVE);
	return slab.end;
}

/* -- the search -- */

static taddr_t add_at(struct finder *f, taddr_t first)
{
	taddr_t end = follow(f, first);

	if (end)
		add_area(f, first, end);
	return end;
}

static bool is_data(struct finder *f, taddr_t page)
{
	const struct allocator_input *in = f->in;

	while (f->data < in->data_count && in->data[f->data].end <= page)
		f->data++;
	return f->data < in->data_count && in->data[f->data].start <= page;
}

/* Adds what begins in @page; where the search goes on. */
static taddr_t search_page(struct finder *f, taddr_t page)
{
	taddr_t end = add_mapped(f, page), at = page + HEADER;

	if (!end)
		end = add_at(f, at);
	for (at += UNIT; !end && is_data(f, page) && at < page + PAGE; at += UNIT)
		end = add_at(f, at);
	return MAX(ROUND_UP(end, PAGE), page + PAGE);
}

static void search_all(struct finder *f)
{
	const struct resident *pages = f->memory->pages;
	taddr_t next = 0;

	for (size_t i = 0; i < pages->list.count; i++) {
		const struct page_range *r = &pages->list.data[i];
		const struct map *map = maps_find(&pages->maps, r->start);

		if (!map || !map->is_write || map->is_shared)
			continue;
		for (taddr_t at = MAX(r->start, next); at < r->end; at = next)
			next = search_page(f, at);
	}
}

static bool is_used(const struct allocator_input *in, const struct glibc_range *data)
{
	const struct resident *pages = in->memory->pages;

	for (size_t i = resident_find(pages, data->start); i < pages->list.count; i++) {
		const struct page_range *r = &pages->list.data[i];

		if (r->start >= data->end)
			break;
		for (taddr_t at = MAX(r->start, data->start); at < MIN(r->end, data->end);
		     at += PAGE)
			if (has_bins(in->memory, at))
				return true;
	}
	return false;
}

bool musl_old_find(const struct allocator_input *in, struct allocator *out)
{
	const struct resident *pages = in->memory->pages;
	struct finder f = {.in = in, .memory = in->memory, .slabs = &out->slabs,
			   .left = (pages->resident + pages->swapped) * AREA_FACTOR + AREA_MIN,
			   .steps = (pages->resident + pages->swapped) / UNIT * 4};
	size_t i = 0;

	while (i < in->data_count && !is_used(in, &in->data[i]))
		i++;
	if (i == in->data_count)
		return false;
	search_all(&f);
	out->slabs.block = find_block;
	slabs_sort(&out->slabs);
	return out->slabs.list.count > 0;
}
