/*
 * Ranges of pages in one sorted array, see pages.h. A process has some hundred mappings, so the
 * cost of moving the tail of the array is negligible.
 */
#include "profile/pages.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

void pages_deinit(struct pages *p)
{
	vec_deinit(&p->range);
}

void pages_clone(struct pages *to, const struct pages *from)
{
	*to = *from;
	if (!from->range.data)
		return;
	to->range.data = xmemdup(from->range.data, from->range.count * sizeof(*from->range.data));
	to->range.capacity = from->range.count;
}

/* Index of the first range that ends above @addr. */
static size_t first_after(const struct pages *p, taddr_t addr)
{
	return vec_search(&p->range, r, r->end <= addr);
}

/* Replaces @old ranges at index @at by the @count ones in @with. */
static void splice(struct pages *p, size_t at, size_t old, const struct page_run *with,
		   size_t count)
{
	size_t tail = p->range.count - at - old;
	vec_reserve(&p->range, p->range.count + count);
	memmove(&p->range.data[at + count], &p->range.data[at + old], tail * sizeof(*with));
	memcpy(&p->range.data[at], with, count * sizeof(*with));
	p->range.count = at + count + tail;
}

uint64_t pages_overlap(const struct pages *p, taddr_t start, taddr_t end)
{
	uint64_t bytes = 0;
	size_t i = first_after(p, start);
	for (; i < p->range.count && p->range.data[i].start < end; i++)
		bytes += MIN(end, p->range.data[i].end) - MAX(start, p->range.data[i].start);
	return bytes;
}

void pages_add(struct pages *p, taddr_t start, taddr_t end, uint32_t leaf)
{
	size_t at = first_after(p, start), old = 0;
	struct page_run range = { start, end, leaf };
	CHECK(start < end && (at == p->range.count || p->range.data[at].start >= end));
	if (at < p->range.count && p->range.data[at].start == end &&
	    p->range.data[at].leaf == leaf) {
		range.end = p->range.data[at].end;
		old++;
	}
	if (at > 0 && p->range.data[at - 1].end == start && p->range.data[at - 1].leaf == leaf) {
		range.start = p->range.data[--at].start;
		old++;
	}
	splice(p, at, old, &range, 1);
}

void pages_remove(struct pages *p, taddr_t start, taddr_t end,
		  void (*gone)(void *ctx, uint32_t leaf, uint64_t bytes), void *ctx)
{
	size_t at = first_after(p, start), old = 0, count = 0;
	struct page_run rest[2];
	for (size_t i = at; i < p->range.count && p->range.data[i].start < end; i++, old++) {
		struct page_run r = p->range.data[i];
		if (r.start < start)
			rest[count++] = (struct page_run){ r.start, start, r.leaf };
		if (r.end > end)
			rest[count++] = (struct page_run){ end, r.end, r.leaf };
		gone(ctx, r.leaf, MIN(end, r.end) - MAX(start, r.start));
	}
	if (old)
		splice(p, at, old, rest, count);
}
