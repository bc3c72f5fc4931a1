/*
 * Memory that an allocator other than glibc's divides into places of one size, each of which holds
 * one block: a slab (jemalloc), a group (musl), a page of a segment (mimalloc), a span (tcmalloc).
 * Where blocks have any size they begin at a place and have as many as they need (musl before).
 *
 *	start       first          first + stride                         end
 *	| own       | place 0      | place 1     | ...  | rest            |
 *
 * What is in no place belongs to the row of the slab.
 */
#ifndef PTMEM_MALLOC_SLABS_H
#define PTMEM_MALLOC_SLABS_H

#include "base/alloc.h"
#include "malloc/account.h"
#include "malloc/memory.h"

enum place_state {
	PLACE_FREE,
	PLACE_LIVE,
	PLACE_CACHED,           /* free, in a thread's cache */
	PLACE_INNER,            /* divided by an inner slab that begins there, or the allocator's */
};
#define PLACES_PER_BYTE 4u

struct slab {
	taddr_t start, end;
	taddr_t first;          /* place 0 */
	uint64_t stride;
	uint32_t places;
	enum inspect_row rest;  /* memory outside all places */
	bool is_inner;          /* in a place of another slab */
	bool has_runs;          /* a block may go on in places after its own, which are inner */
	bool is_loose;          /* blocks may begin after their places do, it is unknown where */
	size_t states;          /* index of its first state */
};

struct slab_block {
	taddr_t addr;
	uint64_t usable;
};

/*
 * The block in place @i of @slab, which is live: false if what the allocator keeps there
 * contradicts itself.
 */
typedef bool slab_block_fn(struct inspect_memory *m, const struct slab *slab, uint32_t i,
			   struct slab_block *out);

struct slabs {
	VEC(struct slab) list;  /* outer ones first; by slabs_sort: both ascending and disjoint */
	VEC(uint8_t) states;    /* PLACES_PER_BYTE in each */
	size_t outer;           /* how many are not inner; by slabs_sort */
	size_t most;            /* that are taken; more are not believed */
	slab_block_fn *block;   /* NULL: a block fills its place */
	enum inspect_row row_live, row_free; /* of places */
	enum inspect_row row_own; /* of what is around a block in its place */
	uint32_t broken;        /* what contradicted the rest, and was left out */
};

/* How many the memory of a process may have. */
size_t slabs_most(const struct resident *pages);
/* Adds @slab, all of whose places have @state. Valid until the next one; NULL: it cannot be one. */
const struct slab *slabs_add(struct slabs *p, const struct slab *slab, enum place_state state);
/* Adds memory without places, if it is not empty. */
void slabs_add_rest(struct slabs *p, taddr_t start, taddr_t end, enum inspect_row row);
/* slabs_add returned @slab, or it is an element of the list. */
enum place_state slabs_state(const struct slabs *p, const struct slab *slab, uint32_t i);
void slabs_set(struct slabs *p, const struct slab *slab, uint32_t i, enum place_state state);

static inline const struct slab *slab_at(const struct slabs *p, size_t number)
{
	return &p->list.data[number];
}

/* When all are there. Those that overlap others are left out. */
void slabs_sort(struct slabs *p);

/* Marks places that are live and have inner slabs: no block is in them. After sorting. */
void slabs_mark_inner(struct slabs *p);

/*
 * Marks the block at @addr, which is live and fills its place, of @size bytes (0 = any). False:
 * there is no such block. After sorting.
 */
bool slabs_mark(struct slabs *p, taddr_t addr, uint64_t size, enum place_state state);
/* The same in @slab, which is known; also before sorting. */
bool slabs_mark_in(struct slabs *p, const struct slab *slab, taddr_t addr, enum place_state state);

/* The blocks in use: what they add up to, and fn(ctx, block, usable size) for each. */
struct slab_sums {
	uint64_t slabs, live_blocks, live_bytes, cached_blocks, cached_bytes;
	uint64_t loose_blocks;  /* live ones in slabs that are loose */
};
typedef void slab_live_fn(void *ctx, taddr_t addr, uint64_t usable);
struct slabs_visit {
	slab_live_fn *fn;       /* NULL = not wanted */
	void *ctx;
	struct slab_sums sums;
};
void slabs_visit(struct slabs *p, struct inspect_memory *m, struct slabs_visit *v);

/* Calls @fn for each part of @part that outer slabs cover, ascending. */
typedef void slab_part_fn(void *ctx, taddr_t start, taddr_t end, enum inspect_row row);
void slabs_each_part(const struct slabs *p, struct inspect_memory *m, struct addr_range part,
		     slab_part_fn *fn, void *ctx);
/* Adds the bytes of @part, which outer slabs cover, to @account. */
void slabs_account(const struct slabs *p, struct inspect_memory *m, struct addr_range part,
		   struct account *account);

void slabs_deinit(struct slabs *p);

#endif
