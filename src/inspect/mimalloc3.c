/*
 * Regions are searched at multiples of their size, and their pages in ascending order. What is said
 * about a page must fit to where it is, and an arena's bits must say that its pages' slices, and no
 * others, are in use. See mimalloc3.h.
 */
#include "inspect/mimalloc3.h"

#include "inspect/mimalloc_page.h"

#define SLICE UINT64_C(65536)
#define REGION (UINT64_C(256) << 20)
#define DESCRIPTIONS (REGION / SLICE * sizeof(struct description)) /* bytes at its start */
#define ARENA_SLICES_MAX (UINT64_C(1) << 18)
#define PAGE_SLICES 64u /* of a page with several blocks, or less */

#define FLAGS UINT64_C(3) /* of a thread; the rest is 0 or ABANDONED without one */
#define HAS_ALIGNED 2u
#define ABANDONED 4u
#define OWN_THREAD 8u
#define IS_OWNED UINT64_C(1) /* flag of the list of blocks that others freed */
#define KIND_REGION 3u
#define KIND_ARENA 6u

#define HEAPS_MAX 1024u /* more are not looked for */
#define HEAP_BLOCK 7168u /* bytes; what points to other blocks is in the first ones */
#define HEAP_READ 2048u

#define CHUNK_BITS 512u
#define FREE_BITS_HEAD 448u /* bytes before the bits of free slices */
#define BITS_HEAD 128u      /* of other lists */

struct description {
	taddr_t self;
	uint64_t thread;
	taddr_t free, local;
	uint64_t size;
	uint16_t used, other[3];
	uint64_t first;         /* from the description on */
	uint16_t capacity, reserved, committed, state;
	taddr_t foreign, theap, heap, links[2];
	taddr_t owner;          /* the arena, or the region */
	union {
		struct {
			uint32_t slice, slices;
		};
		uint64_t bytes; /* of the region */
	};
	uint32_t kind, memory;
};
_Static_assert(sizeof(struct description) == 128, "as in 3.6.0");

struct arena_head {
	uint64_t memory[5];
	taddr_t start;
	uint64_t slices, own;
	uint64_t times[6];
	taddr_t free, committed, dirty, purge;
};
_Static_assert(sizeof(struct arena_head) == 144, "as in 3.6.0");

struct arena {
	taddr_t addr, start, end, own_end, free_bits;
	taddr_t done;           /* what is before it was added */
	uint64_t slices, used;  /* slices of pages */
};

struct finder {
	struct inspect_memory *memory;
	struct mimalloc_pages pages;
	struct arena arena;     /* addr 0: none */
	taddr_t last, next;     /* the last page */
	uint32_t found;         /* pages */
	VEC(taddr_t) heaps;     /* that have some */
};

/* -- arenas -- */

static uint64_t bits_size(uint64_t slices)
{
	return ROUND_UP(slices, CHUNK_BITS) / 8;
}

static bool read_arena(struct inspect_memory *m, taddr_t addr, struct arena *out)
{
	struct arena_head h;

	if (!memory_read(m, addr, &h, sizeof(h)) || h.start % REGION ||
	    addr != h.start + DESCRIPTIONS || h.slices > ARENA_SLICES_MAX || h.own > h.slices ||
	    h.own * SLICE <= DESCRIPTIONS)
		return false;
	*out = (struct arena){.addr = addr, .start = h.start, .end = h.start + h.slices * SLICE,
			      .own_end = h.start + h.own * SLICE, .done = h.start,
			      .free_bits = h.free + FREE_BITS_HEAD, .slices = h.slices};

	uint64_t size = bits_size(h.slices);

	return h.free > addr && h.committed == h.free + FREE_BITS_HEAD + size &&
	       h.dirty == h.committed + BITS_HEAD + size && h.purge == h.dirty + BITS_HEAD + size &&
	       h.purge < out->own_end;
}

static bool is_free(struct finder *f, uint64_t slice)
{
	uint64_t word;

	return memory_read_word(f->memory, f->arena.free_bits + slice / 64 * 8, &word) &&
	       word >> slice % 64 & 1;
}

static uint64_t count_used(struct finder *f)
{
	uint64_t used = 0, word;

	for (uint64_t i = 0; i < f->arena.slices; i += 64) {
		uint64_t n = MIN(f->arena.slices - i, 64);

		if (!memory_read_word(f->memory, f->arena.free_bits + i / 8, &word))
			word = 0;
		used += n - (uint64_t)__builtin_popcountll(word & UINT64_MAX >> (64 - n));
	}
	return used;
}

/* How many bytes from @addr on are an arena's own; else 0, and where the next ones begin. */
static uint64_t own_bytes(const struct arena *a, taddr_t addr, taddr_t *next_out)
{
	taddr_t region = ROUND_DOWN(addr, REGION);
	taddr_t end = region == a->start ? a->own_end : region + DESCRIPTIONS;

	*next_out = region + REGION;
	return addr < end ? end - addr : 0;
}

/* Adds what no page has, up to @end. */
static void fill(struct finder *f, taddr_t end)
{
	while (f->arena.done < end) {
		taddr_t start = f->arena.done, next;
		uint64_t own = own_bytes(&f->arena, start, &next);

		f->arena.done = MIN(own ? start + own : next, end);
		mimalloc_pages_add_rest(&f->pages, start, f->arena.done,
					own ? ROW_OWN : ROW_FREE_PAGES);
	}
}

/* Ends the arena that is being read: as many slices as its pages and itself have are in use. */
static void finish_arena(struct finder *f)
{
	const struct arena *a = &f->arena;
	uint64_t own = (a->own_end - a->start) / SLICE;

	if (!a->addr)
		return;
	for (taddr_t r = a->start + REGION; r < a->end; r += REGION)
		own += DESCRIPTIONS / SLICE;
	f->pages.slabs->broken += count_used(f) != own + a->used;
	fill(f, a->end);
	f->arena = (struct arena){0};
}

/* Whether @addr is the arena that is being read, or a later one, which becomes it. */
static bool enter_arena(struct finder *f, taddr_t addr)
{
	struct arena a;

	if (f->arena.addr == addr)
		return true;
	if (!read_arena(f->memory, addr, &a) || a.start < f->arena.end || a.start < f->next)
		return false;
	finish_arena(f);
	f->arena = a;
	return true;
}

/* -- pages -- */

static bool is_in_use(const struct description *d)
{
	return (d->thread & ~FLAGS) != 0 || d->used > 0;
}

/* Where the page of @d, described at @at, is, if that is the slice at @slice. */
static bool locate(struct finder *f, const struct description *d, taddr_t slice,
		   struct mimalloc_page *out)
{
	taddr_t region = ROUND_DOWN(slice, REGION);

	out->start = slice;
	if (d->kind == KIND_ARENA && enter_arena(f, d->owner)) {
		out->end = slice + d->slices * SLICE;
		return slice == f->arena.start + d->slice * SLICE && d->slices > 0 &&
		       slice >= f->arena.done && out->end <= f->arena.end;
	}
	out->end = region + d->bytes;
	return d->kind == KIND_REGION && d->owner == region && d->bytes % PAGE_SIZE_MIN == 0 &&
	       out->end > slice && slice >= f->next &&
	       maps_find(&f->memory->pages->maps, out->end - 1);
}

static bool has_blocks(const struct description *d, const struct mimalloc_page *p)
{
	if (d->size < sizeof(taddr_t) || p->first < p->start || p->first >= p->end ||
	    d->capacity > d->reserved || d->used > d->capacity)
		return false;
	return d->reserved == 1 ? d->size <= p->end - p->first :
				  d->reserved == (p->end - p->first) / d->size;
}

/* Whether all slices of a page in an arena are in use, and lead to it, if it has several blocks. */
static bool has_slices(struct finder *f, const struct description *d, taddr_t at, taddr_t self)
{
	uint64_t word;

	for (uint64_t i = 0; i < d->slices; i++)
		if (is_free(f, d->slice + i))
			return false;
	for (uint64_t i = 1; i < d->slices && d->reserved > 1; i++)
		if (i >= PAGE_SLICES ||
		    !memory_read_word(f->memory, at + i * sizeof(*d), &word) || word != self)
			return false;
	return true;
}

static void add_region(struct finder *f, const struct mimalloc_page *p)
{
	taddr_t region = ROUND_DOWN(p->start, REGION);

	finish_arena(f);
	mimalloc_pages_add_rest(&f->pages, region, p->start, ROW_OWN);
}

static void note_heap(struct finder *f, taddr_t heap)
{
	for (size_t i = 0; i < f->heaps.count; i++)
		if (f->heaps.data[i] == heap)
			return;
	if (f->heaps.count < HEAPS_MAX)
		*vec_add(&f->heaps) = heap;
}

static void add_page(struct finder *f, const struct description *d, const struct mimalloc_page *p)
{
	if (d->kind == KIND_ARENA) {
		fill(f, p->start);
		f->arena.done = p->end;
		f->arena.used += d->slices;
	} else {
		add_region(f, p);
	}
	if ((d->thread & ~FLAGS) == OWN_THREAD)
		mimalloc_pages_add_rest(&f->pages, p->start, p->end, ROW_OWN);
	else
		mimalloc_pages_add(&f->pages, p);
	note_heap(f, d->heap);
	f->last = p->start;
	f->next = p->end;
	f->found++;
}

/* The page that the description at @at of the slice at @slice leads to, if it begins there. */
static void read_page(struct finder *f, taddr_t at, taddr_t slice, taddr_t self)
{
	struct description d;

	if (!memory_read(f->memory, self, &d, sizeof(d)) || !is_in_use(&d))
		return;
	struct mimalloc_page p = {
		.first = self + d.first, .size = d.size, .capacity = d.capacity, .used = d.used,
		.has_aligned = d.thread & HAS_ALIGNED, .free = d.free, .local = d.local,
		.foreign = d.foreign & ~IS_OWNED};

	if (!locate(f, &d, slice, &p)) {
		f->pages.slabs->broken += slice < f->arena.end;
		return;
	}
	if (!has_blocks(&d, &p) || (d.kind == KIND_ARENA && !has_slices(f, &d, at, self)))
		f->pages.slabs->broken++;
	else
		add_page(f, &d, &p);
}

/* -- regions -- */

/* A slice that begins no page is free, or has the description of an earlier one. */
static void read_slice(struct finder *f, taddr_t region, taddr_t at)
{
	taddr_t slice = region + (at - region) / sizeof(struct description) * SLICE, self;

	if ((at >= f->last && at < f->next) || slice < f->next ||
	    !memory_read_word(f->memory, at, &self))
		return;
	if (self == at || self == slice)
		read_page(f, at, slice, self);
}

static void read_regions(struct finder *f)
{
	const struct resident *pages = f->memory->pages;

	for (size_t i = 0; i < pages->list.count; i++) {
		const struct page_range *r = &pages->list.data[i];

		for (taddr_t region = ROUND_DOWN(r->start, REGION); region < r->end;
		     region += REGION) {
			taddr_t at = MAX(r->start, region);
			taddr_t end = MIN(r->end, region + DESCRIPTIONS);

			for (; at < end; at += sizeof(struct description))
				read_slice(f, region, at);
		}
	}
	finish_arena(f);
}

/*
 * A heap that the program made is in a block, and so are the lists of bits to which it points. The
 * first one is in the library's data.
 */
static void mark_heaps(struct finder *f)
{
	size_t kept = 0;
	taddr_t word;

	for (size_t i = 0; i < f->heaps.count; i++)
		if (slabs_mark(f->pages.slabs, f->heaps.data[i], HEAP_BLOCK, PLACE_INNER))
			f->heaps.data[kept++] = f->heaps.data[i];
	f->heaps.count = kept;
	for (size_t i = 0; i < kept * HEAP_READ; i += sizeof(word))
		if (memory_read_word(f->memory, f->heaps.data[i / HEAP_READ] + i % HEAP_READ,
				     &word) && word)
			(void)slabs_mark(f->pages.slabs, word, 0, PLACE_INNER);
}

bool mimalloc3_find(const struct allocator_input *in, struct allocator *out)
{
	struct finder f = {.memory = in->memory};

	mimalloc_pages_init(&f.pages, in->memory, &out->slabs);
	read_regions(&f);
	slabs_sort(&out->slabs);
	mark_heaps(&f);
	vec_deinit(&f.heaps);
	return f.found > 0;
}
