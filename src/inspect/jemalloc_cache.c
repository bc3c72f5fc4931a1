/* See jemalloc_cache.h. */
#include "inspect/jemalloc_cache.h"

#include "inspect/jemalloc_class.h"

#define LISTS_AT 8u
#define LISTS 73u
#define SLOW_SIZE 176u
#define MARK UINT64_C(0x7a7a7a7a7a7a7a7a) /* before the stacks */
#define LIST_WORDS 3u
#define WORD 8u

struct slow {
	uint64_t link[2], list_link[2];
	taddr_t lists, arena;
	uint8_t other[112];
	taddr_t stacks, cache;
};
_Static_assert(sizeof(struct slow) == SLOW_SIZE, "as in 5.3");

struct list {
	taddr_t next;
	uint64_t requests;
	uint16_t low_water, full, empty, unused;
};
_Static_assert(sizeof(struct list) == LIST_WORDS * WORD, "as in 5.3");

static void read_list(struct inspect_memory *m, const struct list *l, uint32_t class,
		      struct slabs *out)
{
	uint32_t count = (uint16_t)(l->empty - l->next) / WORD;
	uint64_t addr;

	for (uint32_t i = 0; i < count; i++)
		out->broken += !memory_read_word(m, l->next + i * WORD, &addr) ||
			       !slabs_mark(out, addr, jemalloc_class_size(class),
					   PLACE_CACHED);
}

/* The slow part of what may be the cache at @addr. */
static bool read_slow(struct inspect_memory *m, taddr_t addr, struct slow *out)
{
	uint64_t at, first;

	return memory_read_word(m, addr, &at) && at % WORD == 0 && at &&
	       memory_read(m, at, out, sizeof(*out)) && out->cache == addr &&
	       out->lists == addr + LISTS_AT && memory_read_word(m, out->stacks, &first) &&
	       first == MARK;
}

static bool read_cache(struct inspect_memory *m, taddr_t addr, struct slabs *out)
{
	struct slow slow;
	struct list list;

	/* a thread that ends has given the memory of its stacks back */
	if (!read_slow(m, addr, &slow) || !slabs_mark(out, slow.stacks, 0, PLACE_INNER))
		return false;
	for (uint32_t i = 0; i < LISTS; i++)
		if (memory_read(m, slow.lists + i * sizeof(list), &list, sizeof(list)) && list.next)
			read_list(m, &list, i, out);
	return true;
}

void jemalloc_caches_read(const struct allocator_input *in, struct allocator *out)
{
	for (size_t i = 0; i < in->thread_count; i++) {
		taddr_t end = in->thread[i].thread_pointer;

		if (!end || end % WORD)
			continue;
		for (taddr_t at = glibc_tls_start(in->memory, end); at < end; at += WORD)
			if (read_cache(in->memory, at, &out->slabs)) {
				out->caches++;
				break;
			}
	}
}
