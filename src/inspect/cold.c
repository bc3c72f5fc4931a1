/* Blocks and ranges of touched pages, both ascending. */
#include "inspect/cold.h"

/* Of a part of a block on touched pages: whole pages of it are its own, and were touched. */
static uint64_t count_shared(const struct touched_range *r, taddr_t start, taddr_t end)
{
	taddr_t first = ROUND_UP(start, (taddr_t)PAGE_SIZE_MIN);
	taddr_t last = ROUND_DOWN(end, (taddr_t)PAGE_SIZE_MIN);

	return r->is_sure && first < last ? end - start - (last - first) : end - start;
}

struct cold_bytes cold_bytes_of(const struct touched_pages *p, size_t *i, taddr_t addr,
				uint64_t size)
{
	const struct touched_range *r = p->list.data;
	taddr_t end = addr + size;
	struct cold_bytes out = {.cold = size};

	if (*i < p->list.count && r[*i].end <= addr)
		++*i;
	if ((*i > 0 && r[*i - 1].end > addr) || (*i < p->list.count && r[*i].end <= addr))
		*i = vec_search(&p->list, e, e->end <= addr);
	for (size_t k = *i; k < p->list.count && r[k].start < end; k++) {
		taddr_t from = MAX(r[k].start, addr), to = MIN(r[k].end, end);

		out.cold -= to - from;
		out.shared += count_shared(&r[k], from, to);
	}
	return out;
}
