/*
 * Reads musl's malloc: mallocng, area by area and group by group; then the one before, from chunk
 * to chunk.
 */
#include "malloc/allocators.h"

#include <string.h>

/*
 * musl's malloc since 1.2.1 (mallocng, 64 bits):
 *
 *	context     0 secret, 56 first area, 64 last area; 928 bytes in libc's data
 *	area        0 secret, 8 next, 16 int slots, 24 descriptions of groups (meta), 40 bytes each;
 *	            one page
 *	meta        16 group or 0, 24 int available, 28 int freed: a bit for each of its slots,
 *	            32 bits: 5 last slot, 1 may be freed, 6 size class, 52 pages of its mapping
 *	group       0 its meta, 16 slots
 *
 * A slot that is neither available nor freed holds a block, or an inner group. The four bytes
 * before a slot say where the block begins:
 *
 *	-3          7 << 5: the block is 16 times the number at -2 after the slot's start, or a
 *	            multiple of 1 MiB more
 *	            else the block is at its start, and these are the bytes before the block:
 *	-4          1 if the offset is at -8, 32 bits
 *	-3          5 bits number of the slot; 3 bits unused bytes at its end, 5: it is written in
 *	            the last 4 bytes of the slot; 6: an inner group
 *	-2          offset from slot 0, in 16 bytes
 */

#define UNIT 16u
#define AREA_SIZE 4096u
#define AREA_HEAD 24u
#define META_SIZE 40u
#define AREA_SLOTS ((AREA_SIZE - AREA_HEAD) / META_SIZE)
#define FIRST_AREA_AT 56u
#define LAST_AREA_AT 64u
#define HEADER 4u              /* before a block; the last bytes of the slot before */
#define IS_MOVED (7u << 5)
#define MOVED_STEP (UINT64_C(65536) * UNIT)
#define IS_LARGE_REST 5u
#define SINGLE_CLASS 63u

/* In units. */
static const uint16_t class_units[] = {
	1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 18, 20, 25, 31, 36, 42, 50, 63, 72, 84, 102, 127,
	146, 170, 204, 255, 292, 340, 409, 511, 584, 682, 818, 1023, 1169, 1364, 1637, 2047,
	2340, 2730, 3276, 4095, 4680, 5460, 6552, 8191,
};

struct meta {
	uint64_t before, next;
	taddr_t group;
	uint32_t available, freed;
	uint64_t bits;
};
struct area {
	uint64_t secret, next;
	uint32_t slots, unused;
	struct meta meta[AREA_SLOTS];
};

/* -- blocks -- */

/* The bytes before a block. */
struct slot_header {
	uint32_t far;           /* -8 */
	uint8_t is_far;         /* -4 */
	uint8_t bits;           /* -3 */
	uint16_t offset;        /* -2 */
};

/*
 * Slots follow one another and are looked at in ascending order, with the blocks in them. A group
 * of one block is large, and little of it is looked at.
 */
static bool read_bytes(struct inspect_memory *m, const struct slab *slab, taddr_t addr, void *buf,
		       size_t size)
{
	if (slab->places == 1)
		return memory_read(m, addr, buf, size);
	memcpy(buf, memory_peek(m, addr, size), size);
	return true;
}

static bool read_header(struct inspect_memory *m, const struct slab *slab, taddr_t block,
			struct slot_header *out)
{
	return read_bytes(m, slab, block - sizeof(*out), out, sizeof(*out));
}

/* Whether @h is the header of the block at @addr in slot @i of @slab. */
static bool is_header(const struct slot_header *h, const struct slab *slab, uint32_t i,
		      taddr_t addr)
{
	uint64_t offset = h->is_far ? h->far : h->offset;

	return h->is_far <= 1 && (h->bits & 31) == i && offset * UNIT == addr - slab->first;
}

/* How many bytes at the end of its slot, which ends at @end, are not the block's. */
static bool read_rest(struct inspect_memory *m, const struct slab *slab,
		      const struct slot_header *h, taddr_t end, uint32_t *out)
{
	*out = h->bits >> 5;
	if (*out < IS_LARGE_REST)
		return true;
	return *out == IS_LARGE_REST &&
	       read_bytes(m, slab, end - sizeof(*out), out, sizeof(*out)) &&
	       *out >= IS_LARGE_REST;
}

/* The aligned block in slot @i. Of how far it is from the slot's start only 16 bits are known. */
static bool find_moved(struct inspect_memory *m, const struct slab *slab, uint32_t i, taddr_t first,
		       taddr_t *out)
{
	taddr_t end = slab->first + (i + 1) * slab->stride - HEADER;
	struct slot_header h;

	for (taddr_t addr = first; addr < end && read_header(m, slab, addr, &h);
	     addr += MOVED_STEP)
		if (is_header(&h, slab, i, addr)) {
			*out = addr;
			return true;
		}
	return false;
}

static bool find_block(struct inspect_memory *m, const struct slab *slab, uint32_t i,
		       struct slab_block *out)
{
	taddr_t slot = slab->first + i * slab->stride, end = slot + slab->stride - HEADER;
	taddr_t addr = slot;
	struct slot_header h;
	uint32_t rest;

	if (!read_header(m, slab, slot, &h))
		return false;
	if (h.bits == IS_MOVED && !find_moved(m, slab, i, slot + (uint64_t)h.offset * UNIT, &addr))
		return false;
	if (!read_header(m, slab, addr, &h) || !is_header(&h, slab, i, addr) ||
	    !read_rest(m, slab, &h, end, &rest) || rest > end - addr)
		return false;
	*out = (struct slab_block){addr, end - addr - rest};
	return true;
}

/* -- groups -- */

/* The group of @e, whose address is @at. */
static bool add_group(struct inspect_memory *m, const struct meta *e, taddr_t at, struct slabs *out)
{
	uint32_t last = e->bits & 31, is_freeable = e->bits >> 5 & 1, class = e->bits >> 6 & 63;
	uint64_t pages = e->bits >> 12, size = pages * PAGE_SIZE_MIN, meta;
	struct slab slab = {.start = e->group, .first = e->group + UNIT, .places = last + 1,
			    .rest = ROW_OWN, .is_inner = size == 0 && is_freeable};

	if (e->group % UNIT || !memory_read_word(m, e->group, &meta) || meta != at ||
	    (class >= ARRAY_SIZE(class_units) && class != SINGLE_CLASS) ||
	    pages > UINT32_MAX)
		return false;
	if (last == 0 && size > 0)
		slab.stride = size - UNIT;
	else if (class != SINGLE_CLASS)
		slab.stride = class_units[class] * UNIT;
	slab.end = e->group + (size ? size : UNIT + slab.places * slab.stride);
	const struct slab *added = slabs_add(out, &slab, PLACE_LIVE);

	for (uint32_t i = 0; added && i < added->places; i++)
		if ((e->available | e->freed) >> i & 1)
			slabs_set(out, added, i, PLACE_FREE);
	return added != NULL;
}

/* -- areas -- */

/* The area at @at, if it is one; false: it is none. */
static bool read_area(struct inspect_memory *m, taddr_t at, uint64_t secret, struct area *out)
{
	return at && at % AREA_SIZE == 0 && memory_read(m, at, out, sizeof(*out)) &&
	       out->secret == secret && out->slots <= AREA_SLOTS;
}

static size_t add_area(struct inspect_memory *m, const struct area *a, taddr_t at,
		       struct slabs *out)
{
	size_t found = 0;

	for (uint32_t i = 0; i < a->slots; i++) {
		if (!a->meta[i].group)
			continue;
		if (add_group(m, &a->meta[i], at + AREA_HEAD + i * META_SIZE, out))
			found++;
		else
			out->broken++;
	}
	return found;
}

/* The areas of a context, which begins at @word. Returns how many groups they have. */
static size_t add_areas(struct inspect_memory *m, const uint64_t *word, struct slabs *out)
{
	uint64_t most = (m->pages->resident + m->pages->swapped) / AREA_SIZE;
	taddr_t at = word[FIRST_AREA_AT / sizeof(*word)], last = at;
	size_t found = 0;
	struct area a;

	while (at && most-- > 0 && read_area(m, at, word[0], &a)) {
		found += add_area(m, &a, at, out);
		last = at;
		at = a.next;
		if (last == word[LAST_AREA_AT / sizeof(*word)])
			return found;
	}
	out->broken++;
	return found;
}

/* Whether @word is where a context begins. */
static bool is_context(struct inspect_memory *m, const uint64_t *word)
{
	taddr_t area = word[FIRST_AREA_AT / sizeof(*word)];
	uint64_t secret;

	return word[0] && area && area % AREA_SIZE == 0 &&
	       word[LAST_AREA_AT / sizeof(*word)] % AREA_SIZE == 0 &&
	       memory_read_word(m, area, &secret) && secret == word[0];
}

struct context_search {
	struct inspect_memory *memory;
	struct slabs *slabs;
};

/* Adds the areas of the context at @word, if it is one that has groups. */
static bool add_context(void *ctx, taddr_t at, const uint64_t *word)
{
	const struct context_search *s = ctx;

	(void)at;
	if (!is_context(s->memory, word))
		return false;
	if (add_areas(s->memory, word, s->slabs) > 0)
		return true;
	slabs_deinit(s->slabs);
	s->slabs->broken = 0;
	return false;
}

bool musl_find(const struct allocator_input *in, struct allocator *out)
{
	struct context_search search = {in->memory, &out->slabs};

	for (size_t i = 0; i < in->data_count; i++)
		if (memory_find_word(in->memory, &in->data[i], add_context, &search)) {
			out->slabs.block = find_block;
			slabs_sort(&out->slabs);
			slabs_mark_inner(&out->slabs);
			return true;
		}
	return false;
}

/*
 * musl's malloc before 1.2.1, which later versions have as oldmalloc (64 bits):
 *
 *	bins        8 bytes: a bit for each list that is not empty; 64 lists, 24 bytes each: int
 *	            lock, int waiters, 8 first chunk, 16 last; in libc's data. A list that was never
 *	            used is 0; an empty one refers to itself, as to a chunk 8 bytes before it
 *	chunk       0 size of the one before, 8 size, each + 1 if it is in use; 16 block, or, if it
 *	            is free, next and previous chunk of its list. At 16 more than a multiple of 32
 *	area        chunks that follow one another; the first has no chunk before it, the last one
 *	            has no size: in memory of brk or mmap, or what is left of a page of a library's
 *	            data
 *
 * A chunk with a mapping of its own is 16 bytes after its start, which it has at 0, and not marked
 * as in use. An aligned block has another such header.
 */

/*
 * Areas are searched in memory that was written, where one may begin, and followed from chunk to
 * chunk: each must have the size that the next one says.
 */

#define PAGE ((taddr_t)PAGE_SIZE_MIN)
#define SIZE_ALIGN 32u
#define OVERHEAD 16u
#define IN_USE UINT64_C(1)
#define BINS 64u
#define BIN_SIZE 24u
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

struct chunk_finder {
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
	taddr_t self = at - OVERHEAD;
	uint64_t next, before;

	*empty_out = first == self && last == self;
	return *empty_out ||
	       (first % SIZE_ALIGN == OVERHEAD && last % SIZE_ALIGN == OVERHEAD &&
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

/* Whether @word, at @at, is that of a list: it may be any of them. */
static bool is_of_bins(void *memory, taddr_t at, const uint64_t *word)
{
	bool is_empty;

	if (!word[0] || !word[1] || !is_list(memory, at, word[0], word[1], &is_empty))
		return false;
	for (uint32_t i = 0; i < BINS; i++)
		if (is_bins(memory, at - 16 - i * BIN_SIZE))
			return true;
	return false;
}

/* -- areas -- */

static struct chunk read_chunk(const struct chunk_finder *f, taddr_t at)
{
	return *(const struct chunk *)memory_peek(f->memory, at, sizeof(struct chunk));
}

/*
 * The last chunk of the area that begins with the one at @first; 0: none does. A chunk that
 * contradicts the one before it ends the area too.
 */
static taddr_t follow(struct chunk_finder *f, taddr_t first)
{
	const struct maps *maps = &f->memory->pages->maps;
	taddr_t at = first;
	struct chunk c = read_chunk(f, at), next;

	if (c.before != IN_USE || c.size <= IN_USE)
		return 0;
	while (c.size != IN_USE && f->steps > 0) {
		uint64_t size = c.size & ~IN_USE;

		f->steps--;
		if (size == 0 || size % SIZE_ALIGN || size > f->left - (at - first) ||
		    !maps_find(maps, at + size))
			break;
		next = read_chunk(f, at + size);
		if (next.before != c.size)
			break;
		at += size;
		c = next;
	}
	f->slabs->broken += c.size != IN_USE && at > first;
	return at > first && (at - first) / SIZE_ALIGN <= UINT32_MAX ? at : 0;
}

static void add_chunks(struct chunk_finder *f, taddr_t first, taddr_t end)
{
	bool is_page = first % PAGE == OVERHEAD;
	struct slab slab = {.start = is_page ? first - OVERHEAD : first, .end = end + OVERHEAD,
			    .first = first, .stride = SIZE_ALIGN,
			    .places = (uint32_t)((end - first) / SIZE_ALIGN), .rest = ROW_OWN,
			    .has_runs = true};
	struct chunk c;

	f->left -= end - first;
	const struct slab *added = slabs_add(f->slabs, &slab, PLACE_FREE);

	if (!added)
		return;
	for (taddr_t at = first; at < end; at += c.size & ~IN_USE) {
		c = read_chunk(f, at);
		if (c.size & IN_USE)
			for (uint32_t k = 0; k < (uint32_t)(c.size / SIZE_ALIGN); k++)
				slabs_set(f->slabs, added,
					  (uint32_t)((at - first) / SIZE_ALIGN) + k,
					  k ? PLACE_INNER : PLACE_LIVE);
	}
}

static bool find_chunk_block(struct inspect_memory *m, const struct slab *slab, uint32_t i,
		       struct slab_block *out)
{
	taddr_t at = slab->first + i * slab->stride;
	uint64_t size;

	*out = (struct slab_block){at, slab->stride};
	if (!slab->has_runs)
		return true;
	if (!memory_read_word(m, at + 8, &size) || !(size & IN_USE) || size < SIZE_ALIGN)
		return false;
	*out = (struct slab_block){at + OVERHEAD, (size & ~IN_USE) - OVERHEAD};
	return true;
}

/* -- blocks with mappings of their own -- */

/* Where the block begins in the mapping [@start, @end). */
static taddr_t find_mapped(const struct chunk_finder *f, taddr_t start, taddr_t end)
{
	struct chunk c;

	for (uint64_t align = 2 * SIZE_ALIGN; align < end - start; align *= 2) {
		taddr_t block = ROUND_UP(start + SIZE_ALIGN, align);

		if (block >= end)
			break;
		c = read_chunk(f, block - OVERHEAD);
		if (c.before == block - OVERHEAD - start &&
		    c.size == end - (block - OVERHEAD))
			return block;
	}
	return start + SIZE_ALIGN;
}

/* Returns where the mapping of the block that begins at @start ends; 0: none does. */
static taddr_t add_mapped(struct chunk_finder *f, taddr_t start)
{
	const struct map *map = maps_find(&f->memory->pages->maps, start);
	struct chunk c;

	if (!map || *map->path)
		return 0;
	c = read_chunk(f, start + OVERHEAD);
	if (c.before != OVERHEAD ||
	    (c.size + OVERHEAD) % PAGE || c.size < OVERHEAD || c.size > map->end - start - OVERHEAD)
		return 0;
	struct slab slab = {.start = start, .end = start + OVERHEAD + c.size, .places = 1,
			    .rest = ROW_OWN};

	slab.first = find_mapped(f, start, slab.end);
	slab.stride = slab.end - slab.first;
	slabs_add(f->slabs, &slab, PLACE_LIVE);
	return slab.end;
}

/* -- the search -- */

static taddr_t add_at(struct chunk_finder *f, taddr_t first)
{
	taddr_t end = follow(f, first);

	if (end)
		add_chunks(f, first, end);
	return end;
}

static bool is_data(struct chunk_finder *f, taddr_t page)
{
	const struct allocator_input *in = f->in;

	while (f->data < in->data_count && in->data[f->data].end <= page)
		f->data++;
	return f->data < in->data_count && in->data[f->data].start <= page;
}

/* Adds what begins in @page; where the search goes on. */
static taddr_t search_chunks(struct chunk_finder *f, taddr_t page)
{
	taddr_t end = add_mapped(f, page), at = page + OVERHEAD;

	if (!end)
		end = add_at(f, at);
	for (at += SIZE_ALIGN; !end && is_data(f, page) && at < page + PAGE; at += SIZE_ALIGN)
		end = add_at(f, at);
	return MAX(ROUND_UP(end, PAGE), page + PAGE);
}

static void search_all(struct chunk_finder *f)
{
	const struct resident *pages = f->memory->pages;
	taddr_t next = 0;

	for (size_t i = 0; i < pages->list.count; i++) {
		const struct page_run *r = &pages->list.data[i];
		const struct map *map = maps_find(&pages->maps, r->start);

		if (!map || !map->is_write || map->is_shared)
			continue;
		for (taddr_t at = MAX(r->start, next); at < r->end; at = next)
			next = search_chunks(f, at);
	}
}

bool musl_old_find(const struct allocator_input *in, struct allocator *out)
{
	const struct resident *pages = in->memory->pages;
	struct chunk_finder f = {.in = in, .memory = in->memory, .slabs = &out->slabs,
			   .left = (pages->resident + pages->swapped) * AREA_FACTOR + AREA_MIN,
			   .steps = (pages->resident + pages->swapped) / SIZE_ALIGN * 4};
	size_t i = 0;

	while (i < in->data_count &&
	       !memory_find_word(in->memory, &in->data[i], is_of_bins, in->memory))
		i++;
	if (i == in->data_count)
		return false;
	search_all(&f);
	out->slabs.block = find_chunk_block;
	slabs_sort(&out->slabs);
	return out->slabs.list.count > 0;
}
