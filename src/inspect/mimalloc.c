/*
 * Segments are searched at multiples of their size. The first one all of whose relations hold says
 * what the key is; the others need that key. The layout is the one that the most of them fit to.
 * See mimalloc.h.
 */
#include "inspect/mimalloc.h"

#include <string.h>

#include "inspect/mimalloc_page.h"

#define SLICE UINT64_C(65536)
#define SLICES_MAX (UINT64_C(1) << 32)
#define IS_HUGE 1u
#define HAS_ALIGNED 2u
#define LIST_FLAGS UINT64_C(3)
#define OLD_LARGE (UINT64_C(1) << 31)  /* or more */
#define OLDER_LARGE (UINT64_C(1) << 30) /* before 2.0.6 */
#define HEAP_SIZE (2 * PAGE) /* and what is in the same pages */
#define PAGE ((taddr_t)PAGE_SIZE_MIN)

struct layout {
	uint64_t segment;       /* size */
	uint16_t used, counts, entries, pages; /* offsets in a segment */
	uint16_t head;          /* bytes before blocks of up to 1024; 0: see head_size */
	bool has_start;         /* descriptions of pages are struct new_page */
	uint16_t delayed;       /* in a heap: offset of its list; the thread follows */
};
static const struct layout layouts[] = {
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

struct page {
	taddr_t start, end, first;
	uint64_t size, slices;  /* of a block; in slices */
	uint32_t capacity, reserved, used, flags, offset;
	taddr_t free, local, foreign, heap;
};

struct heap {
	taddr_t addr;
	uint64_t thread;
};

struct finder {
	const struct allocator_input *in;
	struct inspect_memory *memory;
	const struct layout *layout;
	struct slabs *slabs;    /* NULL: relations are checked, nothing is added */
	uint64_t key;           /* 0 = unknown */
	uint32_t valid;         /* segments with it, all of which fit */
	struct mimalloc_pages pages;
	VEC(struct heap) heaps; /* by address */
};

/* -- descriptions -- */

static bool read_segment(const struct finder *f, taddr_t at, struct segment *out)
{
	const struct layout *l = f->layout;
	uint64_t used[2], count[5];

	if (!memory_read(f->memory, at + l->used, used, sizeof(used)) ||
	    !memory_read(f->memory, at + l->counts, count, sizeof(count)))
		return false;
	*out = (struct segment){.start = at, .used = used[0], .key = used[1] ^ at,
				.slices = count[0], .own = count[1], .kind = (uint32_t)count[2],
				.entries = count[l->entries], .thread = count[7 - l->entries]};
	return true;
}

static bool is_segment(const struct finder *f, const struct segment *s)
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

static uint64_t head_size(const struct layout *l, uint64_t size)
{
	if (l->head)
		return size <= 1024 ? l->head : 0;
	return size <= 64 ? 3 * size : size <= 512 ? size : 0;
}

static bool read_old(const struct finder *f, taddr_t at, struct page *out)
{
	struct old_page d;

	if (!memory_read(f->memory, at, &d, sizeof(d)))
		return false;
	*out = (struct page){.size = d.size, .slices = d.slices, .capacity = d.capacity,
			     .reserved = d.reserved, .used = d.used, .flags = d.flags,
			     .offset = d.offset, .free = d.free, .local = d.local,
			     .foreign = d.foreign, .heap = d.heap};
	return true;
}

static bool read_new(const struct finder *f, taddr_t at, struct page *out)
{
	struct new_page d;

	if (!memory_read(f->memory, at, &d, sizeof(d)))
		return false;
	*out = (struct page){.first = d.start, .size = d.size, .slices = d.slices,
			     .capacity = d.capacity, .reserved = d.reserved, .used = d.used,
			     .flags = d.flags, .offset = d.offset, .free = d.free,
			     .local = d.local, .foreign = d.foreign, .heap = d.heap};
	return true;
}

/* What slice @i of @s begins: a page, or free slices. False: nothing does. */
static bool read_page(const struct finder *f, const struct segment *s, uint64_t i,
		      struct page *out)
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

static bool is_page(const struct page *p)
{
	return p->size >= sizeof(taddr_t) && p->first >= p->start && p->first < p->end &&
	       p->reserved == (p->end - p->first) / p->size && p->capacity <= p->reserved &&
	       p->used <= p->capacity;
}

/* -- free blocks -- */

/* Blocks that other threads freed while their page was full; all slabs are there. */
static void read_delayed(struct finder *f, taddr_t block)
{
	while (block)
		if (!slabs_mark(f->slabs, block, 0, PLACE_FREE) ||
		    !memory_read_word(f->memory, block, &block)) {
			f->slabs->broken++;
			return;
		}
}

/* -- pages -- */

static void note_heap(struct finder *f, taddr_t heap, uint64_t thread)
{
	size_t at = vec_search(&f->heaps, e, e->addr < heap);

	if (!heap || (at < f->heaps.count && f->heaps.data[at].addr == heap))
		return;
	(void)vec_add(&f->heaps);
	memmove(&f->heaps.data[at + 1], &f->heaps.data[at],
		(f->heaps.count - 1 - at) * sizeof(*f->heaps.data));
	f->heaps.data[at] = (struct heap){heap, thread};
}

static void add_page(struct finder *f, const struct page *p)
{
	const struct mimalloc_page page = {
		.start = p->start, .end = p->end, .first = p->first, .size = p->size,
		.capacity = p->capacity, .used = p->used, .has_aligned = p->flags & HAS_ALIGNED,
		.free = p->free, .local = p->local, .foreign = p->foreign & ~LIST_FLAGS};

	mimalloc_pages_add(&f->pages, &page);
}

static void add_slices(struct finder *f, taddr_t start, taddr_t end, enum inspect_row row)
{
	if (f->slabs)
		mimalloc_pages_add_rest(&f->pages, start, end, row);
}

/*
 * Checks the pages of @s, and adds them if slabs are wanted. False: something contradicts the rest,
 * and what follows is left out.
 */
static bool walk_pages(struct finder *f, const struct segment *s)
{
	uint64_t used = 0, end = s->kind == IS_HUGE ? s->own + 1 : s->entries;
	struct page p;

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
typedef taddr_t visit_fn(struct finder *f, const struct segment *s, bool is_valid);

static void each_segment(struct finder *f, visit_fn *fn)
{
	const struct resident *pages = f->memory->pages;
	taddr_t next = f->layout->segment;
	struct segment s;

	for (size_t i = 0; i < pages->list.count; i++) {
		const struct page_range *r = &pages->list.data[i];

		for (;;) {
			taddr_t at = ROUND_UP(MAX(next, r->start), f->layout->segment);

			if (at < r->start || at >= r->end)
				break;
			taddr_t end = read_segment(f, at, &s) ? fn(f, &s, is_segment(f, &s)) : 0;

			next = MAX(at + f->layout->segment, end);
		}
	}
}

static taddr_t look_for_key(struct finder *f, const struct segment *s, bool is_valid)
{
	if (!f->key && is_valid && s->used > 0 && walk_pages(f, s))
		f->key = s->key;
	return 0;
}

/* Pages of large blocks are alike in several layouts. */
static taddr_t count_valid(struct finder *f, const struct segment *s, bool is_valid)
{
	f->valid += is_valid && s->key == f->key && !is_kept(s) && walk_pages(f, s);
	return 0;
}

static taddr_t add_segment(struct finder *f, const struct segment *s, bool is_valid)
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

static bool is_in_segment(const struct finder *f, taddr_t addr)
{
	struct segment s;

	return read_segment(f, ROUND_DOWN(addr, f->layout->segment), &s) && s.key == f->key;
}

/* The heap of a thread is in pages of its own, the first one in the library's data. */
static void add_heaps(struct finder *f)
{
	for (size_t i = 0; i < f->heaps.count; i++) {
		taddr_t addr = f->heaps.data[i].addr;

		if (addr % PAGE == 0 && !is_data(f->in, addr) && !is_in_segment(f, addr))
			add_slices(f, addr, addr + HEAP_SIZE, ROW_OWN);
	}
}

static void read_heap(struct finder *f, const struct heap *heap)
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

static void add_all(struct finder *f, struct allocator *out)
{
	f->slabs = &out->slabs;
	mimalloc_pages_init(&f->pages, f->memory, f->slabs);
	each_segment(f, add_segment);
	add_heaps(f);
	slabs_sort(&out->slabs);
	for (size_t i = 0; i < f->heaps.count; i++)
		read_heap(f, &f->heaps.data[i]);
	vec_deinit(&f->heaps);
}

bool mimalloc_find(const struct allocator_input *in, struct allocator *out)
{
	struct finder best = {0};

	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		struct finder f = {.in = in, .memory = in->memory, .layout = &layouts[i]};

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
