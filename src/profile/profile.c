/* A profile: what each event changes, reallocs in two halves, and what reports ask. */
#include "profile/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/heap_calls.h"
#include "base/log.h"
#include "profile/profile_update.h"

/*
 * Changes to a profile by heap events that are not inline in profile_update.h: new leaves, adding
 * and removing blocks, a new peak.
 */

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
	if (p->options.keep_peak) /* none then */
		*vec_add(&p->leaf_peak) = (struct leaf_peak){.epoch = p->peak_epoch};
	if (p->groups) {
		p->options.find_groups(p->options.is_ignored_ctx, node, p->groups->is_in);
		groups_add_leaf(p->groups, *leaf);
	}
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
	p->peak_epoch++;
	t->peak_bytes = t->live_bytes;
	t->peak_blocks = t->live_blocks;
	t->peak_variance = t->live_variance;
	t->peak_time_ns = time_ns;
}

/* Events of the heap. */

/* Removes the block at @addr from whichever table it is in. Its bytes stay counted. */
static struct held_block profile_hold(struct profile *p, taddr_t addr)
{
	struct held_block held = { .from = HELD_UNKNOWN, .block.addr = addr };
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
static void profile_free_unseen(struct profile *p, const struct block *block)
{
	struct weight w = profile_weigh(p, block);
	count_out(p, block->leaf, w);
	pass_bytes(p, w.bytes + w.extra);
	p->totals.replaced++;
	p->totals.replaced_blocks += w.blocks;
	const struct history_block b = history_block_of(block, 0, w);

	remember_release(p, &b, block->time_us);
}

/*
 * Add a block that counts, or one that does not, to its table. The free of a counted block that was
 * live at the address must have been missed: it is subtracted, and counts as replaced.
 */
static void profile_add_block(struct profile *p, const struct block *block)
{
	struct block old;
	if (blocks_add(p->blocks, block, &old))
		profile_free_unseen(p, &old);
	else if (blocks_count(p->ignored))
		blocks_take(p->ignored, block->addr, &old);
}

static void profile_add_ignored(struct profile *p, taddr_t addr, uint64_t size)
{
	struct block old, block = {
		.addr = addr, .size = size, .capacity = capacity_of(size, p->options.alignment),
	};
	if (!blocks_add(p->ignored, &block, NULL) && blocks_take(p->blocks, addr, &old))
		profile_free_unseen(p, &old);
}

/* The rows "allocate" and "free" of doc/massif.md 2.2. */
static void profile_alloc(struct profile *p, const struct event *ev)
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

/* @thread released it. */
static void profile_free_block(struct profile *p, const struct block *block, uint32_t thread)
{
	struct weight w = profile_weigh(p, block);
	const struct history_block b = history_block_of(block, thread, w);

	count_free(p, block->leaf, w);
	remember_release(p, &b, block->time_us);
}

/*
 * realloc in its two halves. The first takes the block out of its table, since
 * from then on its address may be given to another thread; the bytes stay
 * counted. The second does the accounting of the whole in one event:
 *
 *	block was   returned            then
 *	any         NULL, size > 0      failed: the block is restored
 *	unknown     anything            nothing is recorded
 *	counted     NULL, size 0        a free
 *	counted     address             peak attempt if it shrinks; update; normal attempt
 *	counted     address, but the    peak attempt if it shrinks; its bytes stay where they
 *	            site is ignored     are forever, the block is ignored from now on
 *	ignored     anything            stays ignored
 *
 * Of samples the last but two rows are a free and an allocation: see profile.h.
 *
 * A first half whose second half never comes (the thread ended, a longjmp out of realloc, ptmem
 * detached meanwhile) is undone. If the address belongs to another block by then, that realloc had
 * already released it: it counts as a free.
 */

/* If another block is live at the address now, the free of the held one was missed. */
static void restore_block(struct profile *p, const struct held_block *held)
{
	bool has_other = profile_has_block(p, held->block.addr);
	if (held->from == HELD_UNKNOWN || (held->from == HELD_IGNORED && has_other))
		return;
	if (held->from == HELD_IGNORED)
		blocks_add(p->ignored, &held->block, NULL);
	else if (has_other)
		profile_free_unseen(p, &held->block);
	else
		blocks_add(p->blocks, &held->block, NULL);
}

/* Undoes a first half. */
static void undo(struct profile *p, const struct held_block *held)
{
	if (held->from == HELD_COUNTED && profile_has_block(p, held->block.addr))
		profile_free_block(p, &held->block, held->thread);
	else
		restore_block(p, held);
}

void profile_thread_exit(struct profile *p, uint32_t thread)
{
	struct held_block held;

	if (held_take(&p->held, thread, &held))
		undo(p, &held);
}

/* Newest first: of two blocks at one address the older one was freed. */
static void undo_all(struct profile *p)
{
	while (p->held.list.count > 0) {
		const struct held_block held = p->held.list.data[--p->held.list.count];

		undo(p, &held);
	}
}

bool profile_is_moving(const struct profile *p, uint32_t thread, taddr_t addr)
{
	const struct held_block *held = held_find(&p->held, thread);

	return held && held->from != HELD_UNKNOWN && held->block.addr == addr;
}

static void realloc_begin(struct profile *p, const struct event *ev)
{
	profile_thread_exit(p, ev->thread);
	if (!ev->old_addr)
		return;
	struct held_block held = profile_hold(p, ev->old_addr);
	held.thread = ev->thread;
	*vec_add(&p->held.list) = held;
}

/* The block removed by the first half of @ev. Without a first half the block is looked up now. */
static struct held_block take_held(struct profile *p, const struct event *ev)
{
	struct held_block held;

	if (held_take(&p->held, ev->thread, &held)) {
		if (held.block.addr == ev->old_addr)
			return held;
		undo(p, &held);
	}
	return profile_hold(p, ev->old_addr);
}

/* The site of the realloc is ignored (2.8): no update, no normal attempt. */
static void lose(struct profile *p, const struct block *old, const struct event *ev)
{
	p->lost_bytes += old->size;
	p->lost_extra += profile_block_extra(p, old);
	p->lost_blocks++;
	profile_add_ignored(p, ev->addr, ev->size);
}

/* For histories the old block is released, and a new one allocated. */
static void remember_change(struct profile *p, const struct block *old, const struct block *new,
			    uint32_t thread)
{
	struct history_block from = history_block_of(old, thread, profile_weigh(p, old));
	struct history_block to = history_block_of(new, thread, profile_weigh(p, new));

	if (!p->history)
		return;
	to.new_bytes = new->size > old->size ? new->size - old->size : 0;
	from.is_resized = true;
	remember_release(p, &from, old->time_us);
	remember_alloc(p, &to);
	remember_resize(p, &to, old->addr);
}

static void change_block(struct profile *p, const struct block *old, const struct event *ev)
{
	if (ev->size < old->size && !p->options.no_heap)
		try_peak(p, "re-PEAK");
	struct block block = *old;
	block.addr = ev->addr;
	block.size = ev->size;
	block.time_us = clock_us(p);
	block.leaf = get_leaf(p, ev->node); /* after the peak: a new site is not in it */
	if (block.leaf == LEAF_IGNORED) {
		lose(p, old, ev);
		return;
	}
	if (ev->size > old->capacity)
		block.capacity = capacity_of(ev->size, p->options.alignment);
	if (p->overlay && block.addr != old->addr)
		overlay_push(p, block.addr, false);
	profile_add_block(p, &block);
	count_out(p, old->leaf, profile_weigh(p, old));
	count_in(p, block.leaf, profile_weigh(p, &block));
	/* only the growth is newly allocated: the rest was counted at the original allocation */
	p->leaf.data[block.leaf].total_bytes -= MIN(old->size, block.size);
	uint64_t before = old->capacity, after = block.capacity; /* admin is in both */
	pass_bytes(p, after > before ? after - before : before - after);
	p->totals.reallocations++;
	p->totals.allocated_bytes += block.size > old->size ? block.size - old->size : 0;
	remember_change(p, old, &block, ev->thread);
	note_peak(p);
	if (!p->options.no_heap)
		try_normal(p, "realloc");
}

static void replace_sample(struct profile *p, const struct block *old, const struct event *ev)
{
	struct weight w = profile_weigh(p, old);
	struct history_block from = history_block_of(old, ev->thread, w);

	from.is_resized = true;
	count_free(p, old->leaf, w);
	remember_release(p, &from, old->time_us);
	profile_alloc(p, ev);
}

static void realloc_end(struct profile *p, const struct event *ev)
{
	if (!ev->old_addr) {
		profile_thread_exit(p, ev->thread);
		profile_alloc(p, ev);
		return;
	}
	struct held_block held = take_held(p, ev);
	if (!ev->addr && ev->size > 0) {
		p->totals.failed++;
		restore_block(p, &held);
		return;
	}
	if (held.from == HELD_UNKNOWN)
		p->totals.unknown_frees++;
	else if (held.from == HELD_IGNORED && ev->addr)
		profile_add_ignored(p, ev->addr, ev->size);
	else if (held.from == HELD_COUNTED && ev->addr && p->options.sample_interval)
		replace_sample(p, &held.block, ev);
	else if (held.from == HELD_COUNTED && ev->addr)
		change_block(p, &held.block, ev);
	else if (held.from == HELD_COUNTED)
		profile_free_block(p, &held.block, ev->thread);
	if (p->overlay && ev->addr != ev->old_addr)
		overlay_pop(p, ev->old_addr);
}

/*
 * The profile: each event changes the block table, the bytes of a leaf and the
 * totals, and attempts snapshots in the order of doc/massif.md 2.2:
 *
 *	allocate   update; normal
 *	free       peak; update; normal
 *	realloc    peak if it shrinks; update; normal   (profile.c)
 *	map        update; normal     (pages that were mapped change their owner)
 *	unmap      peak; update of all pages; normal
 *	stack      grows: update; normal.  shrinks: peak; update; normal
 *
 * Owns everything below it: call tree, tables, leaves and snapshots.
 */

struct profile *profile_new(const struct profile_options *options, uint64_t start_ns)
{
	struct profile *p = xcalloc(1, sizeof(*p));
	CHECK(options->time_unit != TIME_INSTRUCTIONS || options->instructions);
	p->options = *options;
	p->start_ns = start_ns;
	p->calltree = calltree_new();
	CHECK(!options->keep_history || options->keep_times);
	p->blocks = blocks_new(options->keep_times, options->alignment);
	p->ignored = blocks_new(false, options->alignment);
	memset(vec_add(&p->leaf), 0, sizeof(struct leaf));
	snapshots_init(&p->snapshots, options);
	if (options->keep_history)
		p->history = history_new(options->keep_whole_history ? history_new(NULL) : NULL);
	if (options->groups)
		p->groups = groups_new(options->groups);
	if (options->keep_peak)
		*vec_add(&p->leaf_peak) = (struct leaf_peak){0};
	return p;
}

struct profile *profile_clone(const struct profile *p)
{
	struct profile *c = xmemdup(p, sizeof(*p));
	c->calltree = calltree_clone(p->calltree);
	c->blocks = blocks_clone(p->blocks);
	c->ignored = blocks_clone(p->ignored);
	c->overlay = overlay_clone(p->overlay);
	pages_clone(&c->pages, &p->pages);
	snapshots_clone(&c->snapshots, &p->snapshots);
	c->history = history_clone(p->history);
	c->groups = groups_clone(p->groups);
	c->leaf.data = xmemdup(p->leaf.data, p->leaf.count * sizeof(*p->leaf.data));
	c->leaf.capacity = p->leaf.count;
	memset(&c->leaf_peak, 0, sizeof(c->leaf_peak));
	vec_append(&c->leaf_peak, &p->leaf_peak);
	if (p->leaf_of_node)
		c->leaf_of_node = xmemdup(p->leaf_of_node,
					  p->leaf_of_node_count * sizeof(*p->leaf_of_node));
	c->held = (struct held_blocks){0};
	vec_append(&c->held.list, &p->held.list);
	undo_all(c); /* the threads that were in a realloc do not exist in the child */
	return c;
}

void profile_set_ctx(struct profile *p, void *is_ignored_ctx, void *instructions_ctx)
{
	p->options.is_ignored_ctx = is_ignored_ctx;
	p->options.instructions_ctx = instructions_ctx;
}

void profile_set_process(struct profile *p, uint32_t process)
{
	p->options.process = p->snapshots.process = process;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	snapshots_deinit(&p->snapshots);
	history_free(p->history);
	groups_free(p->groups);
	pages_deinit(&p->pages);
	vec_deinit(&p->held.list);
	vec_deinit(&p->leaf);
	vec_deinit(&p->leaf_peak);
	free(p->leaf_of_node);
	overlay_free(p->overlay);
	blocks_free(p->ignored);
	blocks_free(p->blocks);
	calltree_free(p->calltree);
	free(p);
}

/* Events. */

/*
 * If a live block begins so shortly above the address that both are in one block of malloc, the
 * program got it from an operator new that puts a header before each block.
 */
static void note_unknown_free(struct profile *p, const struct event *ev)
{
	struct block block;

	if (ev->is_inner)
		return;
	p->totals.unknown_frees++;
	p->totals.header_frees += blocks_find(p->blocks, ev->addr + 16, &block) ||
				  blocks_find(p->blocks, ev->addr + 8, &block);
}

static inline void on_free(struct profile *p, const struct event *ev)
{
	struct block old;
	if (!ev->addr)
		return;
	if (blocks_take(p->blocks, ev->addr, &old))
		profile_free_block(p, &old, ev->thread);
	else if (!blocks_take(p->ignored, ev->addr, &old) && !p->options.sample_interval)
		note_unknown_free(p, ev);
	if (p->overlay)
		overlay_pop(p, ev->addr);
}

/* Pages. */

static void count_removed_page(void *ctx, uint32_t leaf, uint64_t bytes)
{
	struct profile *p = ctx;
	count_out(p, leaf, weigh_pages(p, bytes));
	p->totals.frees += bytes / profile_granule(p);
}

/* The pages affected by @ev; false if there are none. */
static bool page_span(const struct profile *p, const struct event *ev, taddr_t *start_out,
		      taddr_t *end_out)
{
	taddr_t end;
	uint64_t granule = profile_granule(p);
	if (__builtin_add_overflow(ev->addr, ev->size, &end) || end > UINT64_MAX - PAGE_SIZE_MIN)
		return false;
	*start_out = ROUND_DOWN(ev->addr, granule);
	*end_out = ROUND_UP(end, granule);
	return ev->size > 0;
}

static void unmap(struct profile *p, taddr_t start, taddr_t end)
{
	try_heap_peak(p, "de-PEAK");
	pass_bytes(p, pages_overlap(&p->pages, start, end));
	pages_remove(&p->pages, start, end, count_removed_page, p);
	try_heap_normal(p, "dealloc");
}

static void on_unmap(struct profile *p, const struct event *ev)
{
	taddr_t start, end;
	if (page_span(p, ev, &start, &end) && pages_overlap(&p->pages, start, end))
		unmap(p, start, end);
	else
		p->totals.unknown_frees++;
}

static void on_map(struct profile *p, const struct event *ev)
{
	taddr_t start, end;
	if (!ev->addr || !page_span(p, ev, &start, &end)) {
		p->totals.failed++;
		return;
	}
	uint64_t overlap = pages_overlap(&p->pages, start, end);
	uint32_t leaf = get_leaf(p, ev->node);
	if (leaf == LEAF_IGNORED) {
		if (overlap)
			unmap(p, start, end);
		return;
	}
	pages_remove(&p->pages, start, end, count_removed_page, p);
	pages_add(&p->pages, start, end, leaf);
	count_in(p, leaf, weigh_pages(p, end - start));
	pass_bytes(p, end - start - overlap);
	p->totals.allocations += (end - start) / profile_granule(p);
	p->totals.allocated_bytes += end - start;
	note_peak(p);
	try_heap_normal(p, "  alloc");
}

static void on_stack(struct profile *p, const struct event *ev)
{
	uint64_t old = p->stacks;
	if (ev->size == old)
		return;
	if (ev->size < old)
		try_peak(p, "stkPEAK");
	p->stacks = ev->size;
	p->totals.peak_stacks = MAX(p->totals.peak_stacks, ev->size);
	p->time_bytes += ev->size > old ? ev->size - old : old - ev->size;
	try_normal(p, ev->size > old ? "stk-new" : "stk-die");
}

/* Only makes the block live: no call of the profile allocated it. Time does not advance. */
static void on_earlier(struct profile *p, const struct event *ev)
{
	const struct block block = {
		.addr = ev->addr, .size = ev->size,
		.capacity = capacity_of(ev->size, p->options.alignment),
		.leaf = get_leaf(p, ev->node),
	};

	if (!ev->addr)
		return;
	if (block.leaf == LEAF_IGNORED) {
		profile_add_ignored(p, ev->addr, ev->size);
		return;
	}
	profile_add_block(p, &block);
	struct leaf *l = change_leaf(p, block.leaf);

	l->live_bytes += block.size;
	l->live_blocks++;
	p->totals.live_bytes += block.size;
	p->totals.live_blocks++;
	p->totals.extra += profile_block_extra(p, &block);
	p->totals.earlier_bytes += block.size;
	p->totals.earlier_blocks++;
	if (p->groups)
		groups_grow(p->groups, block.leaf, block.size);
	for (struct history *h = p->history; h; h = h->next)
		history_earlier(h, &block, l, p->totals.live_bytes);
	note_peak(p);
}

static void on_count(struct profile *p, const struct event *ev)
{
	uint32_t leaf = get_leaf(p, ev->node);
	if (leaf == LEAF_IGNORED)
		return;
	count_in(p, leaf, (struct weight){.bytes = ev->size, .blocks = 1, .calls = 1});
	p->counted_bytes += ev->size;
	p->counted_blocks++;
	pass_bytes(p, ev->size);
	p->totals.allocations++;
	p->totals.allocated_bytes += ev->size;
	note_peak(p);
	try_heap_normal(p, "  alloc");
}

/* Input. */

void profile_set_sample_interval(struct profile *p, uint64_t interval)
{
	p->options.sample_interval = interval;
}

void profile_set_start(struct profile *p, uint64_t time_ns)
{
	p->start_ns = time_ns;
}

void profile_start(struct profile *p, uint64_t time_ns)
{
	p->start_ns = time_ns; /* set-up time is not the program's */
	read_time(p, time_ns);
	try_normal(p, "startup");
}

void profile_event(struct profile *p, const struct event *ev)
{
	read_time(p, ev->time_ns);
	switch ((enum event_kind)ev->kind) {
	case EVENT_ALLOC:
		profile_alloc(p, ev);
		break;
	case EVENT_FREE:
		on_free(p, ev);
		break;
	case EVENT_REALLOC_BEGIN:
		realloc_begin(p, ev);
		break;
	case EVENT_REALLOC_END:
		realloc_end(p, ev);
		break;
	case EVENT_MAP:
		on_map(p, ev);
		break;
	case EVENT_UNMAP:
		on_unmap(p, ev);
		break;
	case EVENT_STACK:
		on_stack(p, ev);
		break;
	case EVENT_MAPPING_CALL:
	case EVENT_SAMPLE:
	case EVENT_STACK_BASE:
	case EVENT_PROGRAM_END:
	case EVENT_STACK_RANGE:
		break; /* not of the heap */
	case EVENT_RESIDENT:
		for (struct history *h = p->history; h; h = h->next)
			history_sample(h, ev->size, ev->align);
		break;
	case EVENT_COUNT:
		on_count(p, ev);
		break;
	case EVENT_EARLIER:
		on_earlier(p, ev);
		break;
	}
}

void profile_finish(struct profile *p, uint64_t time_ns)
{
	read_time(p, time_ns);
	undo_all(p);
	if (p->options.peak_at_exit)
		try_peak(p, "endPEAK");
}

/* Output. */

struct calltree *profile_calltree(struct profile *p)
{
	return p->calltree;
}

const struct blocks *profile_blocks(const struct profile *p)
{
	return p->blocks;
}

int profile_each_block(const struct profile *p, int (*fn)(void *ctx, const struct block *block),
		       void *ctx)
{
	int rc = blocks_each(p->blocks, fn, ctx);
	return rc != 0 ? rc : overlay_each(p->overlay, fn, ctx);
}

int profile_each_ignored(const struct profile *p, int (*fn)(void *ctx, const struct block *block),
			 void *ctx)
{
	return p->held.list.count > 0 ? -EAGAIN : blocks_each(p->ignored, fn, ctx);
}

uint64_t profile_block_count(const struct profile *p)
{
	return blocks_count(p->blocks);
}

struct history *profile_history(const struct profile *p)
{
	return p->history;
}

struct history *profile_whole_history(const struct profile *p)
{
	return p->history && p->history->next ? p->history->next : p->history;
}

struct history_held profile_held_at_peak(const struct profile *p, const struct history *h,
					 uint32_t leaf)
{
	const struct history_leaf *l = &h->leaf.data[leaf];
	const struct leaf *now = profile_leaf(p, leaf);

	if (l->peak_epoch == h->peak_epoch)
		return (struct history_held){l->peak_bytes, l->peak_blocks, l->peak_variance};
	return (struct history_held){now->live_bytes, now->live_blocks, now->live_variance};
}

struct history_held profile_at_peak(const struct profile *p, uint32_t leaf)
{
	const struct leaf *now = profile_leaf(p, leaf);
	const struct leaf_peak *at_peak = &p->leaf_peak.data[leaf];

	if (at_peak->epoch == p->peak_epoch)
		return (struct history_held){at_peak->bytes, 0, at_peak->variance};
	return (struct history_held){now->live_bytes, 0, now->live_variance};
}

void profile_sync_history(struct profile *p)
{
	for (struct history *h = p->history; h; h = h->next)
		history_sync(h, &p->totals);
}

uint64_t profile_next_ms(const struct profile *p)
{
	return p->next_ms_ns;
}

void profile_restart_history(struct profile *p)
{
	history_restart(p->history, &p->totals, p->leaf.data, p->time_ms);
	p->history->base_ns = profile_age(p);
	p->peak_limit = p->totals.live_bytes;
}

void profile_restart_histories(struct profile *p)
{
	for (struct history *h = p->history->next; h; h = h->next) {
		history_restart(h, &p->totals, p->leaf.data, p->time_ms);
		h->base_ns = profile_age(p);
	}
	profile_restart_history(p);
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

const struct leaf_group *profile_group(const struct profile *p, size_t index)
{
	return &p->groups->group[index];
}

const struct profile_totals *profile_totals(const struct profile *p)
{
	return &p->totals;
}

uint64_t profile_stacks(const struct profile *p)
{
	return p->stacks;
}

const struct profile_options *profile_options(const struct profile *p)
{
	return &p->options;
}

uint64_t profile_count(const struct profile *p, uint64_t units)
{
	return p->options.sample_interval ? estimate_count(units) : units;
}

double profile_error(const struct profile *p, uint64_t variance)
{
	return variance ? estimate_error(p->options.sample_interval, variance) : 0;
}

uint64_t profile_leaf_variance(const struct profile *p, uint32_t leaf, uint64_t bytes)
{
	const struct leaf *l = profile_leaf(p, leaf);

	if (!l->total_variance || !l->total_bytes)
		return 0;
	return (uint64_t)((double)bytes / (double)l->total_bytes * (double)l->total_variance);
}

struct weight profile_block_weight(const struct profile *p, const struct block *block)
{
	return profile_weigh(p, block);
}

bool profile_has_block(const struct profile *p, taddr_t addr)
{
	struct block block;

	return blocks_find(p->blocks, addr, &block) || blocks_find(p->ignored, addr, &block);
}

uint32_t profile_leaf_count(const struct profile *p)
{
	return (uint32_t)p->leaf.count - 1;
}

const struct leaf *profile_leaf(const struct profile *p, uint32_t leaf)
{
	CHECK(leaf && leaf < p->leaf.count);
	return &p->leaf.data[leaf];
}

size_t profile_memory(const struct profile *p)
{
	return sizeof(*p) + p->leaf.capacity * sizeof(*p->leaf.data) +
	       p->leaf_of_node_count * sizeof(*p->leaf_of_node) +
	       p->held.list.capacity * sizeof(*p->held.list.data) +
	       p->pages.range.capacity * sizeof(*p->pages.range.data) + blocks_memory(p->ignored) +
	       snapshots_memory(&p->snapshots);
}
