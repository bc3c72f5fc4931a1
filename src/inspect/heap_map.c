/* See heap_map.h. */
#include "inspect/heap_map.h"

#include "inspect/pinned.h"

#define PAGE ((taddr_t)PAGE_SIZE_MIN)

static void add_heap(struct heap_map *m, const struct glibc_heap *h)
{
	struct heap_map_heap *to = vec_add(&m->heaps);
	taddr_t size = m->pages_per_cell * PAGE, start = ROUND_DOWN(h->map_start, PAGE);

	*to = (struct heap_map_heap){.start = start, .end = ROUND_UP(h->end, PAGE),
				     .arena = h->arena, .first = m->cells.count};
	to->count = (to->end - start + size - 1) / size;
	for (size_t i = 0; i < to->count; i++)
		*vec_add(&m->cells) = (struct heap_cell){0};
}

void heap_map_init(struct heap_map *m, const struct glibc *g)
{
	uint64_t pages = 0;

	*m = (struct heap_map){.pages_per_cell = 1};
	for (size_t i = 0; i < g->heaps.count; i++)
		pages += (g->heaps.data[i].end - g->heaps.data[i].map_start) / PAGE;
	while (pages / m->pages_per_cell > HEAP_MAP_CELLS)
		m->pages_per_cell *= 2;
	for (size_t i = 0; i < g->heaps.count; i++)
		add_heap(m, &g->heaps.data[i]);
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
