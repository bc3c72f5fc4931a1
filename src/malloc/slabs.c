/*
 * Slabs are kept in an array, sorted once all are there; the states of their places, two bits
 * each, in another.
 */
#include "malloc/slabs.h"

#include <string.h>

#define DEPTH_MAX 16u /* of slabs in places of slabs */
/* More slabs than pages are those of blocks that were never touched. */
#define SLABS_PER_PAGE 4u
#define SLABS_MIN (UINT64_C(1) << 18)

size_t slabs_most(const struct resident *pages)
{
	return (pages->resident + pages->swapped) / PAGE_SIZE_MIN * SLABS_PER_PAGE + SLABS_MIN;
}

const struct slab *slabs_add(struct slabs *p, const struct slab *slab, enum place_state state)
{
	uint64_t size;

	if (slab->start >= slab->end || p->list.count >= p->most ||
	    __builtin_mul_overflow(slab->stride, slab->places, &size) ||
	    slab->first < slab->start || slab->first > slab->end ||
	    size > slab->end - slab->first || (slab->places > 0 && slab->stride == 0)) {
		p->broken++;
		return NULL;
	}
	size_t bytes = (slab->places + PLACES_PER_BYTE - 1) / PLACES_PER_BYTE;
	size_t states = p->states.count;

	vec_reserve(&p->states, states + bytes);
	if (bytes)
		memset(p->states.data + states, (int)state * 0x55, bytes);
	p->states.count += bytes;
	struct slab *added = vec_add(&p->list);

	*added = *slab;
	added->states = states;
	return added;
}

void slabs_add_rest(struct slabs *p, taddr_t start, taddr_t end, enum inspect_row row)
{
	if (start < end)
		slabs_add(p,
			  &(struct slab){.start = start, .end = end, .first = start, .rest = row},
			  PLACE_FREE);
}

enum place_state slabs_state(const struct slabs *p, const struct slab *slab, uint32_t i)
{
	return p->states.data[slab->states + i / PLACES_PER_BYTE] >> i % PLACES_PER_BYTE * 2 & 3;
}

void slabs_set(struct slabs *p, const struct slab *slab, uint32_t i, enum place_state state)
{
	uint8_t *byte = &p->states.data[slab->states + i / PLACES_PER_BYTE];
	uint32_t shift = i % PLACES_PER_BYTE * 2;

	*byte = (uint8_t)((*byte & ~(3u << shift)) | (uint32_t)state << shift);
}

static int compare(const void *a, const void *b)
{
	const struct slab *x = a, *y = b;

	if (x->is_inner != y->is_inner)
		return x->is_inner ? 1 : -1;
	return taddr_compare(x, y);
}

void slabs_sort(struct slabs *p)
{
	size_t kept = 0;

	vec_sort(&p->list, compare);
	p->outer = 0;
	for (size_t i = 0; i < p->list.count; i++) {
		const struct slab *e = &p->list.data[i], *last = &p->list.data[kept - 1];

		/* inner ones may be in places of each other */
		if (kept > 0 && last->is_inner == e->is_inner &&
		    e->start < (e->is_inner ? last->start + 1 : last->end)) {
			p->broken++;
			continue;
		}
		p->outer += !e->is_inner;
		p->list.data[kept++] = *e;
	}
	p->list.count = kept;
}

static size_t find_outer(const struct slabs *p, taddr_t addr)
{
	size_t low = 0, high = p->outer;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (p->list.data[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The slab in the place [@start, @end); NULL if none is there. */
static const struct slab *find_inner(const struct slabs *p, taddr_t start, taddr_t end)
{
	size_t low = p->outer, high = p->list.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (p->list.data[middle].start < start)
			low = middle + 1;
		else
			high = middle;
	}
	const struct slab *e = &p->list.data[low];

	return low < p->list.count && e->start == start && e->end <= end ? e : NULL;
}

/* Whether @addr is in a place of @slab, and in which. */
static bool find_place(const struct slab *slab, taddr_t addr, uint32_t *place_out)
{
	if (addr < slab->first || slab->places == 0 ||
	    (addr - slab->first) / slab->stride >= slab->places)
		return false;
	*place_out = (uint32_t)((addr - slab->first) / slab->stride);
	return true;
}

bool slabs_mark_in(struct slabs *p, const struct slab *slab, taddr_t addr, enum place_state state)
{
	uint32_t i;

	if (!find_place(slab, addr, &i) || addr != slab->first + i * slab->stride ||
	    slabs_state(p, slab, i) != PLACE_LIVE)
		return false;
	slabs_set(p, slab, i, state);
	return true;
}

bool slabs_mark(struct slabs *p, taddr_t addr, uint64_t size, enum place_state state)
{
	size_t i = find_outer(p, addr);
	const struct slab *slab = &p->list.data[i];

	return i < p->outer && (!size || slab->stride == size) &&
	       slabs_mark_in(p, slab, addr, state);
}

/* Marks the place that begins where @inner does, in whatever slab it is. */
static void mark_inner(struct slabs *p, const struct slab *inner)
{
	size_t outer = find_outer(p, inner->start);
	const struct slab *at = outer < p->outer ? &p->list.data[outer] : NULL;
	uint32_t i;

	for (uint32_t n = 0; n < DEPTH_MAX && at && find_place(at, inner->start, &i); n++) {
		taddr_t place = at->first + i * at->stride;

		if (place == inner->start) {
			if (slabs_state(p, at, i) == PLACE_LIVE)
				slabs_set(p, at, i, PLACE_INNER);
			return;
		}
		at = find_inner(p, place, place + at->stride);
	}
}

void slabs_mark_inner(struct slabs *p)
{
	for (size_t i = p->outer; i < p->list.count; i++)
		mark_inner(p, &p->list.data[i]);
}

/* How many places the block in place @i has. */
static uint32_t run_of(const struct slabs *p, const struct slab *slab, uint32_t i)
{
	uint32_t n = 1;

	while (slab->has_runs && i + n < slab->places &&
	       slabs_state(p, slab, i + n) == PLACE_INNER)
		n++;
	return n;
}

static bool find_block(const struct slabs *p, struct inspect_memory *m, const struct slab *slab,
		       uint32_t i, struct slab_block *out)
{
	taddr_t place = slab->first + i * slab->stride;

	if (!p->block) {
		*out = (struct slab_block){place, slab->stride};
		return true;
	}
	uint64_t size = run_of(p, slab, i) * slab->stride;

	return p->block(m, slab, i, out) && out->addr >= place && out->addr - place <= size &&
	       out->usable <= size - (out->addr - place);
}

void slabs_visit(struct slabs *p, struct inspect_memory *m, struct slabs_visit *v)
{
	for (size_t n = 0; n < p->list.count; n++) {
		const struct slab *slab = &p->list.data[n];

		v->sums.slabs += slab->places > 0;
		for (uint32_t i = 0; i < slab->places; i++) {
			enum place_state state = slabs_state(p, slab, i);
			struct slab_block b;

			if (state == PLACE_CACHED) {
				v->sums.cached_blocks++;
				v->sums.cached_bytes += slab->stride;
			}
			if (state != PLACE_LIVE)
				continue;
			if (!find_block(p, m, slab, i, &b)) {
				p->broken++;
				continue;
			}
			v->sums.live_blocks++;
			v->sums.live_bytes += b.usable;
			v->sums.loose_blocks += slab->is_loose;
			if (v->fn)
				v->fn(v->ctx, b.addr, b.usable);
		}
	}
}

/* -- rows -- */

struct accounting {
	const struct slabs *slabs;
	struct inspect_memory *memory;
	struct addr_range part;
	slab_part_fn *fn;
	void *ctx;
};

static void add(struct accounting *a, taddr_t start, taddr_t end, enum inspect_row row)
{
	start = MAX(start, a->part.start);
	end = MIN(end, a->part.end);
	if (start < end)
		a->fn(a->ctx, start, end, row);
}

static void add_live(struct accounting *a, const struct slab *slab, uint32_t i)
{
	taddr_t place = slab->first + i * slab->stride;
	taddr_t end = place + run_of(a->slabs, slab, i) * slab->stride;
	struct slab_block b;

	if (!find_block(a->slabs, a->memory, slab, i, &b)) {
		add(a, place, end, ROW_UNKNOWN_HEAP);
		return;
	}
	add(a, place, b.addr, a->slabs->row_own);
	add(a, b.addr, b.addr + b.usable, a->slabs->row_live);
	add(a, b.addr + b.usable, end, a->slabs->row_own);
}

static void add_slab(struct accounting *a, const struct slab *slab, uint32_t depth);

static void add_inner(struct accounting *a, taddr_t start, taddr_t end, uint32_t depth)
{
	const struct slab *inner = find_inner(a->slabs, start, end);

	if (inner && depth < DEPTH_MAX) {
		add_slab(a, inner, depth + 1);
		start = inner->end;
	}
	add(a, start, end, ROW_OWN);
}

static void add_slab(struct accounting *a, const struct slab *slab, uint32_t depth)
{
	taddr_t at = slab->first;

	add(a, slab->start, at, slab->rest);
	for (uint32_t i = 0, n; i < slab->places; i += n, at += n * slab->stride) {
		n = 1;
		switch (slabs_state(a->slabs, slab, i)) {
		case PLACE_LIVE:
			add_live(a, slab, i);
			n = run_of(a->slabs, slab, i);
			break;
		case PLACE_INNER:
			add_inner(a, at, at + slab->stride, depth);
			break;
		case PLACE_CACHED:
			add(a, at, at + slab->stride, ROW_TCACHE);
			break;
		case PLACE_FREE:
			add(a, at, at + slab->stride, a->slabs->row_free);
			break;
		}
	}
	add(a, at, slab->end, slab->rest);
}

void slabs_each_part(const struct slabs *p, struct inspect_memory *m, struct addr_range part,
		     slab_part_fn *fn, void *ctx)
{
	struct accounting a = {p, m, part, fn, ctx};

	for (size_t i = find_outer(p, part.start); i < p->outer; i++) {
		if (p->list.data[i].start >= part.end)
			break;
		add_slab(&a, &p->list.data[i], 0);
	}
}

static void add_to_account(void *ctx, taddr_t start, taddr_t end, enum inspect_row row)
{
	account_add(ctx, start, end, row, row);
}

void slabs_account(const struct slabs *p, struct inspect_memory *m, struct addr_range part,
		   struct account *account)
{
	slabs_each_part(p, m, part, add_to_account, account);
}

void slabs_deinit(struct slabs *p)
{
	vec_deinit(&p->list);
	vec_deinit(&p->states);
}
