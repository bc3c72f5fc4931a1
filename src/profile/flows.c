/*
 * The sum of all releases is derived from the totals; the difference since the last call belongs to
 * a stack.
 */
#include "profile/flows.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/heap_calls.h"
#include "profile/blocks.h"
#include "profile/estimate.h"
#include "profile/pages.h"
#include "profile/profile.h"

struct releases {
	VEC(struct release) list;
	VEC(uint32_t) of_node;  /* index + 1 by node; 0 = none yet */
	uint64_t bytes, blocks; /* total so far */
};

struct releases *releases_new(void)
{
	return xcalloc(1, sizeof(struct releases));
}

struct releases *releases_clone(const struct releases *r)
{
	struct releases *c = releases_new();

	vec_append(&c->list, &r->list);
	vec_append(&c->of_node, &r->of_node);
	c->bytes = r->bytes;
	c->blocks = r->blocks;
	return c;
}

void releases_free(struct releases *r)
{
	if (!r)
		return;
	vec_deinit(&r->list);
	vec_deinit(&r->of_node);
	free(r);
}

static struct release *release_of(struct releases *r, uint32_t node)
{
	while (r->of_node.count <= node)
		*vec_add(&r->of_node) = 0;
	uint32_t *index = &r->of_node.data[node];

	if (!*index) {
		*vec_add(&r->list) = (struct release){.node = node};
		*index = (uint32_t)r->list.count;
	}
	return &r->list.data[*index - 1];
}

static void add(struct release_sum *sum, uint64_t bytes, uint64_t blocks)
{
	sum->bytes += bytes;
	sum->blocks += blocks;
}

void releases_note(struct releases *r, const struct profile_totals *totals, uint32_t node)
{
	if (!r)
		return;
	uint64_t bytes = totals->allocated_bytes + totals->earlier_bytes - totals->live_bytes;
	uint64_t blocks = totals->allocations + totals->earlier_blocks - totals->live_blocks;

	if (bytes == r->bytes && blocks == r->blocks)
		return;
	struct release *release = release_of(r, node);

	add(&release->all, bytes - r->bytes, blocks - r->blocks);
	add(&release->recent, bytes - r->bytes, blocks - r->blocks);
	r->bytes = bytes;
	r->blocks = blocks;
}

void releases_restart(struct releases *r)
{
	for (size_t i = 0; r && i < r->list.count; i++)
		r->list.data[i].recent = (struct release_sum){0};
}

uint32_t releases_count(const struct releases *r)
{
	return (uint32_t)r->list.count;
}

const struct release *releases_get(const struct releases *r, uint32_t i)
{
	return &r->list.data[i];
}

/* A block's owner is the index of its stack. */

struct flows {
	bool is_full;
	uint64_t sample_interval; /* 0: all blocks are known */
	VEC(struct flow) list;
	VEC(uint32_t) of_node; /* index + 1 by node; 0 = none yet */
	struct blocks *blocks;
	struct held_blocks held; /* blocks that a realloc may be moving */
	struct pages pages;    /* mapped ranges; a range's leaf is the index of its stack */
	struct blocks
		*announced; /* announced by the program: may lie in other blocks; NULL = none yet */
};

struct flows *flows_new(bool is_full)
{
	struct flows *f = xcalloc(1, sizeof(*f));
	f->is_full = is_full;
	f->blocks = blocks_new(false, 16);
	return f;
}

void flows_set_sample_interval(struct flows *f, uint64_t interval)
{
	f->sample_interval = interval;
}

struct flows *flows_clone(const struct flows *f)
{
	struct flows *c = flows_new(f->is_full);
	c->sample_interval = f->sample_interval;
	blocks_free(c->blocks);
	c->blocks = blocks_clone(f->blocks);
	if (f->announced)
		c->announced = blocks_clone(f->announced);
	pages_clone(&c->pages, &f->pages);
	vec_append(&c->list, &f->list);
	vec_append(&c->of_node, &f->of_node);
	for (size_t i = 0; i < f->held.list.count; i++) /* the child does not make that call */
		blocks_add(c->blocks, &f->held.list.data[i].block, NULL);
	return c;
}

void flows_free(struct flows *f)
{
	if (!f)
		return;
	blocks_free(f->blocks);
	if (f->announced)
		blocks_free(f->announced);
	pages_deinit(&f->pages);
	vec_deinit(&f->list);
	vec_deinit(&f->of_node);
	vec_deinit(&f->held.list);
	free(f);
}

static uint32_t flow_of(struct flows *f, uint32_t node)
{
	while (f->of_node.count <= node)
		*vec_add(&f->of_node) = 0;
	uint32_t *index = &f->of_node.data[node];
	if (!*index) {
		*vec_add(&f->list) = (struct flow){.node = node};
		*index = (uint32_t)f->list.count;
	}
	return *index - 1;
}

/* @block is no more: of its owner's live numbers, into those freed at @node. */
static void end_block(struct flows *f, const struct block *block, uint32_t node)
{
	if (f->is_full && block->size == 0)
		return;
	struct weight w = estimate_block(f->sample_interval, block, 0);
	struct flow *owner = &f->list.data[block->leaf];
	owner->value[FLOW_LIVE_BYTES] -= w.bytes;
	owner->value[FLOW_LIVE_BLOCKS] -= w.blocks;
	if (!f->is_full)
		return;
	uint32_t index = flow_of(f, node); /* may move the list */
	struct flow *freer = &f->list.data[index];
	freer->value[FLOW_FREED_BYTES] += w.bytes;
	freer->value[FLOW_FREED_BLOCKS] += w.blocks;
}

/* EVENT_EARLIER does not count as allocated. */
static void begin_block(struct flows *f, const struct event *ev)
{
	struct block old, block = {.addr = ev->addr,
				  .size = ev->size,
				  .capacity = ev->size,
				  .sample_shift = ev->sample_shift,
				  .weighted = ev->weighted};
	bool is_announced = ev->function == FUNCTION_REQUEST;
	if (is_announced && !f->announced)
		f->announced = blocks_new(false, 16);
	block.leaf = flow_of(f, ev->node);
	if (blocks_add(is_announced ? f->announced : f->blocks, &block, &old))
		end_block(f, &old, ev->node); /* its free was missed */
	struct weight w = estimate_block(f->sample_interval, &block, 0);
	struct flow *flow = &f->list.data[block.leaf];
	flow->value[FLOW_LIVE_BYTES] += w.bytes;
	flow->value[FLOW_LIVE_BLOCKS] += w.blocks;
	if (ev->kind == EVENT_EARLIER)
		return;
	flow->value[FLOW_TOTAL_BYTES] += w.bytes;
	flow->value[FLOW_TOTAL_BLOCKS] += w.blocks;
}

/* Removes the block at @addr; an announced block is newer than the memory that contains it. */
static bool take_block(struct flows *f, taddr_t addr, struct block *out)
{
	return (f->announced && blocks_take(f->announced, addr, out)) ||
	       blocks_take(f->blocks, addr, out);
}

static void begin_move(struct flows *f, const struct event *ev)
{
	struct held_block held = {.thread = ev->thread, .from = HELD_COUNTED};

	if (ev->old_addr && take_block(f, ev->old_addr, &held.block))
		*vec_add(&f->held.list) = held;
}

static void end_move(struct flows *f, const struct event *ev)
{
	struct held_block old;
	if (!ev->old_addr) {
		if (ev->addr)
			begin_block(f, ev);
	} else if (held_take(&f->held, ev->thread, &old) ||
		   take_block(f, ev->old_addr, &old.block)) {
		if (!ev->addr && ev->size > 0) {
			blocks_add(f->blocks, &old.block, NULL); /* it failed */
			return;
		}
		if (ev->addr)
			begin_block(f, ev);
		end_block(f, &old.block, ev->node);
	}
}

/* The stacks that unmap pages. */
struct unmapping {
	struct flows *flows;
	uint32_t node;
};

static void end_pages(void *ctx, uint32_t owner_index, uint64_t bytes)
{
	const struct unmapping *u = ctx;
	struct flow *owner = &u->flows->list.data[owner_index];
	owner->value[FLOW_LIVE_BYTES] -= bytes;
	owner->value[FLOW_LIVE_BLOCKS] -= bytes / PAGE_SIZE_MIN;
	if (!u->flows->is_full)
		return;
	uint32_t index = flow_of(u->flows, u->node); /* may move the list */
	struct flow *freer = &u->flows->list.data[index];
	freer->value[FLOW_FREED_BYTES] += bytes;
	freer->value[FLOW_FREED_BLOCKS] += bytes / PAGE_SIZE_MIN;
}

/* Each page is a block; mapping over a page frees it at the mapping call. */
static void change_pages(struct flows *f, const struct event *ev)
{
	taddr_t start = ROUND_DOWN(ev->addr, PAGE_SIZE_MIN),
		end = ROUND_UP(ev->addr + ev->size, PAGE_SIZE_MIN);
	struct unmapping u = {f, ev->node};
	if (!ev->addr || ev->size == 0 || end <= start)
		return;
	pages_remove(&f->pages, start, end, end_pages, &u);
	if (ev->kind == EVENT_UNMAP)
		return;
	uint32_t index = flow_of(f, ev->node);
	pages_add(&f->pages, start, end, index);
	struct flow *flow = &f->list.data[index];
	flow->value[FLOW_LIVE_BYTES] += end - start;
	flow->value[FLOW_LIVE_BLOCKS] += (end - start) / PAGE_SIZE_MIN;
	flow->value[FLOW_TOTAL_BYTES] += end - start;
	flow->value[FLOW_TOTAL_BLOCKS] += (end - start) / PAGE_SIZE_MIN;
}

void flows_event(struct flows *f, const struct event *ev)
{
	struct block block;
	switch (ev->kind) {
	case EVENT_ALLOC:
	case EVENT_EARLIER:
		if (ev->addr)
			begin_block(f, ev);
		break;
	case EVENT_FREE:
		if (ev->addr && take_block(f, ev->addr, &block))
			end_block(f, &block, ev->node);
		break;
	case EVENT_REALLOC_BEGIN:
		begin_move(f, ev);
		break;
	case EVENT_REALLOC_END:
		end_move(f, ev);
		break;
	case EVENT_MAP:
	case EVENT_UNMAP:
		change_pages(f, ev);
		break;
	}
}

struct flows *flows_from_profile(const struct profile *p)
{
	struct flows *f = flows_new(false);
	for (uint32_t i = 1; i <= profile_leaf_count(p); i++) {
		const struct leaf *leaf = profile_leaf(p, i);
		uint32_t index = flow_of(f, leaf->node);
		struct flow *flow = &f->list.data[index];
		flow->value[FLOW_LIVE_BYTES] += leaf->live_bytes;
		flow->value[FLOW_LIVE_BLOCKS] += profile_count(p, leaf->live_blocks);
	}
	return f;
}

struct flows *flows_rounded(const struct flows *f)
{
	static const enum flow_event blocks[] = {FLOW_LIVE_BLOCKS, FLOW_TOTAL_BLOCKS,
						 FLOW_FREED_BLOCKS};
	struct flows *r = flows_new(f->is_full);

	for (size_t i = 0; i < f->list.count; i++) {
		struct flow *flow = vec_add(&r->list);

		*flow = f->list.data[i];
		for (size_t k = 0; k < ARRAY_SIZE(blocks) && f->sample_interval; k++)
			flow->value[blocks[k]] = estimate_count(flow->value[blocks[k]]);
	}
	return r;
}

uint32_t flows_count(const struct flows *f)
{
	return (uint32_t)f->list.count;
}

const struct flow *flows_get(const struct flows *f, uint32_t i)
{
	return &f->list.data[i];
}

bool flows_is_full(const struct flows *f)
{
	return f->is_full;
}
