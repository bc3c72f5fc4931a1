/* See heap_map.h. */
#include "inspect/heap_map.h"

#include "inspect/pinned.h"

#define PAGE ((taddr_t)PAGE_SIZE_MIN)

static void add_heap(struct heap_map *m, taddr_t start, taddr_t end, uint32_t arena)
{
	*vec_add(&m->heaps) = (struct heap_map_heap){.start = ROUND_DOWN(start, PAGE),
						     .end = ROUND_UP(end, PAGE), .arena = arena};
}

/* One for adjacent arenas. */
static void add_python(struct heap_map *m, const struct pymalloc *python, uint32_t arena)
{
	for (size_t i = 0; i < python->arenas.count;) {
		taddr_t start = python->arenas.data[i].start, end = start;

		for (; i < python->arenas.count && python->arenas.data[i].start == end; i++)
			end = python->arenas.data[i].end;
		add_heap(m, start, end, arena);
	}
}

static void make_cells(struct heap_map *m)
{
	uint64_t pages = 0;

	for (size_t i = 0; i < m->heaps.count; i++)
		pages += (m->heaps.data[i].end - m->heaps.data[i].start) / PAGE;
	while (pages / m->pages_per_cell > HEAP_MAP_CELLS)
		m->pages_per_cell *= 2;
	for (size_t i = 0; i < m->heaps.count; i++) {
		struct heap_map_heap *h = &m->heaps.data[i];
		taddr_t size = m->pages_per_cell * PAGE;

		h->first = m->cells.count;
		h->count = (h->end - h->start + size - 1) / size;
		for (size_t k = 0; k < h->count; k++)
			*vec_add(&m->cells) = (struct heap_cell){0};
	}
}

/* Counts pages of a heap of Python's, ascending. */
struct page_filler {
	struct heap_map *map;
	size_t heap;
	struct account look;
	taddr_t page;           /* the current one */
	uint32_t live;          /* live bytes on it */
};

/* Counts all pages before that of @addr. */
static void move_to(struct page_filler *f, taddr_t addr)
{
	taddr_t page = ROUND_DOWN(addr, PAGE), next = f->page + PAGE;

	if (page == f->page)
		return;
	heap_map_add(f->map, f->heap, (struct glibc_range){f->page, next}, f->live, &f->look);
	heap_map_add(f->map, f->heap, (struct glibc_range){next, page}, 0, &f->look);
	f->page = page;
	f->live = 0;
}

static void add_part(void *ctx, taddr_t start, taddr_t end, enum inspect_row row)
{
	struct page_filler *f = ctx;

	while (row == ROW_PYTHON_LIVE && start < end) {
		taddr_t part = MIN(end, ROUND_DOWN(start, PAGE) + PAGE);

		move_to(f, start);
		f->live += (uint32_t)(part - start);
		start = part;
	}
}

static void fill_python(struct heap_map *m, size_t heap, const struct slabs *slabs,
			struct inspect_memory *memory)
{
	const struct slab_part whole = {m->heaps.data[heap].start, m->heaps.data[heap].end};
	struct page_filler f = {.map = m, .heap = heap, .page = whole.start};

	account_init(&f.look, memory->pages);
	slabs_each_part(slabs, memory, whole, add_part, &f);
	move_to(&f, whole.end);
}

void heap_map_init(struct heap_map *m, const struct glibc *g, const struct pymalloc *python,
		   struct inspect_memory *memory)
{
	*m = (struct heap_map){.pages_per_cell = 1};
	for (size_t i = 0; i < g->heaps.count; i++)
		add_heap(m, g->heaps.data[i].map_start, g->heaps.data[i].end,
			 g->heaps.data[i].arena);
	add_python(m, python, (uint32_t)g->arenas.count);
	make_cells(m);
	for (size_t i = g->heaps.count; i < m->heaps.count; i++)
		fill_python(m, i, &python->slabs, memory);
}

void heap_map_deinit(struct heap_map *m)
{
	vec_deinit(&m->heaps);
	vec_deinit(&m->cells);
}

/* The cell of heap number @heap that contains @addr; *end_out is where that cell ends. */
static struct heap_cell *find_cell(struct heap_map *m, size_t heap, taddr_t addr, taddr_t *end_out)
{
	const struct heap_map_heap *h = &m->heaps.data[heap];
	taddr_t size = m->pages_per_cell * PAGE;
	size_t i = (addr - h->start) / size;

	*end_out = h->start + (i + 1) * size;
	return &m->cells.data[h->first + i];
}

static void add_pages(struct heap_cell *c, uint64_t pages, uint32_t live)
{
	c->pages += (uint32_t)pages;
	c->live += pages * live;
	c->nearly_empty += live > 0 && live <= PINNED_FEW ? (uint32_t)pages : 0;
}

void heap_map_add_page(struct heap_map *m, size_t heap, taddr_t page, uint32_t live)
{
	taddr_t end;

	if (page >= m->heaps.data[heap].start && page < m->heaps.data[heap].end)
		add_pages(find_cell(m, heap, page, &end), 1, live);
}

void heap_map_add(struct heap_map *m, size_t heap, struct glibc_range range, uint32_t live,
		  struct account *look)
{
	const struct heap_map_heap *h = &m->heaps.data[heap];
	taddr_t end = MIN(range.end, h->end), next;

	for (taddr_t at = MAX(range.start, h->start); at < end; at = next) {
		struct heap_cell *c = find_cell(m, heap, at, &next);

		next = MIN(next, end);
		struct inspect_bytes b = account_count(look, at, next);

		add_pages(c, (b.resident + b.swapped) / PAGE, live);
	}
}
