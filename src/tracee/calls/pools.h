/*
 * Memory pools as a program announces them by client requests (--mempools=yes): which blocks are in
 * which pool, so that the blocks end with their pool. Does no I/O: the caller turns the reported
 * changes into events.
 *
 *	CREATE  DESTROY    a pool without blocks; all its blocks end
 *	ALLOC   FREE       one block
 *	TRIM               blocks outside of the range end, those across its bounds are cut
 *	MOVE               a new name for the pool
 *	CHANGE             one block replaces another
 *
 * A pool whose creation was not seen (before ptmem attached, perhaps) is created by its first
 * block. Blocks end in the order of their creation.
 */
#ifndef PTMEM_TRACEE_CALLS_POOLS_H
#define PTMEM_TRACEE_CALLS_POOLS_H

#include "base/alloc.h"
#include "base/hash.h"
#include "tracee/calls/client_request.h"

struct pool_block {
	taddr_t addr;
	uint64_t size, order;
};

struct pool {
	taddr_t name;
	uint64_t flags;
	HASH(struct pool_block) blocks; /* by address */
};

struct pools {
	VEC(struct pool) list;
	struct pool single;     /* blocks outside of pools, once a pool with AUTO_FREE exists */
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
 * Carries out @r, which may also be a request without a pool (ALLOC, FREE, RESIZE). Returns the
 * result of a query whether a pool exists.
 */
bool pools_apply(struct pools *p, const struct request *r, const struct pool_ops *ops);

#endif
