/* See pymalloc.h. Each number is checked against the others, and against what it counts. */
#include "inspect/pymalloc.h"

#include <string.h>

struct reader {
	struct inspect_memory *memory;
	struct pymalloc *out;
	const struct pymalloc_arena *arena;
	uint32_t number;        /* of the arena */
};

/* Adds memory without blocks. */
static void add_rest(struct reader *r, taddr_t start, taddr_t end, enum inspect_row row)
{
	const struct slab slab = {.start = start, .end = end, .first = start, .rest = row};
	size_t number;

	if (start < end)
		slabs_add(&r->out->slabs, &slab, &number);
}

/* -- pools in use -- */

static bool is_pool(const struct reader *r, const struct pymalloc_pool *p)
{
	if (p->class >= PYMALLOC_CLASSES)
		return false;
	uint32_t block = pymalloc_size(p->class), size = r->out->layout.pool;

	return p->arena == r->number && p->used > 0 && p->fresh_last == size - block &&
	       p->fresh >= PYMALLOC_HEADER + block && p->fresh <= size &&
	       (p->fresh - PYMALLOC_HEADER) % block == 0 &&
	       p->used <= (p->fresh - PYMALLOC_HEADER) / block;
}

static bool mark_free(struct slabs *slabs, const struct slab *slab, taddr_t block)
{
	uint64_t offset = block - slab->first, i = offset / slab->stride;

	if (offset % slab->stride || i >= slab->places ||
	    slabs_state(slabs, slab, (uint32_t)i) != PLACE_LIVE)
		return false;
	slabs_set(slabs, slab, (uint32_t)i, PLACE_FREE);
	return true;
}

/* Marks the blocks on the list from @block on; their number. */
static uint32_t read_list(struct reader *r, const struct slab *slab, taddr_t block)
{
	uint32_t count = 0;

	for (; block; count++)
		if (!mark_free(&r->out->slabs, slab, block) ||
		    !memory_read_word(r->memory, block, &block))
			return UINT32_MAX;
	return count;
}

static uint32_t count_live(const struct slabs *slabs, const struct slab *slab)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < slab->places; i++)
		count += slabs_state(slabs, slab, i) == PLACE_LIVE;
	return count;
}

static void add_pool(struct reader *r, taddr_t at)
{
	struct slabs *slabs = &r->out->slabs;
	uint32_t size = r->out->layout.pool;
	struct pymalloc_pool p;
	size_t number;

	if (!memory_read(r->memory, at, &p, sizeof(p)) || !is_pool(r, &p)) {
		slabs->broken++;
		add_rest(r, at, at + size, ROW_UNKNOWN_HEAP);
		return;
	}
	uint32_t block = pymalloc_size(p.class), used = (p.fresh - PYMALLOC_HEADER) / block;
	const struct slab slab = {.start = at, .end = at + size, .first = at + PYMALLOC_HEADER,
				  .stride = block, .places = (size - PYMALLOC_HEADER) / block,
				  .rest = ROW_PYTHON_OWN};

	if (!slabs_add(slabs, &slab, &number))
		return;
	for (uint32_t i = 0; i < used; i++)
		slabs_set(slabs, slab_at(slabs, number), i, PLACE_LIVE);
	slabs->broken += read_list(r, slab_at(slabs, number), p.free) != used - p.used;
	struct pymalloc_class *class = &r->out->classes[p.class];
	uint32_t live = count_live(slabs, slab_at(slabs, number));

	class->pools++;
	class->live += live;
	class->free += slab.places - live;
}

/* -- arenas -- */

/* Which pools are on the list of free ones, a bit for each. */
static uint64_t read_free(struct reader *r, taddr_t first, taddr_t end)
{
	uint32_t size = r->out->layout.pool;
	struct pymalloc_pool p;
	uint64_t found = 0;

	for (taddr_t at = r->arena->free; at; at = p.next) {
		uint64_t bit = UINT64_C(1) << (at - first) / size % PYMALLOC_POOLS_MAX;

		if (at < first || at >= end || at % size || found & bit ||
		    !memory_read(r->memory, at, &p, sizeof(p)) || p.used) {
			r->out->slabs.broken++;
			break;
		}
		found |= bit;
	}
	return found;
}

static void add_pools(struct reader *r, taddr_t first)
{
	const struct pymalloc_arena *a = r->arena;
	uint32_t size = r->out->layout.pool;
	uint64_t free = read_free(r, first, a->fresh);
	uint32_t count = (uint32_t)__builtin_popcountll(free);

	for (uint32_t i = 0; i < a->pools; i++) {
		taddr_t at = first + i * (taddr_t)size;

		if (at < a->fresh && !(free >> i & 1)) {
			add_pool(r, at);
			continue;
		}
		count += at >= a->fresh;
		add_rest(r, at, at + size, ROW_PYTHON_POOLS);
	}
	r->out->free_pools += count;
	r->out->slabs.broken += count != a->free_pools;
}

static void add_arena(struct reader *r, const struct spans *taken)
{
	const struct pymalloc_arena *a = r->arena;
	struct pymalloc *out = r->out;
	const struct pymalloc_range range = {a->addr, a->addr + out->layout.arena};
	size_t at = vec_search(&out->arenas, e, e->end <= range.start);
	size_t span = spans_find(taken, range.start);

	if ((at < out->arenas.count && out->arenas.data[at].start < range.end) ||
	    (span < taken->list.count && taken->list.data[span].start < range.end)) {
		out->slabs.broken++;
		return;
	}
	(void)vec_add(&out->arenas);
	memmove(&out->arenas.data[at + 1], &out->arenas.data[at],
		(out->arenas.count - 1 - at) * sizeof(range));
	out->arenas.data[at] = range;
	taddr_t first = ROUND_UP(range.start, (taddr_t)out->layout.pool);

	add_rest(r, range.start, first, ROW_PYTHON_OWN);
	add_pools(r, first);
	add_rest(r, first + a->pools * (taddr_t)out->layout.pool, range.end, ROW_PYTHON_OWN);
}

void pymalloc_read(const struct allocator_input *in, const struct spans *taken,
		   struct pymalloc *out)
{
	struct reader r = {.memory = in->memory, .out = out};
	struct pymalloc_array array;

	*out = (struct pymalloc){.found = pymalloc_find(in, &array)};
	if (out->found == PYMALLOC_FOUND) {
		out->layout = array.layout;
		out->slabs = (struct slabs){.most = slabs_most(in->memory->pages),
					    .row_live = ROW_PYTHON_LIVE,
					    .row_free = ROW_PYTHON_FREE,
					    .broken = array.broken};
		for (; r.number < array.list.count; r.number++) {
			r.arena = &array.list.data[r.number];
			if (r.arena->addr)
				add_arena(&r, taken);
		}
		slabs_sort(&out->slabs);
	}
	vec_deinit(&array.list);
}

void pymalloc_deinit(struct pymalloc *p)
{
	slabs_deinit(&p->slabs);
	vec_deinit(&p->arenas);
	*p = (struct pymalloc){0};
}
