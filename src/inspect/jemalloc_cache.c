/* See jemalloc_cache.h. */
#include "inspect/jemalloc_cache.h"

#include <stddef.h>

#include "inspect/jemalloc_class.h"

#define LISTS_AT 8u
#define LISTS 73u
#define MARK UINT64_C(0x7a7a7a7a7a7a7a7a) /* before the stacks */
#define LIST_WORDS 3u
#define WORD 8u

struct slow {
	uint64_t link[2], list_link[2];
	taddr_t lists, arena;
	taddr_t stacks, cache;
};
_Static_assert(offsetof(struct slow, stacks) == 48, "as in 5.3");

/* Where a slow part has its last two words: of 5.3.0 and 5.3.1. */
static const uint32_t ends[] = {160, 224};

struct list {
	taddr_t next;
	uint64_t requests;
	uint16_t low_water, full, empty, unused;
};
_Static_assert(sizeof(struct list) == LIST_WORDS * WORD, "as in 5.3");

#define SMALL_CLASSES 36u
#define OLD_FIRST_STACK 200u /* blocks of 8 bytes */
#define OLD_COUNT_MAX (1u << 16)
#define OLD_TABLE_BEFORE 48u

struct old_list {
	int32_t low_water;
	uint32_t count;
	uint64_t requests;
	taddr_t end;
};
struct old_cache {
	uint64_t other[2];
	struct old_list small[SMALL_CLASSES];
	uint64_t links[7];
	taddr_t small_at, large_at, arena;
	uint8_t divisors[40];
	struct old_list large[JEMALLOC_CLASSES - SMALL_CLASSES];
};
_Static_assert(offsetof(struct old_cache, small_at) == 936 &&
		       offsetof(struct old_cache, large) == 1000,
	       "as in 5.2");

/* A stack of @count blocks. */
static void read_stack(struct inspect_memory *m, taddr_t start, uint32_t count, uint32_t class,
		       struct slabs *out)
{
	uint64_t addr;

	for (uint32_t i = 0; i < count; i++)
		out->broken += !memory_read_word(m, start + i * WORD, &addr) ||
			       !slabs_mark(out, addr, jemalloc_class_size(class),
					   PLACE_CACHED);
}

/* -- 5.3 -- */

static bool read_slow_as(struct inspect_memory *m, taddr_t at, uint32_t end, struct slow *out)
{
	return memory_read(m, at, out, offsetof(struct slow, stacks)) &&
	       memory_read(m, at + end, &out->stacks, 2 * WORD);
}

/* The slow part of what may be the cache at @addr. */
static bool read_slow(struct inspect_memory *m, taddr_t addr, struct slow *out)
{
	uint64_t at, first;

	if (!memory_read_word(m, addr, &at) || at % WORD || !at)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (read_slow_as(m, at, ends[i], out) && out->cache == addr &&
		    out->lists == addr + LISTS_AT &&
		    memory_read_word(m, out->stacks, &first) && first == MARK)
			return true;
	return false;
}

static bool read_cache(struct inspect_memory *m, taddr_t addr, struct slabs *out)
{
	struct slow slow;
	struct list list;

	/* a thread that ends has given the memory of its stacks back */
	if (!read_slow(m, addr, &slow) || !slabs_mark(out, slow.stacks, 0, PLACE_INNER))
		return false;
	for (uint32_t i = 0; i < LISTS; i++)
		/*
		 * Since 5.3.1 the list of a class that is not cached leads to a constant of the
		 * library's (cache_bin_init_disabled), and has room for nothing there.
		 */
		if (memory_read(m, slow.lists + i * sizeof(list), &list, sizeof(list)) &&
		    list.next && list.empty != list.full)
			read_stack(m, list.next, (uint16_t)(list.empty - list.next) / WORD,
				   i, out);
	return true;
}

/* -- 5.2 -- */

static void read_old_lists(struct inspect_memory *m, const struct old_list *list, uint32_t first,
			   uint32_t count, struct slabs *out)
{
	for (uint32_t i = 0; i < count; i++) {
		if (list[i].count > OLD_COUNT_MAX)
			out->broken++;
		else if (list[i].count)
			read_stack(m, list[i].end - list[i].count * WORD, list[i].count, first + i,
				   out);
	}
}

static bool read_old_cache(struct inspect_memory *m, taddr_t addr, struct slabs *out)
{
	struct old_cache c;
	taddr_t small = addr + offsetof(struct old_cache, small);
	taddr_t large = addr + offsetof(struct old_cache, large);
	uint64_t is_small, is_large, table;

	if (!memory_read_word(m, addr + offsetof(struct old_cache, small_at), &is_small) ||
	    !memory_read_word(m, addr + offsetof(struct old_cache, large_at), &is_large) ||
	    is_small != small || is_large != large || !memory_read(m, addr, &c, sizeof(c)) ||
	    !memory_read_word(m, addr - OLD_TABLE_BEFORE, &table) ||
	    !slabs_mark(out, c.small[0].end - OLD_FIRST_STACK * WORD, 0, PLACE_INNER))
		return false;
	out->broken += table && !slabs_mark(out, table, 0, PLACE_INNER);
	read_old_lists(m, c.small, 0, SMALL_CLASSES, out);
	read_old_lists(m, c.large, SMALL_CLASSES, JEMALLOC_CLASSES - SMALL_CLASSES, out);
	return true;
}

/* -- both -- */

void jemalloc_caches_read(const struct allocator_input *in, enum jemalloc_cache_form form,
			  struct allocator *out)
{
	bool (*read)(struct inspect_memory *m, taddr_t addr, struct slabs *out) =
		form == JEMALLOC_CACHE_5_2 ? read_old_cache : read_cache;

	for (size_t i = 0; i < in->thread_count; i++) {
		taddr_t end = in->thread[i].thread_pointer;

		if (!end || end % WORD)
			continue;
		for (taddr_t at = glibc_tls_start(in->memory, end); at < end; at += WORD)
			if (read(in->memory, at, &out->slabs)) {
				out->caches++;
				break;
			}
	}
}
