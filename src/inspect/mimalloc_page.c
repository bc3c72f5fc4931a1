/* See mimalloc_page.h. */
#include "inspect/mimalloc_page.h"

#define PLACES_MIN (UINT64_C(1) << 20)

void mimalloc_pages_init(struct mimalloc_pages *p, struct inspect_memory *m, struct slabs *slabs)
{
	uint64_t bytes = m->pages->resident + m->pages->swapped;

	*p = (struct mimalloc_pages){m, slabs, bytes / sizeof(taddr_t) + PLACES_MIN};
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

static void read_lists(struct mimalloc_pages *p, const struct mimalloc_page *page,
		       const struct slab *slab)
{
	uint32_t own = read_list(p, slab, page->free) + read_list(p, slab, page->local);
	uint32_t foreign = read_list(p, slab, page->foreign);

	p->slabs->broken += own + page->used != page->capacity || foreign > page->used;
}

void mimalloc_pages_add_rest(struct mimalloc_pages *p, taddr_t start, taddr_t end,
			     enum inspect_row row)
{
	struct slab slab = {.start = start, .end = end, .first = start, .rest = row};
	size_t number;

	if (start < end)
		slabs_add(p->slabs, &slab, &number);
}

/* The places up to the capacity, which have been touched, and the rest. */
void mimalloc_pages_add(struct mimalloc_pages *p, const struct mimalloc_page *page)
{
	taddr_t middle = page->first + page->capacity * page->size;
	struct slab slab = {.start = page->start, .end = middle, .first = page->first,
			    .stride = page->size, .places = page->capacity, .rest = ROW_OWN,
			    .is_loose = page->has_aligned};
	size_t number;

	if (page->capacity > p->places_left) {
		p->slabs->broken++;
		return;
	}
	p->places_left -= page->capacity;
	if (middle > page->start && slabs_add(p->slabs, &slab, &number)) {
		for (uint32_t i = 0; i < page->capacity; i++)
			slabs_set(p->slabs, slab_at(p->slabs, number), i, PLACE_LIVE);
		read_lists(p, page, slab_at(p->slabs, number));
	}
	mimalloc_pages_add_rest(p, middle, page->end, ROW_FREE_PAGES);
}
