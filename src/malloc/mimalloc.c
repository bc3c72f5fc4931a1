/* Reads mimalloc: pages, which both versions have; segments (2.x); regions and arenas (3.x). */
#include "malloc/allocators.h"

#include <string.h>

#include "malloc/slabs.h"

/*
 * Pages of mimalloc: adjacent slices with blocks of one size. A page has three lists of free
 * blocks: free, freed by its thread, freed by other threads. A block's first word is the link.
 */

struct mimalloc_page {
	taddr_t start, end, first; /* of the slices; of the blocks */
	uint64_t size;             /* of a block */
	uint32_t capacity, used;   /* blocks that were touched; that no list of its thread has */
	bool has_aligned;          /* blocks may begin after their places do */
	taddr_t free, local, foreign; /* the lists */
};

struct mimalloc_pages {
	struct inspect_memory *memory;
	struct slabs *slabs;
	uint64_t places_left;      /* more are not believed */
};

#define PLACES_MIN (UINT64_C(1) << 20)

static struct mimalloc_pages mimalloc_pages(struct inspect_memory *m, struct slabs *slabs)
{
	uint64_t bytes = m->pages->resident + m->pages->swapped;

	return (struct mimalloc_pages){m, slabs, bytes / sizeof(taddr_t) + PLACES_MIN};
}

/* Marks the blocks on the list from @block on; their number. */
static uint32_t read_list(struct mimalloc_pages *p, const struct slab *slab, taddr_t block)
{
	uint32_t count = 0;

	for (; block; count++)
		if (!slabs_mark_in(p->slabs, slab, block, PLACE_FREE) ||
		    !memory_read_word(p->memory, block, &block)) {
			p->slabs->broken++;
			break;
		}
	return count;
}

/*
 * Adds @page with its free blocks, and what contradicts itself to the slabs' broken.
 * The places up to the capacity, which have been touched, and the rest.
 */
static void mimalloc_pages_add(struct mimalloc_pages *p, const struct mimalloc_page *page)
{
	taddr_t middle = page->first + page->capacity * page->size;
	struct slab slab = {.start = page->start, .end = middle, .first = page->first,
			    .stride = page->size, .places = page->capacity, .rest = ROW_OWN,
			    .is_loose = page->has_aligned};

	if (page->capacity > p->places_left) {
		p->slabs->broken++;
		return;
	}
	p->places_left -= page->capacity;
	const struct slab *added =
		middle > page->start ? slabs_add(p->slabs, &slab, PLACE_LIVE) : NULL;

	if (added) {
		uint32_t own = read_list(p, added, page->free) + read_list(p, added, page->local);
		uint32_t foreign = read_list(p, added, page->foreign);

		p->slabs->broken += own + page->used != page->capacity || foreign > page->used;
	}
	slabs_add_rest(p->slabs, middle, page->end, ROW_FREE_PAGES);
}

/*
 * mimalloc 2.0.3 to 2.4 in their release form (64 bits); 2.0.3 is as 2.0.4:
 *
 *	segment     at a multiple of its size, larger only for a huge block; slices of 64 KiB, the
 *	            first of them its own. Key: its cookie ^ its address, the same for all
 *	page        some adjacent slices with blocks of one size; described at its first slice.
 *	            A size of 0: the slices are free
 *	lists       in each page: free, freed by its thread, freed by other threads; in each heap:
 *	            freed by other threads while a page was full. A block's first word is the link
 *
 * The segment of an ended thread has no thread, and its pages no heap. A segment without pages and
 * thread is kept for later.
 *
 *	offsets              2.0.4    2.0.9    2.1.4    2.1.8
 *	used pages; cookie   312; 320 208; 216 208; 216 216; 224
 *	slices, own, kind    328      224      224      248
 *	entries; thread      360; 352 248; 256 248; 256 272; 280
 *	pages; of bytes      368; 80  264; 80  264; 96  288; 96
 *
 * The blocks of a page begin after 128 bytes (2.0.4) or 384 (2.0.9) if they have up to 1024 bytes;
 * after 3 blocks of up to 64 bytes, or one of up to 512 (2.1.0); from 2.1.4 on the page says where.
 *
 * Where an aligned block begins in its place is not recorded, only that a page has such blocks.
 * 2.0.3 keeps blocks that are aligned to more than 2 MiB, although the program frees them.
 */

/*
 * Segments are searched at multiples of their size. The first one all of whose relations hold says
 * what the key is; the others need that key. The layout is the one that the most of them fit to.
 */

#define SLICE UINT64_C(65536)
#define SLICES_MAX (UINT64_C(1) << 32)
#define IS_HUGE 1u
#define HAS_ALIGNED 2u
#define LIST_FLAGS UINT64_C(3)
#define OLD_LARGE (UINT64_C(1) << 31)  /* or more */
#define OLDER_LARGE (UINT64_C(1) << 30) /* before 2.0.6 */
#define HEAP_SIZE (2 * PAGE) /* and what is in the same pages */
#define PAGE ((taddr_t)PAGE_SIZE_MIN)

struct segment_layout {
	uint64_t segment;       /* size */
	uint16_t used, counts, entries, pages; /* offsets in a segment */
	uint16_t head;          /* bytes before blocks of up to 1024; 0: see head_size */
	bool has_start;         /* descriptions of pages are struct new_page */
	uint16_t delayed;       /* in a heap: offset of its list; the thread follows */
};
static const struct segment_layout layouts[] = {
	{32u << 20, 208, 224, 3, 264, 384, false, 2840},
	{32u << 20, 208, 224, 3, 264, 0, false, 2840},
	{32u << 20, 208, 224, 3, 264, 0, true, 8},
	{32u << 20, 216, 248, 3, 288, 0, true, 8},
	{64u << 20, 312, 328, 4, 368, 128, false, 2840},
};

struct old_page {
	uint32_t slices, offset;
	uint8_t bits, unused;
	uint16_t capacity, reserved;
	uint8_t flags, zero;
	taddr_t free;
	uint32_t used, size;
	taddr_t local, foreign, heap;
	uint64_t links[3];
};
_Static_assert(sizeof(struct old_page) == 80, "as in 2.0.4");

struct new_page {
	uint32_t slices, offset;
	uint8_t bits, unused;
	uint16_t capacity, reserved;
	uint8_t flags, zero;
	taddr_t free, local;
	uint16_t used;
	uint8_t other[6];
	uint64_t size;
	taddr_t start, foreign, heap;
	uint64_t links[3];
};
_Static_assert(sizeof(struct new_page) == 96, "as in 2.1.4");

struct segment {
	taddr_t start;
	uint64_t used, key, slices, own, kind, entries, thread;
};

struct segment_page {
	taddr_t start, end, first;
	uint64_t size, slices;  /* of a block; in slices */
	uint32_t capacity, reserved, used, flags, offset;
	taddr_t free, local, foreign, heap;
};

struct heap {
	taddr_t addr;
	uint64_t thread;
};

struct segment_finder {
	const struct allocator_input *in;
	struct inspect_memory *memory;
	const struct segment_layout *layout;
	struct slabs *slabs;    /* NULL: relations are checked, nothing is added */
	uint64_t key;           /* 0 = unknown */
	uint32_t valid;         /* segments with it, all of which fit */
	struct mimalloc_pages pages;
	VEC(struct heap) heaps; /* by address */
};

/* -- descriptions -- */

static bool read_segment(const struct segment_finder *f, taddr_t at, struct segment *out)
{
	const struct segment_layout *l = f->layout;
	uint64_t used[2], count[5];

	if (!memory_read(f->memory, at + l->used, used, sizeof(used)) ||
	    !memory_read(f->memory, at + l->counts, count, sizeof(count)))
		return false;
	*out = (struct segment){.start = at, .used = used[0], .key = used[1] ^ at,
				.slices = count[0], .own = count[1], .kind = (uint32_t)count[2],
				.entries = count[l->entries], .thread = count[7 - l->entries]};
	return true;
}

static bool is_segment(const struct segment_finder *f, const struct segment *s)
{
	uint64_t most = f->layout->segment / SLICE;

	if (s->slices == 0 || s->slices > SLICES_MAX || s->own == 0 || s->own > most ||
	    s->kind > IS_HUGE || s->used > s->entries || s->entries != MIN(s->slices, most) ||
	    !maps_find(&f->memory->pages->maps, s->start + s->slices * SLICE - 1))
		return false;
	return s->kind == IS_HUGE ? s->used <= 1 && s->own < s->slices : s->slices == most;
}

/* A segment that is kept; what else is in it is old. */
static bool is_kept(const struct segment *s)
{
	return s->used == 0 && s->thread == 0;
}

static uint64_t head_size(const struct segment_layout *l, uint64_t size)
{
	if (l->head)
		return size <= 1024 ? l->head : 0;
	return size <= 64 ? 3 * size : size <= 512 ? size : 0;
}

static bool read_old(const struct segment_finder *f, taddr_t at, struct segment_page *out)
{
	struct old_page d;

	if (!memory_read(f->memory, at, &d, sizeof(d)))
		return false;
	*out = (struct segment_page){.size = d.size, .slices = d.slices, .capacity = d.capacity,
			     .reserved = d.reserved, .used = d.used, .flags = d.flags,
			     .offset = d.offset, .free = d.free, .local = d.local,
			     .foreign = d.foreign, .heap = d.heap};
	return true;
}

static bool read_new(const struct segment_finder *f, taddr_t at, struct segment_page *out)
{
	struct new_page d;

	if (!memory_read(f->memory, at, &d, sizeof(d)))
		return false;
	*out = (struct segment_page){.first = d.start, .size = d.size, .slices = d.slices,
			     .capacity = d.capacity, .reserved = d.reserved, .used = d.used,
			     .flags = d.flags, .offset = d.offset, .free = d.free,
			     .local = d.local, .foreign = d.foreign, .heap = d.heap};
	return true;
}

/* What slice @i of @s begins: a page, or free slices. False: nothing does. */
static bool read_page(const struct segment_finder *f, const struct segment *s, uint64_t i,
		      struct segment_page *out)
{
	bool is_new = f->layout->has_start;
	taddr_t at = s->start + f->layout->pages +
		     i * (is_new ? sizeof(struct new_page) : sizeof(struct old_page));

	if (!(is_new ? read_new(f, at, out) : read_old(f, at, out)) || out->slices == 0 ||
	    out->offset != 0 || out->slices > s->slices - i)
		return false;
	out->start = s->start + i * SLICE;
	out->end = out->start + out->slices * SLICE;
	if (!is_new) {
		out->first = out->start + head_size(f->layout, out->size);
		if (s->kind == IS_HUGE && (out->size == OLD_LARGE || out->size == OLDER_LARGE))
			out->size = out->end - out->first;
	}
	return true;
}

static bool is_page(const struct segment_page *p)
{
	return p->size >= sizeof(taddr_t) && p->first >= p->start && p->first < p->end &&
	       p->reserved == (p->end - p->first) / p->size && p->capacity <= p->reserved &&
	       p->used <= p->capacity;
}

/* -- free blocks -- */

/* Blocks that other threads freed while their page was full; all slabs are there. */
static void read_delayed(struct segment_finder *f, taddr_t block)
{
	while (block)
		if (!slabs_mark(f->slabs, block, 0, PLACE_FREE) ||
		    !memory_read_word(f->memory, block, &block)) {
			f->slabs->broken++;
			return;
		}
}

/* -- pages -- */

static void note_heap(struct segment_finder *f, taddr_t heap, uint64_t thread)
{
	size_t at = vec_search(&f->heaps, e, e->addr < heap);

	if (!heap || (at < f->heaps.count && f->heaps.data[at].addr == heap))
		return;
	*vec_insert(&f->heaps, at) = (struct heap){heap, thread};
}

static void add_page(struct segment_finder *f, const struct segment_page *p)
{
	const struct mimalloc_page page = {
		.start = p->start, .end = p->end, .first = p->first, .size = p->size,
		.capacity = p->capacity, .used = p->used, .has_aligned = p->flags & HAS_ALIGNED,
		.free = p->free, .local = p->local, .foreign = p->foreign & ~LIST_FLAGS};

	mimalloc_pages_add(&f->pages, &page);
}

static void add_slices(struct segment_finder *f, taddr_t start, taddr_t end, enum inspect_row row)
{
	if (f->slabs)
		slabs_add_rest(f->pages.slabs, start, end, row);
}

/*
 * Checks the pages of @s, and adds them if slabs are wanted. False: something contradicts the rest,
 * and what follows is left out.
 */
static bool walk_pages(struct segment_finder *f, const struct segment *s)
{
	uint64_t used = 0, end = s->kind == IS_HUGE ? s->own + 1 : s->entries;
	struct segment_page p;

	add_slices(f, s->start, s->start + s->own * SLICE, ROW_OWN);
	for (uint64_t i = s->own; i < end; i += p.slices) {
		if (!read_page(f, s, i, &p) || (p.size && !is_page(&p)))
			return false;
		if (!p.size) {
			add_slices(f, p.start, p.end, ROW_FREE_PAGES);
			continue;
		}
		used++;
		if (!f->slabs)
			continue;
		note_heap(f, p.heap, s->thread);
		add_page(f, &p);
	}
	return used == s->used;
}

/* -- segments -- */

/* Returns where the next one may begin. */
typedef taddr_t visit_fn(struct segment_finder *f, const struct segment *s, bool is_valid);

static void each_segment(struct segment_finder *f, visit_fn *fn)
{
	const struct resident *pages = f->memory->pages;
	taddr_t next = f->layout->segment;
	struct segment s;

	for (size_t i = 0; i < pages->list.count; i++) {
		const struct page_run *r = &pages->list.data[i];

		for (;;) {
			taddr_t at = ROUND_UP(MAX(next, r->start), f->layout->segment);

			if (at < r->start || at >= r->end)
				break;
			taddr_t end = read_segment(f, at, &s) ? fn(f, &s, is_segment(f, &s)) : 0;

			next = MAX(at + f->layout->segment, end);
		}
	}
}

static taddr_t look_for_key(struct segment_finder *f, const struct segment *s, bool is_valid)
{
	if (!f->key && is_valid && s->used > 0 && walk_pages(f, s))
		f->key = s->key;
	return 0;
}

/* Pages of large blocks are alike in several layouts. */
static taddr_t count_valid(struct segment_finder *f, const struct segment *s, bool is_valid)
{
	f->valid += is_valid && s->key == f->key && !is_kept(s) && walk_pages(f, s);
	return 0;
}

static taddr_t add_segment(struct segment_finder *f, const struct segment *s, bool is_valid)
{
	taddr_t end = s->start + s->slices * SLICE;

	if (!is_valid || s->key != f->key) {
		f->slabs->broken += is_valid || s->key == f->key;
		return 0;
	}
	if (is_kept(s)) {
		add_slices(f, s->start, s->start + f->layout->segment, ROW_FREE_PAGES);
		return 0;
	}
	f->slabs->broken += !walk_pages(f, s);
	return end;
}

/* -- heaps -- */

static bool is_data(const struct allocator_input *in, taddr_t addr)
{
	for (size_t i = 0; i < in->data_count; i++)
		if (addr >= in->data[i].start && addr < in->data[i].end)
			return true;
	return false;
}

static bool is_in_segment(const struct segment_finder *f, taddr_t addr)
{
	struct segment s;

	return read_segment(f, ROUND_DOWN(addr, f->layout->segment), &s) && s.key == f->key;
}

/* The heap of a thread is in pages of its own, the first one in the library's data. */
static void add_heaps(struct segment_finder *f)
{
	for (size_t i = 0; i < f->heaps.count; i++) {
		taddr_t addr = f->heaps.data[i].addr;

		if (addr % PAGE == 0 && !is_data(f->in, addr) && !is_in_segment(f, addr))
			add_slices(f, addr, addr + HEAP_SIZE, ROW_OWN);
	}
}

static void read_heap(struct segment_finder *f, const struct heap *heap)
{
	uint64_t delayed[2]; /* the list, the thread */

	if (!memory_read(f->memory, heap->addr + f->layout->delayed, delayed, sizeof(delayed)) ||
	    delayed[1] != heap->thread) {
		f->slabs->broken++;
		return;
	}
	/* one that the program made is in a block */
	(void)slabs_mark(f->slabs, heap->addr, 0, PLACE_INNER);
	read_delayed(f, delayed[0]);
}

static void add_all(struct segment_finder *f, struct allocator *out)
{
	f->slabs = &out->slabs;
	f->pages = mimalloc_pages(f->memory, f->slabs);
	each_segment(f, add_segment);
	add_heaps(f);
	slabs_sort(&out->slabs);
	for (size_t i = 0; i < f->heaps.count; i++)
		read_heap(f, &f->heaps.data[i]);
	vec_deinit(&f->heaps);
}

bool mimalloc_find(const struct allocator_input *in, struct allocator *out)
{
	struct segment_finder best = {0};

	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		struct segment_finder f = {.in = in, .memory = in->memory, .layout = &layouts[i]};

		each_segment(&f, look_for_key);
		if (f.key)
			each_segment(&f, count_valid);
		if (f.valid > best.valid)
			best = f;
	}
	if (best.valid)
		add_all(&best, out);
	return best.valid > 0;
}

/*
 * mimalloc 3.6 in its release form (64 bits):
 *
 *	region   256 MiB, aligned; begins with a description (128 bytes) for each of its slices of
 *	         64 KiB, so that the first 8 slices have the descriptions
 *	page     adjacent slices with blocks of one size. The descriptions of its slices point to
 *	         the one that is in use: the first slice's own, or, for blocks of up to 10 KiB, one
 *	         at the start of the slice itself. Of a single block's only two slices' do
 *	arena    adjacent regions. What describes it follows the descriptions of its first region;
 *	         a bit for each slice that is free
 *
 * A page outside all arenas has a region of its own, or several: large blocks, and those that are
 * aligned to more than 64 KiB. Descriptions of pages that were freed remain: without thread, and
 * without a block in use. The pages of thread 8 have mimalloc's own variables of threads.
 *
 *	page    self 0, thread + flags 8, free 16, local free 24, size of a block 32, used 40 (u16),
 *	        where blocks begin, from here, 48, capacity 56 (u16), reserved 58 (u16), freed by
 *	        others + flag 64, arena 104, or region, size; slice 112 (u32), slices 116 (u32),
 *	        kind 120 (u32): 3 = region, 6 = arena
 *	arena   start 40, slices 48, own slices 56, lists of bits 112: free, committed, dirty, purge
 *
 * As in mimalloc 2 it is not recorded where an aligned block begins in its place.
 */

/*
 * Regions are searched at multiples of their size, and their pages in ascending order. What is said
 * about a page must fit to where it is, and an arena's bits must say that its pages' slices, and no
 * others, are in use.
 */

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

struct region_finder {
	struct inspect_memory *memory;
	struct mimalloc_pages pages;
	struct arena arena;     /* addr 0: none */
	taddr_t last, next;     /* the last page */
	uint32_t found;         /* pages */
	VEC(taddr_t) heaps;     /* that have some */
};

/* -- arenas -- */

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

	uint64_t size = ROUND_UP(h.slices, CHUNK_BITS) / 8;

	return h.free > addr && h.committed == h.free + FREE_BITS_HEAD + size &&
	       h.dirty == h.committed + BITS_HEAD + size && h.purge == h.dirty + BITS_HEAD + size &&
	       h.purge < out->own_end;
}

static bool is_free(struct region_finder *f, uint64_t slice)
{
	uint64_t word;

	return memory_read_word(f->memory, f->arena.free_bits + slice / 64 * 8, &word) &&
	       word >> slice % 64 & 1;
}

static uint64_t count_used(struct region_finder *f)
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
static void fill(struct region_finder *f, taddr_t end)
{
	while (f->arena.done < end) {
		taddr_t start = f->arena.done, next;
		uint64_t own = own_bytes(&f->arena, start, &next);

		f->arena.done = MIN(own ? start + own : next, end);
		slabs_add_rest(f->pages.slabs, start, f->arena.done,
					own ? ROW_OWN : ROW_FREE_PAGES);
	}
}

/* Ends the arena that is being read: as many slices as its pages and itself have are in use. */
static void finish_arena(struct region_finder *f)
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
static bool enter_arena(struct region_finder *f, taddr_t addr)
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

/* Where the page of @d, described at @at, is, if that is the slice at @slice. */
static bool locate(struct region_finder *f, const struct description *d, taddr_t slice,
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
static bool has_slices(struct region_finder *f, const struct description *d, taddr_t at,
		       taddr_t self)
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

static void note_page_heap(struct region_finder *f, taddr_t heap)
{
	for (size_t i = 0; i < f->heaps.count; i++)
		if (f->heaps.data[i] == heap)
			return;
	if (f->heaps.count < HEAPS_MAX)
		*vec_add(&f->heaps) = heap;
}

static void add_region_page(struct region_finder *f, const struct description *d,
			    const struct mimalloc_page *p)
{
	if (d->kind == KIND_ARENA) {
		fill(f, p->start);
		f->arena.done = p->end;
		f->arena.used += d->slices;
	} else {
		finish_arena(f);
		slabs_add_rest(f->pages.slabs, ROUND_DOWN(p->start, REGION), p->start, ROW_OWN);
	}
	if ((d->thread & ~FLAGS) == OWN_THREAD)
		slabs_add_rest(f->pages.slabs, p->start, p->end, ROW_OWN);
	else
		mimalloc_pages_add(&f->pages, p);
	note_page_heap(f, d->heap);
	f->last = p->start;
	f->next = p->end;
	f->found++;
}

/* The page that the description at @at of the slice at @slice leads to, if it begins there. */
static void read_region_page(struct region_finder *f, taddr_t at, taddr_t slice, taddr_t self)
{
	struct description d;

	if (!memory_read(f->memory, self, &d, sizeof(d)) ||
	    ((d.thread & ~FLAGS) == 0 && d.used == 0))
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
		add_region_page(f, &d, &p);
}

/* -- regions -- */

/* A slice that begins no page is free, or has the description of an earlier one. */
static void read_slice(struct region_finder *f, taddr_t region, taddr_t at)
{
	taddr_t slice = region + (at - region) / sizeof(struct description) * SLICE, self;

	if ((at >= f->last && at < f->next) || slice < f->next ||
	    !memory_read_word(f->memory, at, &self))
		return;
	if (self == at || self == slice)
		read_region_page(f, at, slice, self);
}

static void read_regions(struct region_finder *f)
{
	const struct resident *pages = f->memory->pages;

	for (size_t i = 0; i < pages->list.count; i++) {
		const struct page_run *r = &pages->list.data[i];

		/* a core file has the kernel's [vsyscall], too: none follows the last region */
		for (taddr_t region = ROUND_DOWN(r->start, REGION);
		     region < r->end && region < UINT64_MAX - 2 * REGION; region += REGION) {
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
static void mark_heaps(struct region_finder *f)
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
	struct region_finder f = {.memory = in->memory};

	f.pages = mimalloc_pages(in->memory, &out->slabs);
	read_regions(&f);
	slabs_sort(&out->slabs);
	mark_heaps(&f);
	vec_deinit(&f.heaps);
	return f.found > 0;
}
