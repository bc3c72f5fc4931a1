/* The tables of memory pools. There are few pools, but maybe many blocks. */
#include "tracee/calls/pools.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tracee/calls/client_request.h"
#include "tracee/state/thread.h"

/* -- blocks of one pool -- */

static struct pool_block *find_block(const struct pool *p, taddr_t addr)
{
	return hash_find(&p->blocks, hash_u64(addr), b, b->addr == addr);
}

static int compare_order(const void *a, const void *b)
{
	const struct pool_block *x = a, *y = b;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Copies the blocks in [@start, @end), or with @outside all others, in order of creation. */
static struct pool_block *select_blocks(const struct pool *p, taddr_t start, taddr_t end,
					bool outside, size_t *count_out)
{
	struct pool_block *found = xcalloc(p->blocks.index.count + 1, sizeof(*found));
	size_t n = 0;
	for (size_t i = 0; hash_next(&p->blocks.index, &i); i++) {
		const struct pool_block *b = &p->blocks.slot[i];
		taddr_t last = b->size ? b->addr + b->size - 1 : b->addr;
		bool is_within = b->addr >= start && last < end;
		if (is_within != outside)
			found[n++] = *b;
	}
	qsort(found, n, sizeof(*found), compare_order);
	*count_out = n;
	return found;
}

/* -- pools -- */

static struct pool *find_pool(const struct pools *p, taddr_t name)
{
	for (size_t i = p->list.count; i-- > 0;) {
		if (p->list.data[i].name == name)
			return &p->list.data[i];
	}
	return NULL;
}

static struct pool *get_pool(struct pools *p, taddr_t name)
{
	struct pool *pool = find_pool(p, name);
	if (!pool) {
		pool = vec_add(&p->list);
		*pool = (struct pool){.name = name};
	}
	return pool;
}

static void copy_pool(struct pool *to, const struct pool *from)
{
	*to = *from;
	hash_copy(&to->blocks, &from->blocks);
}

void pools_copy(struct pools *to, const struct pools *from)
{
	for (size_t i = 0; i < from->list.count; i++)
		copy_pool(vec_add(&to->list), &from->list.data[i]);
	copy_pool(&to->single, &from->single);
	to->has_auto_free = from->has_auto_free;
	to->order = from->order;
}

void pools_deinit(struct pools *p)
{
	vec_release(&p->list, e, hash_deinit(&e->blocks));
	hash_deinit(&p->single.blocks);
	p->single = (struct pool){0};
}

/* -- requests -- */

/* Blocks outside of pools that lie in a block of a pool with AUTO_FREE end with that block. */
static void end_inner(struct pools *p, const struct pool_block *outer, const struct pool_ops *ops)
{
	size_t count;
	taddr_t end = outer->addr + outer->size;
	struct pool_block *inner = select_blocks(&p->single, outer->addr, end, false, &count);
	for (size_t i = 0; i < count; i++) {
		hash_remove(&p->single.blocks, find_block(&p->single, inner[i].addr));
		ops->gone(ops->ctx, inner[i].addr);
	}
	free(inner);
}

static void end_block(struct pools *p, struct pool *pool, taddr_t addr, const struct pool_ops *ops)
{
	struct pool_block *b = find_block(pool, addr);
	if (!b)
		return;
	struct pool_block gone = *b;
	hash_remove(&pool->blocks, b);
	if (pool->flags & REQUEST_POOL_AUTO_FREE && pool != &p->single)
		end_inner(p, &gone, ops);
	ops->gone(ops->ctx, addr);
}

static void begin_block(struct pools *p, struct pool *pool, taddr_t addr, uint64_t size,
			const struct pool_ops *ops)
{
	if (!addr)
		return;
	end_block(p, pool, addr, ops); /* replaces another block */
	*hash_add(&pool->blocks, hash_u64(addr)) = (struct pool_block){addr, size, ++p->order};
	ops->come(ops->ctx, addr, size);
}

/* The part of a block that remains outside the range is announced again. */
static void trim(struct pools *p, struct pool *pool, taddr_t start, uint64_t size,
		 const struct pool_ops *ops)
{
	taddr_t end = start + size;
	size_t count;
	struct pool_block *cut = select_blocks(pool, start, end, true, &count);
	for (size_t i = 0; i < count; i++) {
		taddr_t low = MAX(cut[i].addr, start), high = MIN(cut[i].addr + cut[i].size, end);
		end_block(p, pool, cut[i].addr, ops);
		if (low < high)
			begin_block(p, pool, low, high - low, ops);
	}
	free(cut);
}

static void destroy(struct pools *p, struct pool *pool, const struct pool_ops *ops)
{
	size_t count;
	struct pool_block *all = select_blocks(pool, 0, 0, true, &count);
	for (size_t i = 0; i < count; i++)
		end_block(p, pool, all[i].addr, ops);
	free(all);
	hash_deinit(&pool->blocks);
	vec_take_swap(&p->list, (size_t)(pool - p->list.data));
}

static void apply_single(struct pools *p, const struct request *r, const struct pool_ops *ops)
{
	struct pool_block *b = find_block(&p->single, r->addr);
	if (!r->addr)
		return;
	if (r->kind != REQUEST_ALLOC) {
		if (b)
			hash_remove(&p->single.blocks, b);
		ops->gone(ops->ctx, r->addr);
	}
	if (r->kind == REQUEST_FREE)
		return;
	b = find_block(&p->single, r->addr);
	const struct pool_block now = {r->addr, r->size, ++p->order};
	if (b)
		*b = now;
	else if (p->has_auto_free)
		*hash_add(&p->single.blocks, hash_u64(r->addr)) = now;
	ops->come(ops->ctx, r->addr, r->size);
}

bool pools_apply(struct pools *p, const struct request *r, const struct pool_ops *ops)
{
	struct pool *pool = request_is_of_pool(r) ? find_pool(p, r->pool) : NULL;
	switch ((enum request_kind)r->kind) {
	case REQUEST_ALLOC:
	case REQUEST_FREE:
	case REQUEST_RESIZE:
		apply_single(p, r, ops);
		break;
	case REQUEST_POOL_CREATE:
		get_pool(p, r->pool)->flags = r->flags;
		p->has_auto_free |= r->flags & REQUEST_POOL_AUTO_FREE;
		break;
	case REQUEST_POOL_DESTROY:
		if (pool)
			destroy(p, pool, ops);
		break;
	case REQUEST_POOL_ALLOC:
		begin_block(p, get_pool(p, r->pool), r->addr, r->size, ops);
		break;
	case REQUEST_POOL_FREE:
		if (pool)
			end_block(p, pool, r->addr, ops);
		break;
	case REQUEST_POOL_TRIM:
		if (pool)
			trim(p, pool, r->addr, r->size, ops);
		break;
	case REQUEST_POOL_MOVE:
		if (pool)
			pool->name = r->addr;
		break;
	case REQUEST_POOL_CHANGE:
		if (!pool)
			break;
		end_block(p, pool, r->old_addr, ops);
		begin_block(p, pool, r->addr, r->size, ops);
		break;
	case REQUEST_NONE:
	case REQUEST_IS_RUNNING:
	case REQUEST_MONITOR:
	case REQUEST_POOL_EXISTS:
		break;
	}
	return pool != NULL;
}
