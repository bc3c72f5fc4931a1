/* The pages of the heaps, in cells of a map and by what pins them. Works page by page. */
#include "inspect/heap_map.h"

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

static void heap_map_add(struct heap_map *m, size_t heap, struct addr_range range, uint32_t live,
			 struct account *look);

/* Counts all pages before that of @addr. */
static void fill_up_to(struct page_filler *f, taddr_t addr)
{
	taddr_t page = ROUND_DOWN(addr, PAGE), next = f->page + PAGE;

	if (page == f->page)
		return;
	heap_map_add(f->map, f->heap, (struct addr_range){f->page, next}, f->live, &f->look);
	heap_map_add(f->map, f->heap, (struct addr_range){next, page}, 0, &f->look);
	f->page = page;
	f->live = 0;
}

static void add_part(void *ctx, taddr_t start, taddr_t end, enum inspect_row row)
{
	struct page_filler *f = ctx;

	while (row == ROW_PYTHON_LIVE && start < end) {
		taddr_t part = MIN(end, ROUND_DOWN(start, PAGE) + PAGE);

		fill_up_to(f, start);
		f->live += (uint32_t)(part - start);
		start = part;
	}
}

static void fill_python(struct heap_map *m, size_t heap, const struct slabs *slabs,
			struct inspect_memory *memory)
{
	const struct addr_range whole = {m->heaps.data[heap].start, m->heaps.data[heap].end};
	struct page_filler f = {.map = m, .heap = heap, .page = whole.start};

	account_init(&f.look, memory->pages);
	slabs_each_part(slabs, memory, whole, add_part, &f);
	fill_up_to(&f, whole.end);
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

/* Counts the page at @page of heap number @heap, of which @live bytes are live. */
static void heap_map_add_page(struct heap_map *m, size_t heap, taddr_t page, uint32_t live)
{
	taddr_t end;

	if (page >= m->heaps.data[heap].start && page < m->heaps.data[heap].end)
		add_pages(find_cell(m, heap, page, &end), 1, live);
}

/*
 * Counts each resident or swapped page of [@start, @end), found by @look, in heap number @heap.
 * Each has @live live bytes.
 */
static void heap_map_add(struct heap_map *m, size_t heap, struct addr_range range, uint32_t live,
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

/* Works page by page. See heap_map.h. */

#define PAGE ((taddr_t)PAGE_SIZE_MIN)

const uint32_t pinned_step[PINNED_STEPS] = {64, 256, 1024, 2048, 4095, 4096};

static uint32_t class_of(uint64_t size)
{
	if (size <= 4096)
		return (uint32_t)(size / 16);
	return 4096 / 16 + 1 + (uint32_t)(63 - __builtin_clzll((size - 1) >> 12));
}

uint64_t pinned_class_size(uint32_t i)
{
	return i <= 4096 / 16 ? i * UINT64_C(16) : UINT64_C(8192) << (i - 4096 / 16 - 1);
}

void pinned_init(struct pinned *p, const struct resident *pages, taddr_t start, taddr_t end)
{
	p->page = ROUND_DOWN(start, PAGE);
	p->end = end;
	p->is_unknown = p->has_other = false;
	p->live = p->count = 0;
	account_init(&p->account, pages);
}

static uint64_t count_pages(struct pinned *p, taddr_t start, taddr_t end)
{
	struct inspect_bytes b = account_count(&p->account, start, end);

	return (b.resident + b.swapped) / PAGE;
}

/* Counts the pages of [@start, @end), each of which has @live live bytes. */
static uint64_t add_range(struct pinned *p, taddr_t start, taddr_t end, uint32_t live)
{
	heap_map_add(p->map, p->heap, (struct addr_range){start, end}, live, &p->account);
	return count_pages(p, start, end);
}

static struct pin_count *count_of_type(struct type_pages *t, uint32_t type)
{
	while (t->list.count <= type)
		*vec_add(&t->list) = (struct pin_count){0};
	return &t->list.data[type];
}

/* Counts the page for a type, and a path, that has all that is live on it. */
static void count_alone(struct pinned *p)
{
	const struct pinned_note *first = &p->note[0];
	bool has_types = false, has_paths = first->path == 0;

	if (p->has_other || p->count == 0)
		return;
	for (uint32_t i = 1; i < p->count; i++) {
		has_types |= p->note[i].type != first->type;
		has_paths |= p->note[i].path != first->path;
	}
	if (!has_types && p->type_pages)
		count_of_type(p->type_pages, first->type)->alone++;
	if (!has_paths)
		p->paths->pages[first->path].alone++;
}

/* Counts the page for note @i, unless an earlier one has the same class, type or path. */
static void count_page(struct pinned *p, uint32_t i)
{
	const struct pinned_note *n = &p->note[i];
	bool has_class = false, has_type = !p->type_pages, has_path = n->path == 0;

	for (uint32_t k = 0; k < i; k++) {
		has_class |= p->note[k].class == n->class;
		has_type |= p->note[k].type == n->type;
		has_path |= p->note[k].path == n->path;
	}
	if (!has_class)
		p->classes[n->class].pages++;
	if (!has_type)
		count_of_type(p->type_pages, n->type)->pages++;
	if (!has_path)
		p->paths->pages[n->path].pages++;
}

/* Counts the current page, which is complete and has live bytes. */
static void close_pinned(struct pinned *p)
{
	uint32_t step = 0;

	if (count_pages(p, p->page, p->page + PAGE) == 0)
		return;
	while (p->live > pinned_step[step])
		step++;
	p->out->step[step]++;
	heap_map_add_page(p->map, p->heap, p->page, p->live);
	p->out->free_bytes += PAGE - p->live;
	for (uint32_t i = 0; p->live <= PINNED_FEW && i < p->count; i++)
		count_page(p, i);
	if (p->live <= PINNED_FEW)
		count_alone(p);
}

/* Completes all pages up to @addr. */
static void move_to(struct pinned *p, taddr_t addr)
{
	taddr_t page = ROUND_DOWN(addr, PAGE);

	if (page == p->page)
		return;
	if (p->is_unknown)
		p->out->unknown += count_pages(p, p->page, p->page + PAGE);
	else if (p->live > 0)
		close_pinned(p);
	p->page += p->is_unknown || p->live > 0 ? PAGE : 0;
	if (page > p->page)
		p->out->free += add_range(p, p->page, page, 0);
	p->page = page;
	p->is_unknown = p->has_other = false;
	p->live = p->count = 0;
}

void pinned_add(struct pinned *p, taddr_t start, taddr_t end, const struct pinned_block *block)
{
	if (block) {
		struct pinned_class *c = &p->classes[class_of(block->size)];

		c->blocks++;
		c->bytes += block->size;
	}
	move_to(p, start);
	while (start < end) {
		taddr_t part = MIN(end, p->page + PAGE);

		p->live += (uint32_t)(part - start);
		p->has_other |= !block && part > start;
		if (block && p->live <= PINNED_FEW && p->count < ARRAY_SIZE(p->note))
			p->note[p->count++] = (struct pinned_note){
				class_of(block->size), block->type, block->path};
		start = part;
		if (start == p->page + PAGE && start + PAGE < end) {
			taddr_t last = ROUND_DOWN(end, PAGE);

			move_to(p, start);
			p->out->step[PINNED_STEPS - 1] += add_range(p, start, last, PAGE);
			p->page = start = last;
		} else if (start < end) {
			move_to(p, start);
		}
	}
}

void pinned_add_unknown(struct pinned *p, taddr_t start, taddr_t end)
{
	taddr_t last = ROUND_DOWN(end, PAGE);

	if (start >= end)
		return;
	move_to(p, start);
	p->is_unknown = true;
	if (last == p->page)
		return;
	move_to(p, p->page + PAGE);
	p->out->unknown += count_pages(p, p->page, last);
	p->page = last;
	p->is_unknown = last < end;
}

void pinned_add_foreign(struct pinned *p, taddr_t start, taddr_t end)
{
	taddr_t first = ROUND_UP(start, PAGE), last = ROUND_DOWN(end, PAGE);

	pinned_add(p, start, MIN(first, end), NULL);
	if (first >= last) {
		pinned_add(p, MIN(first, end), end, NULL);
		return;
	}
	move_to(p, first);
	p->page = last;
	pinned_add(p, last, end, NULL);
}

void pinned_finish(struct pinned *p)
{
	taddr_t end = ROUND_UP(p->end, PAGE);

	move_to(p, end);
}
