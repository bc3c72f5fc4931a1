/*
 * The profile: each event changes the block table, the bytes of a leaf and the
 * totals, and attempts snapshots in the order of doc/massif.md 2.2:
 *
 *	allocate   update; normal
 *	free       peak; update; normal
 *	realloc    peak if it shrinks; update; normal   (realloc.c)
 *	map        update; normal     (pages that were mapped change their owner)
 *	unmap      peak; update of all pages; normal
 *	stack      grows: update; normal.  shrinks: peak; update; normal
 *
 * Owns everything below it: call tree, tables, leaves and snapshots.
 */
#include "profile/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "profile/profile_update.h"
#include "profile/realloc.h"

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
	c->leaf.data = xmemdup(p->leaf.data, p->leaf.count * sizeof(*p->leaf.data));
	c->leaf.capacity = p->leaf.count;
	if (p->leaf_of_node)
		c->leaf_of_node = xmemdup(p->leaf_of_node,
					  p->leaf_of_node_count * sizeof(*p->leaf_of_node));
	if (p->held.data)
		c->held.data = xmemdup(p->held.data, p->held.count * sizeof(*p->held.data));
	c->held.capacity = p->held.count;
	realloc_undo_all(c); /* the threads that were in a realloc do not exist in the child */
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
	pages_deinit(&p->pages);
	vec_deinit(&p->held);
	vec_deinit(&p->leaf);
	free(p->leaf_of_node);
	overlay_free(p->overlay);
	blocks_free(p->ignored);
	blocks_free(p->blocks);
	calltree_free(p->calltree);
	free(p);
}

/* Events. */

/*
 * Whether a live block begins so shortly above @addr that both are in one block of malloc: then the
 * program got it from an operator new that puts a header before each block.
 */
static bool is_header(const struct profile *p, taddr_t addr)
{
	struct block block;
	return blocks_find(p->blocks, addr + 16, &block) ||
	       blocks_find(p->blocks, addr + 8, &block);
}

static void note_unknown_free(struct profile *p, const struct event *ev)
{
	if (ev->is_inner)
		return;
	p->totals.unknown_frees++;
	p->totals.header_frees += is_header(p, ev->addr);
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

void profile_thread_exit(struct profile *p, uint32_t thread)
{
	realloc_undo_thread(p, thread);
}

void profile_finish(struct profile *p, uint64_t time_ns)
{
	read_time(p, time_ns);
	realloc_undo_all(p);
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
	return p->held.count > 0 ? -EAGAIN : blocks_each(p->ignored, fn, ctx);
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

bool profile_is_moving(const struct profile *p, uint32_t thread, taddr_t addr)
{
	return realloc_is_begun(p, thread, addr);
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

uint32_t profile_snapshot_count(const struct profile *p)
{
	return p->snapshots.count;
}

const struct snapshot *profile_snapshot(const struct profile *p, uint32_t i)
{
	CHECK(i < p->snapshots.count);
	return &p->snapshots.record[i].snapshot;
}

uint32_t profile_snapshot_leaves(const struct profile *p, uint32_t i, uint64_t **bytes_out)
{
	uint32_t all = profile_leaf_count(p), count = leaves_shown(p);
	uint64_t *bytes = xcalloc((size_t)all + 1, sizeof(*bytes));
	for (uint32_t leaf = 1; leaf <= count; leaf++)
		bytes[leaf] = p->leaf.data[leaf].live_bytes;
	if (i != UINT32_MAX) {
		CHECK(i < p->snapshots.count);
		CHECK(p->snapshots.record[i].snapshot.kind != SNAPSHOT_EMPTY);
		snapshots_undo(&p->snapshots, i, bytes, all);
		count = p->snapshots.record[i].leaf_count;
	}
	*bytes_out = bytes;
	return count;
}

void profile_current(const struct profile *p, uint64_t time_ns, struct snapshot *out)
{
	*out = state_now(p);
	out->kind = SNAPSHOT_EMPTY;
	if (p->options.time_unit == TIME_MS && p->has_first)
		out->time = (MAX(time_ns, p->now_ns) - p->first_ns) / 1000000;
	if (p->options.time_unit == TIME_INSTRUCTIONS)
		out->time = MAX(out->time, p->options.instructions(p->options.instructions_ctx));
}

size_t profile_memory(const struct profile *p)
{
	return sizeof(*p) + p->leaf.capacity * sizeof(*p->leaf.data) +
	       p->leaf_of_node_count * sizeof(*p->leaf_of_node) +
	       p->held.capacity * sizeof(*p->held.data) +
	       p->pages.range.capacity * sizeof(*p->pages.range.data) + blocks_memory(p->ignored) +
	       snapshots_memory(&p->snapshots);
}
