/* Works page by page. See pinned.h. */
#include "inspect/pinned.h"

#include "inspect/heap_map.h"

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
	p->is_unknown = false;
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
	heap_map_add(p->map, p->heap, (struct glibc_range){start, end}, live, &p->account);
	return count_pages(p, start, end);
}

static void count_type(struct type_pages *t, uint32_t type)
{
	while (t->list.count <= type)
		*vec_add(&t->list) = 0;
	t->list.data[type]++;
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
		count_type(p->type_pages, n->type);
	if (!has_path)
		p->paths->pages[n->path]++;
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
	p->is_unknown = false;
	p->live = p->count = 0;
}

static void note_block(struct pinned *p, const struct pinned_block *block)
{
	if (p->count < ARRAY_SIZE(p->note))
		p->note[p->count++] = (struct pinned_note){
			class_of(block->size), block->type, block->path};
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
		if (block && p->live <= PINNED_FEW)
			note_block(p, block);
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
