/* See memory_copy.h. */
#include "inspect/memory_copy.h"

#include <string.h>

#include "base/lanes.h"
#include "base/large.h"

#define PIECE (UINT64_C(256) << 10)
#define LANE_PIECES 8u
#define MORE (UINT64_C(1) << 20)

void memory_copy_init(struct memory_copy *c, uint64_t bytes)
{
	*c = (struct memory_copy){.capacity =
					  bytes ? ROUND_UP(bytes + bytes / 8 + MORE, PIECE) : 0};
	if (c->capacity == 0)
		return;
	c->data = large_map(c->capacity);
	large_touch(c->data, c->capacity);
}

void memory_copy_deinit(struct memory_copy *c)
{
	large_unmap(c->data, c->capacity);
	vec_deinit(&c->parts);
	*c = (struct memory_copy){0};
}

static bool is_wanted(const struct resident *pages, const struct page_range *r)
{
	const struct map *m;

	if (!(r->flags & PAGE_OF_FILE))
		return true;
	m = maps_find(&pages->maps, r->start);
	return m && m->is_write;
}

static uint64_t list_parts(struct memory_copy *c, const struct resident *pages)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < pages->list.count; i++) {
		const struct page_range *r = &pages->list.data[i];

		if (!is_wanted(pages, r))
			continue;
		for (taddr_t at = r->start; at < r->end;) {
			taddr_t end = MIN(at + PIECE, r->end);

			*vec_add(&c->parts) = (struct copied_part){at, end, bytes};
			bytes += end - at;
			at = end;
		}
	}
	return bytes;
}

static void copy_share(struct memory_copy *c, struct copied_share *s)
{
	size_t i;

	while ((i = __atomic_fetch_add(&s->next, 1, __ATOMIC_RELAXED)) < s->end) {
		const struct copied_part *p = &c->parts.data[i];

		c->from->read(c->from->ctx, p->start, c->data + p->at, p->end - p->start);
	}
}

/* First its own, then what others have left. */
static void copy_parts(void *ctx, uint32_t lane)
{
	struct memory_copy *c = ctx;

	for (uint32_t i = 0; i < c->shares; i++)
		copy_share(c, &c->share[(lane + i) % c->shares]);
}

static void divide(struct memory_copy *c)
{
	size_t count = c->parts.count;

	c->shares = lanes_for(count / LANE_PIECES);
	for (uint32_t i = 0; i < c->shares; i++)
		c->share[i] = (struct copied_share){count * i / c->shares,
						    count * (i + 1) / c->shares};
}

bool memory_copy_make(struct memory_copy *c, const struct resident *pages,
		      const struct memory_source *from)
{
	c->parts.count = 0;
	if (list_parts(c, pages) > c->capacity)
		return false;
	c->from = from;
	divide(c);
	lanes_run(c->shares, copy_parts, c);
	c->from = NULL;
	return true;
}

static ssize_t read_copy(void *ctx, taddr_t addr, void *buf, size_t size)
{
	const struct memory_copy *c = ctx;
	size_t i = vec_search(&c->parts, e, e->end <= addr), done = 0;

	for (; done < size && i < c->parts.count && c->parts.data[i].start <= addr + done; i++) {
		const struct copied_part *p = &c->parts.data[i];
		size_t n = MIN(p->end - (addr + done), size - done);

		memcpy((uint8_t *)buf + done, c->data + p->at + (addr + done - p->start), n);
		done += n;
	}
	return done > 0 ? (ssize_t)done : -1;
}

static void gather_copy(void *ctx, const taddr_t *addr, size_t count, size_t each, void *buf)
{
	memset(buf, 0, count * each);
	for (size_t i = 0; i < count; i++)
		read_copy(ctx, addr[i], (uint8_t *)buf + i * each, each);
}

struct memory_source memory_copy_source(struct memory_copy *c)
{
	return (struct memory_source){.read = read_copy, .gather = gather_copy, .ctx = c};
}
