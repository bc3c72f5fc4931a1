/*
 * Changes to a profile by heap events that are not inline in profile_update.h: new leaves, adding
 * and removing blocks, a new peak.
 */
#include "profile/profile_update.h"

#include <string.h>

#include "base/alloc.h"
#include "base/heap_function.h"

/* Time. */

void profile_pass_ms(struct profile *p)
{
	if (!p->has_first) {
		p->has_first = true;
		p->first_ns = p->now_ns;
	}
	p->time_ms = (p->now_ns - p->first_ns) / 1000000;
	p->next_ms_ns = p->first_ns + (p->time_ms + 1) * 1000000;
	for (struct history *h = p->history; h; h = h->next) {
		if (p->time_ms >= h->end_ms)
			history_advance(h, p->time_ms, &p->totals);
	}
}

/* Leaves. */

uint32_t profile_new_leaf(struct profile *p, uint32_t node)
{
	if (node >= p->leaf_of_node_count) {
		size_t old = p->leaf_of_node_count, capacity = old;
		p->leaf_of_node = xgrow(p->leaf_of_node, &capacity, (size_t)node + 1,
					sizeof(*p->leaf_of_node));
		memset(&p->leaf_of_node[old], 0, (capacity - old) * sizeof(*p->leaf_of_node));
		p->leaf_of_node_count = capacity;
	}
	uint32_t *leaf = &p->leaf_of_node[node];
	if (p->options.is_ignored && p->options.is_ignored(p->options.is_ignored_ctx, node))
		return *leaf = LEAF_IGNORED;
	*leaf = (uint32_t)p->leaf.count;
	*vec_add(&p->leaf) = (struct leaf){ .node = node, .epoch = p->snapshots.epoch };
	for (struct history *h = p->history; h; h = h->next)
		history_add_leaf(h, *leaf);
	return *leaf;
}

static void raise_peak_of(struct history *h, const struct profile_totals *t, uint64_t time_ns)
{
	if (t->live_bytes <= h->peak.bytes)
		return;
	h->peak_epoch++;
	h->peak = (struct history_peak){t->live_bytes, t->live_blocks, t->live_variance,
					time_ns - h->base_ns};
}

void profile_raise_peak(struct profile *p)
{
	struct profile_totals *t = &p->totals;
	uint64_t time_ns = profile_age(p);

	p->peak_limit = t->live_bytes;
	for (struct history *h = p->history; h; h = h->next)
		raise_peak_of(h, t, time_ns);
	if (t->live_bytes <= t->peak_bytes)
		return;
	t->peak_bytes = t->live_bytes;
	t->peak_blocks = t->live_blocks;
	t->peak_variance = t->live_variance;
	t->peak_time_ns = time_ns;
}

/* Events of the heap. */

struct held profile_hold(struct profile *p, taddr_t addr)
{
	struct held held = { .from = HELD_UNKNOWN, .block.addr = addr };
	if (blocks_take(p->blocks, addr, &held.block))
		held.from = HELD_COUNTED;
	else if (blocks_take(p->ignored, addr, &held.block))
		held.from = HELD_IGNORED;
	return held;
}

/*
 * Attempts no snapshot and counts no free, but advances B time: the free happened, but was
 * missed.
 */
void profile_free_unseen(struct profile *p, const struct block *block)
{
	struct weight w = profile_weigh(p, block);
	count_out(p, block->leaf, w);
	pass_bytes(p, w.bytes + w.extra);
	p->totals.replaced++;
	p->totals.replaced_blocks += w.blocks;
	const struct history_block b = history_block_of(block, 0, w);

	remember_release(p, &b, block->time_us);
}

void profile_add_block(struct profile *p, const struct block *block)
{
	struct block old;
	if (blocks_add(p->blocks, block, &old))
		profile_free_unseen(p, &old);
	else if (blocks_count(p->ignored))
		blocks_take(p->ignored, block->addr, &old);
}

void profile_add_ignored(struct profile *p, taddr_t addr, uint64_t size)
{
	struct block old, block = {
		.addr = addr, .size = size, .capacity = capacity_of(size, p->options.alignment),
	};
	if (!blocks_add(p->ignored, &block, NULL) && blocks_take(p->blocks, addr, &old))
		profile_free_unseen(p, &old);
}

uint64_t profile_now(const struct profile *p)
{
	return p->now_ns;
}

uint64_t profile_history_begin(const struct profile *p)
{
	return p->first_ns + (p->history ? p->history->base_ms * 1000000 : 0);
}

uint64_t profile_block_clock(const struct profile *p, uint64_t time_ns)
{
	return p->has_first && time_ns > p->first_ns ? (time_ns - p->first_ns) / 1000 : 0;
}

void profile_alloc(struct profile *p, const struct event *ev)
{
	bool is_request = ev->function == FUNCTION_REQUEST;
	if (!ev->addr) {
		p->totals.failed++;
		return;
	}
	if (is_request && !p->overlay)
		p->overlay = overlay_new();
	if (p->overlay)
		overlay_push(p, ev->addr, is_request);
	struct block block = {
		.addr = ev->addr,
		.size = ev->size,
		.capacity = capacity_of(ev->size, ev->align ? ev->align : p->options.alignment),
		.leaf = get_leaf(p, ev->node),
		.time_us = clock_us(p),
		.sample_shift = ev->sample_shift,
		.weighted = ev->weighted,
	};
	if (is_request)
		block.capacity = block.size;
	if (block.leaf == LEAF_IGNORED) {
		profile_add_ignored(p, ev->addr, ev->size);
		return;
	}
	profile_add_block(p, &block);
	p->totals.marked += block.weighted != 0;
	struct weight w = profile_weigh(p, &block);
	const struct history_block b = history_block_of(&block, ev->thread, w);

	count_alloc(p, block.leaf, w);
	remember_alloc(p, &b);
	if (p->options.sample_interval && ev->old_addr)
		remember_resize(p, &b, ev->old_addr);
}

void profile_free_block(struct profile *p, const struct block *block, uint32_t thread)
{
	struct weight w = profile_weigh(p, block);
	const struct history_block b = history_block_of(block, thread, w);

	count_free(p, block->leaf, w);
	remember_release(p, &b, block->time_us);
}
