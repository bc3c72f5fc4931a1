/* See tcmalloc_cache.h. */
#include "inspect/tcmalloc_cache.h"

#include <string.h>

#include "inspect/tcmalloc_chain.h"

#define ALIGNMENT 16u
#define SIZE_MOST (UINT32_C(256) << 10)
#define WORD 8u
#define WORDS (PAGE_SIZE_MIN / WORD)
#define CACHE_MIN 3072u /* bytes of one */

struct list {
	taddr_t first;
	uint32_t count, low_water, most, overages, size, unused;
};

/*
 * Versions' layouts: bytes of lists, and after them, of the links. In a cache with 128 lists all
 * after the classes' are zeros, so it is none with 96 lists.
 */
static const struct {
	uint32_t lists, links;
} layouts[] = {
	{96 * sizeof(struct list), 48},
	{TCMALLOC_CLASSES * sizeof(struct list), 32},
	{TCMALLOC_CLASSES * sizeof(struct list), 48},
};

/* Whether the sizes of the lists at @at are those of a cache. */
static bool read_sizes(struct inspect_memory *m, taddr_t at, uint32_t size[TCMALLOC_CLASSES])
{
	struct list l;

	memset(size, 0, TCMALLOC_CLASSES * sizeof(*size));
	for (uint32_t i = 0; i < TCMALLOC_CLASSES; i++) {
		if (!memory_read(m, at + i * sizeof(l), &l, sizeof(l)) || l.size % WORD ||
		    l.size > SIZE_MOST || (i == 0 ? l.size != 0 : l.size <= size[i - 1]))
			return false;
		size[i] = l.size;
		if (l.size == SIZE_MOST)
			return true;
	}
	return false;
}

struct links {
	taddr_t next, before;
};

/* Whether @at is a cache with the sizes of @c; 0 in a link: there is none. */
static bool read_links(struct inspect_memory *m, const struct tcmalloc_caches *c, taddr_t at,
		       struct links *out)
{
	uint32_t size[TCMALLOC_CLASSES];

	return at % ALIGNMENT == 0 && read_sizes(m, at, size) &&
	       memcmp(size, c->size, sizeof(size)) == 0 &&
	       memory_read(m, at + c->links, out, sizeof(*out));
}

/* All caches before or after the one at @at, which is among them. False: they are none. */
static bool add_chain(struct inspect_memory *m, struct tcmalloc_caches *c, taddr_t at, bool is_next)
{
	uint64_t most = (m->pages->resident + m->pages->swapped) / CACHE_MIN;
	struct links l, other;

	if (!read_links(m, c, at, &l))
		return false;
	for (taddr_t to; (to = is_next ? l.next : l.before); at = to, l = other) {
		if (c->list.count > most || !read_links(m, c, to, &other) ||
		    (is_next ? other.before : other.next) != at)
			return false;
		*vec_add(&c->list) = to;
	}
	return true;
}

static bool take_layout(struct inspect_memory *m, taddr_t at, uint32_t lists,
			struct tcmalloc_caches *c)
{
	uint32_t bytes[2]; /* in use; most */

	c->list.count = 0;
	*vec_add(&c->list) = at;
	return memory_read(m, at + lists, bytes, sizeof(bytes)) && bytes[1] &&
	       add_chain(m, c, at, true) && add_chain(m, c, at, false);
}

static bool take_cache(struct inspect_memory *m, taddr_t at, struct tcmalloc_caches *out)
{
	const struct map *map = at && at % ALIGNMENT == 0 ? maps_find(&m->pages->maps, at) : NULL;

	if (!map || !map->is_write || !read_sizes(m, at, out->size))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		out->links = layouts[i].lists + layouts[i].links;
		if (take_layout(m, at, layouts[i].lists, out))
			return true;
	}
	return false;
}

static bool search_page(struct inspect_memory *m, taddr_t page, struct tcmalloc_caches *out)
{
	uint64_t word[WORDS];

	if (!memory_read(m, page, word, sizeof(word)))
		return false;
	for (uint32_t i = 0; i < WORDS; i++)
		if (take_cache(m, word[i], out))
			return true;
	return false;
}

bool tcmalloc_caches_find(struct inspect_memory *m, const struct glibc_range *data,
			  struct tcmalloc_caches *out)
{
	*out = (struct tcmalloc_caches){0};
	for (taddr_t at = resident_next(m->pages, data->start); at < data->end;
	     at = resident_next(m->pages, at + PAGE_SIZE_MIN))
		if (search_page(m, at, out))
			return true;
	tcmalloc_caches_deinit(out);
	return false;
}

void tcmalloc_caches_read(struct inspect_memory *m, const struct tcmalloc_caches *c,
			  struct slabs *p)
{
	struct list l;

	for (size_t i = 0; i < c->list.count; i++)
		for (uint32_t k = 1; k < TCMALLOC_CLASSES && c->size[k]; k++) {
			if (!memory_read(m, c->list.data[i] + k * sizeof(l), &l, sizeof(l)))
				continue;
			const struct tcmalloc_chain chain = {
				.first = l.first, .size = c->size[k], .state = PLACE_CACHED};

			p->broken += tcmalloc_chain_mark(m, p, chain) != l.count;
		}
}

void tcmalloc_caches_deinit(struct tcmalloc_caches *c)
{
	vec_deinit(&c->list);
}
