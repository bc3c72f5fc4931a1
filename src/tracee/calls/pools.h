/*
 * Memory pools as a program announces them by client requests (--mempools=yes): which
 * blocks are in which pool, so that a pool's end is that of its blocks. Pure: what
 * comes and goes is reported to the caller, which makes events of it.
 *
 *	CREATE  DESTROY    a pool without blocks; all of its blocks go
 *	ALLOC   FREE       one block
 *	TRIM               blocks outside of the range go, those across its ends are cut
 *	MOVE               another name for the pool
 *	CHANGE             a block goes, another comes
 *
 * A pool that was never created (before ptmem attached, perhaps) is made by its
 * first block. Blocks go in the order in which they came.
 */
#ifndef PTMEM_TRACEE_CALLS_POOLS_H
#define PTMEM_TRACEE_CALLS_POOLS_H

#include "base/vec.h"
#include "tracee/calls/request.h"

/* Blocks of a pool by address: open addressing, linear probing. */
struct pool_block {
	taddr_t addr;          /* 0 = free */
	uint64_t size, order;
};

struct pool {
	taddr_t name;
	uint64_t flags;
	struct pool_block *slot;
	size_t count, capacity; /* capacity: a power of two, or 0 */
};

struct pools {
	VEC(struct pool) list;
	struct pool single;     /* blocks outside of pools, once there is a pool with AUTO_FREE */
	bool has_auto_free;
	uint64_t order;
};

struct pool_ops {
	void (*come)(void *ctx, taddr_t addr, uint64_t size);
	void (*gone)(void *ctx, taddr_t addr);
	void *ctx;
};

/* A zeroed struct pools is an empty one. */
void pools_deinit(struct pools *p);
void pools_copy(struct pools *to, const struct pools *from); /* @to: zeroed */

/*
 * Does what @r asks for; requests that are not of pools (ALLOC, FREE, RESIZE) too. True: a pool
 * that was asked for exists.
 */
bool pools_apply(struct pools *p, const struct request *r, const struct pool_ops *ops);

#endif
