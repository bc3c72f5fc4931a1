/*
 * The profile against a second one that was written as naively as the text of
 * doc/massif.md section 2 allows: blocks in a list, the whole tree copied into
 * every detailed snapshot, culling on a plain array. Random events, all options
 * varied; every snapshot, every leaf and every total must agree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "profile/groups.h"
#include "profile/profile.h"
#include "rounds.h"

#define NODES 48
#define THREADS 3
#define ADDRS 400
#define PAGES 96
#define GROUPS 3
#define EVENTS 4000
#define PAGE_BASE 0x7f0000000000ull

struct naive_block {
	bool is_live, is_ignored;
	uint64_t addr, size, payload;
	uint32_t node;
};

struct naive_snapshot {
	struct snapshot s;
	bool is_seen[NODES];
	uint64_t bytes[NODES];
};

struct naive_held {
	bool is_held, is_known;
	uint64_t addr, order;
	struct naive_block block;
};

struct naive {
	struct profile_options o;
	struct naive_block block[ADDRS];
	struct naive_held held[THREADS];
	uint32_t page[PAGES]; /* node + 1 */
	bool is_seen[NODES];
	uint64_t bytes[NODES];
	uint64_t heap, extra, stacks, t_bytes, start_ns, now_ns;
	uint64_t instructions, last_order;
	bool is_started;
	struct naive_snapshot *table;
	unsigned count, since_detailed;
	uint64_t peak_total, min_interval, earliest;
	struct profile_totals totals;
	uint64_t group_peak[GROUPS], group_bytes[GROUPS][NODES];
};

struct world {
	uint64_t seed;
	uint64_t instructions;
	uint32_t node[NODES];
	bool is_ignored[NODES];
	struct naive naive;
	struct quick_event batch[64]; /* of one time, not yet given to the profile */
	size_t batch_count;
	taddr_t last_addr;  /* of the last event, if it was an allocation; else 0 */
};

/* The naive one. */

static uint64_t n_time(const struct naive *n)
{
	if (n->o.time_unit == TIME_BYTES)
		return n->t_bytes;
	if (n->o.time_unit == TIME_INSTRUCTIONS)
		return n->instructions;
	return (n->now_ns - n->start_ns) / 1000000;
}

static bool n_uncullable(const struct naive *n, unsigned i)
{
	return i == 0 || i == n->count - 1 || n->table[i].s.kind == SNAPSHOT_PEAK;
}

static void n_cull(struct naive *n)
{
	/* Deleting at once keeps "first", "last" and the neighbours trivial. */
	for (unsigned round = 0; round < n->o.max_snapshots / 2; round++) {
		unsigned best = 0;
		uint64_t best_span = 0;
		for (unsigned i = 0; i < n->count; i++) {
			if (n_uncullable(n, i))
				continue;
			uint64_t span = n->table[i + 1].s.time - n->table[i - 1].s.time;
			if (best == 0 || span < best_span) {
				best = i;
				best_span = span;
			}
		}
		assert_int_not_equal(best, 0);
		memmove(&n->table[best], &n->table[best + 1], (n->count - best - 1) * sizeof(n->table[0]));
		n->count--;
	}
	n->min_interval = INT64_MAX;
	for (unsigned i = 1; i < n->count; i++) {
		uint64_t d = n->table[i].s.time - n->table[i - 1].s.time;
		if (!(n_uncullable(n, i) && n_uncullable(n, i - 1)) && d < n->min_interval)
			n->min_interval = d;
	}
}

static void n_take(struct naive *n, enum snapshot_kind kind)
{
	struct naive_snapshot *s = &n->table[n->count++];
	memset(s, 0, sizeof(*s));
	s->s = (struct snapshot){ kind, n_time(n), n->heap, n->extra, n->stacks };
	if (kind != SNAPSHOT_EMPTY && !n->o.no_heap) {
		memcpy(s->bytes, n->bytes, sizeof(n->bytes));
		memcpy(s->is_seen, n->is_seen, sizeof(n->is_seen));
	}
	n->since_detailed = kind == SNAPSHOT_EMPTY ? n->since_detailed + 1 : 0;
	if (n->count == n->o.max_snapshots)
		n_cull(n);
	n->earliest = n_time(n) + n->min_interval;
}

static void n_normal(struct naive *n)
{
	if (n_time(n) < n->earliest)
		return;
	n_take(n, n->since_detailed == n->o.detailed_freq - 1 ? SNAPSHOT_DETAILED : SNAPSHOT_EMPTY);
}

static void n_peak(struct naive *n)
{
	uint64_t total = n->heap + n->extra + n->stacks;
	uint64_t excess = (uint64_t)(int64_t)((double)n->peak_total * n->o.peak_inaccuracy / 100);
	if (total <= n->peak_total + excess)
		return;
	for (unsigned i = 0; i < n->count; i++)
		if (n->table[i].s.kind == SNAPSHOT_PEAK)
			n->table[i].s.kind = SNAPSHOT_DETAILED;
	n->peak_total = total;
	n_take(n, SNAPSHOT_PEAK);
}

static uint64_t n_payload(uint64_t size, uint64_t align)
{
	uint64_t p = (size + 15) / 16 * 16;
	if (p >= 4194256)
		p = (p + 64 + 4095) / 4096 * 4096 - 64;
	if (align > 16) {
		uint64_t a = 16;
		while (a < align)
			a *= 2;
		p += a / 2;
	}
	return p;
}

static uint64_t n_slop(const struct naive *n, const struct naive_block *b)
{
	return n->o.heap_admin + b->payload - b->size;
}

static struct naive_block *n_find(struct naive *n, uint64_t addr)
{
	for (unsigned i = 0; i < ADDRS; i++)
		if (n->block[i].is_live && n->block[i].addr == addr)
			return &n->block[i];
	return NULL;
}

static void n_store(struct naive *n, struct naive_block b)
{
	for (unsigned i = 0; i < ADDRS; i++) {
		if (n->block[i].is_live)
			continue;
		n->block[i] = b;
		n->block[i].is_live = true;
		return;
	}
	fail_msg("the naive profile is full");
}

/* Sizes of the snapshots; with heap=no they stay 0, and so does B time. */
static void n_sizes(struct naive *n, int64_t size, int64_t slop, bool pass_time)
{
	n->totals.live_bytes += (uint64_t)size;
	n->totals.extra += (uint64_t)slop;
	if (n->o.no_heap)
		return;
	n->heap += (uint64_t)size;
	n->extra += (uint64_t)slop;
	if (pass_time)
		n->t_bytes += (uint64_t)llabs(size + slop);
}

static void n_heap_normal(struct naive *n)
{
	if (!n->o.no_heap)
		n_normal(n);
}

static void n_heap_peak(struct naive *n)
{
	if (!n->o.no_heap)
		n_peak(n);
}

static void n_note_peak(struct naive *n)
{
	if (n->totals.live_bytes <= n->totals.peak_bytes)
		return;
	n->totals.peak_bytes = n->totals.live_bytes;
	n->totals.peak_blocks = n->totals.live_blocks;
	n->totals.peak_time_ns = n->now_ns - n->start_ns;
}

static void n_remove(struct naive *n, const struct naive_block *b)
{
	n->bytes[b->node] -= b->size;
	n->totals.live_blocks--;
	n_sizes(n, -(int64_t)b->size, -(int64_t)n_slop(n, b), true);
}

/* @addr belongs to another block now. */
static void n_stale(struct naive *n, uint64_t addr)
{
	struct naive_block *old = n_find(n, addr);
	if (!old)
		return;
	old->is_live = false;
	if (old->is_ignored)
		return;
	n_remove(n, old);
	n->totals.replaced++;
	n->totals.replaced_blocks++;
}

static void n_alloc(struct world *w, const struct event *ev, uint32_t node)
{
	struct naive *n = &w->naive;
	if (!ev->addr) {
		n->totals.failed++;
		return;
	}
	struct naive_block b = { .addr = ev->addr, .size = ev->size, .node = node };
	b.payload = n_payload(ev->size, ev->align ? ev->align : n->o.alignment);
	b.is_ignored = w->is_ignored[node];
	n_stale(n, ev->addr);
	n_store(n, b);
	if (b.is_ignored)
		return;
	n->is_seen[node] = true;
	n->bytes[node] += b.size;
	n->totals.live_blocks++;
	n->totals.allocations++;
	n->totals.allocated_bytes += b.size;
	n_sizes(n, (int64_t)b.size, (int64_t)n_slop(n, &b), true);
	n_note_peak(n);
	n_heap_normal(n);
}

static void n_free_counted(struct naive *n, const struct naive_block *b)
{
	n_heap_peak(n);
	n_remove(n, b);
	n->totals.frees++;
	n_heap_normal(n);
}

/* Whether a block that counts is live at @addr. */
static bool n_counts(struct naive *n, uint64_t addr)
{
	const struct naive_block *b = n_find(n, addr);
	return b && !b->is_ignored;
}

static void n_free(struct naive *n, uint64_t addr)
{
	struct naive_block *b = n_find(n, addr);
	if (!addr)
		return;
	if (!b) {
		n->totals.unknown_frees++;
		n->totals.header_frees += n_counts(n, addr + 8) || n_counts(n, addr + 16);
		return;
	}
	b->is_live = false;
	if (!b->is_ignored)
		n_free_counted(n, b);
}

static void n_restore(struct naive *n, struct naive_held *h)
{
	if (h->is_held && h->is_known) {
		if (!n_find(n, h->block.addr)) {
			n_store(n, h->block);
		} else if (!h->block.is_ignored) {
			n_remove(n, &h->block);
			n->totals.replaced++;
			n->totals.replaced_blocks++;
		}
	}
	h->is_held = false;
}

/* A realloc that never ends has released its block if the address is another's. */
static void n_undo(struct naive *n, struct naive_held *h)
{
	if (h->is_held && h->is_known && !h->block.is_ignored && n_find(n, h->block.addr)) {
		n_free_counted(n, &h->block);
		h->is_held = false;
	}
	n_restore(n, h);
}

/* The last to begin first. */
static void n_put_all_back(struct naive *n)
{
	for (uint64_t order = n->last_order; order > 0; order--)
		for (unsigned i = 0; i < THREADS; i++)
			if (n->held[i].is_held && n->held[i].order == order)
				n_undo(n, &n->held[i]);
}

static void n_begin(struct naive *n, uint32_t thread, uint64_t addr)
{
	struct naive_held *h = &n->held[thread];
	n_undo(n, h);
	if (!addr)
		return;
	struct naive_block *b = n_find(n, addr);
	*h = (struct naive_held){ .is_held = true, .is_known = b != NULL, .addr = addr };
	h->order = ++n->last_order;
	if (b) {
		h->block = *b;
		b->is_live = false;
	}
}

static void n_realloc(struct world *w, const struct event *ev, uint32_t node, struct naive_block old)
{
	struct naive *n = &w->naive;
	struct naive_block b = old;
	b.addr = ev->addr;
	b.size = ev->size;
	b.node = node;
	if (ev->size < old.size)
		n_heap_peak(n);
	if (w->is_ignored[node]) { /* the bytes remain at the old site */
		b.is_ignored = true;
		n_stale(n, b.addr);
		n_store(n, b);
		return;
	}
	if (ev->size > old.payload)
		b.payload = n_payload(ev->size, n->o.alignment);
	n_stale(n, b.addr);
	n_store(n, b);
	n->is_seen[node] = true;
	n->bytes[old.node] -= old.size;
	n->bytes[node] += b.size;
	n_sizes(n, (int64_t)b.size - (int64_t)old.size, (int64_t)n_slop(n, &b) - (int64_t)n_slop(n, &old), true);
	n->totals.reallocations++;
	if (b.size > old.size)
		n->totals.allocated_bytes += b.size - old.size;
	n_note_peak(n);
	n_heap_normal(n);
}

static void n_end(struct world *w, const struct event *ev, uint32_t node)
{
	struct naive *n = &w->naive;
	struct naive_held *h = &n->held[ev->thread];
	if (!ev->old_addr) {
		n_undo(n, h);
		n_alloc(w, ev, node);
		return;
	}
	if (!h->is_held || h->addr != ev->old_addr)
		n_begin(n, ev->thread, ev->old_addr);
	if (!ev->addr && ev->size > 0) {
		n->totals.failed++;
		n_restore(n, h);
		return;
	}
	h->is_held = false;
	if (!h->is_known) {
		n->totals.unknown_frees++;
	} else if (h->block.is_ignored) {
		if (!ev->addr)
			return;
		h->block.addr = ev->addr;
		n_stale(n, ev->addr);
		n_store(n, h->block);
	} else if (ev->addr) {
		n_realloc(w, ev, node, h->block);
	} else {
		n_free_counted(n, &h->block);
	}
}

static unsigned n_pages_out(struct naive *n, unsigned first, unsigned last)
{
	unsigned gone = 0;
	for (unsigned i = first; i < last; i++) {
		if (!n->page[i])
			continue;
		n->bytes[n->page[i] - 1] -= 4096;
		n->page[i] = 0;
		gone++;
	}
	n->totals.frees += gone;
	n->totals.live_blocks -= gone;
	return gone;
}

static bool n_unmap(struct naive *n, unsigned first, unsigned last)
{
	bool any = false;
	for (unsigned i = first; i < last; i++)
		any = any || n->page[i];
	if (!any)
		return false;
	n_heap_peak(n);
	n_sizes(n, -4096 * (int64_t)n_pages_out(n, first, last), 0, true);
	n_heap_normal(n);
	return true;
}

static void n_map(struct world *w, const struct event *ev, uint32_t node)
{
	struct naive *n = &w->naive;
	unsigned first = (unsigned)((ev->addr - PAGE_BASE) / 4096);
	unsigned last = (unsigned)((ev->addr + ev->size + 4095 - PAGE_BASE) / 4096);
	if (ev->kind == EVENT_UNMAP) {
		if (!n_unmap(n, first, last))
			n->totals.unknown_frees++;
		return;
	}
	if (w->is_ignored[node]) {
		n_unmap(n, first, last);
		return;
	}
	n->is_seen[node] = true;
	int64_t pages = last - first;
	int64_t fresh = pages - n_pages_out(n, first, last);
	for (unsigned i = first; i < last; i++)
		n->page[i] = node + 1;
	n->bytes[node] += 4096 * (uint64_t)pages;
	n->totals.live_blocks += (uint64_t)pages;
	n->totals.allocations += (uint64_t)pages;
	n->totals.allocated_bytes += 4096 * (uint64_t)pages;
	n_sizes(n, 4096 * fresh, 0, true);
	n_note_peak(n);
	n_heap_normal(n);
}

static void n_stack(struct naive *n, uint64_t size)
{
	uint64_t old = n->stacks;
	if (size == old)
		return;
	if (size < old)
		n_peak(n);
	n->stacks = size;
	if (size > n->totals.peak_stacks)
		n->totals.peak_stacks = size;
	n->t_bytes += size > old ? size - old : old - size;
	n_normal(n);
}

static void n_clock(struct naive *n, uint64_t time_ns, uint64_t instructions)
{
	if (!n->is_started)
		n->start_ns = n->now_ns = time_ns;
	n->is_started = true;
	if (time_ns > n->now_ns)
		n->now_ns = time_ns;
	n->instructions = instructions;
}

static bool in_group(unsigned group, unsigned node)
{
	return node % (group + 2) == 0;
}

static void n_group_peaks(struct naive *n)
{
	for (unsigned g = 0; g < GROUPS; g++) {
		uint64_t sum = 0;
		for (unsigned i = 0; i < NODES; i++)
			sum += in_group(g, i) ? n->bytes[i] : 0;
		if (sum <= n->group_peak[g])
			continue;
		n->group_peak[g] = sum;
		memcpy(n->group_bytes[g], n->bytes, sizeof(n->bytes));
	}
}

static void n_event(struct world *w, const struct event *ev, uint32_t node)
{
	struct naive *n = &w->naive;
	n_clock(n, ev->time_ns, w->instructions);
	switch (ev->kind) {
	case EVENT_ALLOC: n_alloc(w, ev, node); break;
	case EVENT_FREE: n_free(n, ev->addr); break;
	case EVENT_REALLOC_BEGIN: n_begin(n, ev->thread, ev->old_addr); break;
	case EVENT_REALLOC_END: n_end(w, ev, node); break;
	case EVENT_MAP:
	case EVENT_UNMAP: n_map(w, ev, node); break;
	case EVENT_STACK: n_stack(n, ev->size); break;
	}
	n_group_peaks(n);
}

/* Random events. */

static unsigned any(struct world *w, unsigned below)
{
	return (unsigned)((hash_u64(++w->seed) & UINT32_MAX) * below >> 32);
}

static uint64_t any_size(struct world *w)
{
	switch (any(w, 12)) {
	case 0: return 0;
	case 1: return 4194256 - 40 + any(w, 80);
	case 2: return any(w, 20000000);
	case 3: return any(w, 20) ? 7 : (1ull << 49) + any(w, 100);
	default: return any(w, 1500);
	}
}

static uint64_t any_addr(struct world *w)
{
	uint64_t addr = 0x5555000 + 16 * (uint64_t)any(w, ADDRS / 2);
	return any(w, 50) ? addr : addr | 1ull << 60;
}

/* Mostly a free address, as an allocator would return. */
static uint64_t fresh_addr(struct world *w)
{
	uint64_t addr = any_addr(w);
	for (int i = 0; i < 20 && n_find(&w->naive, addr) && any(w, 40); i++)
		addr = any_addr(w);
	return addr;
}

static uint64_t live_addr(struct world *w)
{
	unsigned from = any(w, ADDRS);
	for (unsigned i = 0; i < ADDRS && any(w, 60); i++) {
		struct naive_block *b = &w->naive.block[(from + i) % ADDRS];
		if (b->is_live)
			return b->addr;
	}
	return any(w, 3) ? any_addr(w) : 0;
}

static void any_pages(struct world *w, struct event *ev)
{
	unsigned first = any(w, PAGES - 1);
	unsigned count = 1 + any(w, any(w, 2) ? 4 : PAGES - first - 1);
	count = count > PAGES - first ? PAGES - first : count;
	ev->addr = PAGE_BASE + 4096 * (uint64_t)first;
	ev->size = 4096 * (uint64_t)count - (any(w, 2) ? any(w, 4096) : 0);
}

static struct event any_event(struct world *w, bool pages, bool stacks)
{
	struct event ev = { .thread = any(w, THREADS) };
	unsigned r = any(w, 100);
	if (stacks && r < 20) {
		ev.kind = EVENT_STACK;
		ev.size = any(w, 3) ? w->naive.stacks + any(w, 500) : any(w, 100000);
	} else if (pages && r < 50) {
		ev.kind = any(w, 3) ? EVENT_MAP : EVENT_UNMAP;
		any_pages(w, &ev);
	} else if (r < 62) {
		ev.kind = EVENT_ALLOC;
		ev.addr = any(w, 40) ? fresh_addr(w) : 0;
		ev.size = any_size(w);
		ev.align = any(w, 12) ? 0 : any(w, 300);
	} else if (r < 80) {
		ev.kind = EVENT_FREE;
		ev.addr = live_addr(w);
	} else if (r < 88) {
		ev.kind = EVENT_REALLOC_BEGIN;
		ev.old_addr = live_addr(w);
	} else {
		struct naive_held *h = &w->naive.held[ev.thread];
		ev.kind = EVENT_REALLOC_END;
		ev.old_addr = h->is_held && any(w, 20) ? h->addr : live_addr(w);
		ev.addr = any(w, 8) ? any(w, 2) ? ev.old_addr : fresh_addr(w) : 0;
		ev.size = any(w, 3) && h->is_held ? h->block.size / 2 + any(w, 20) : any_size(w);
	}
	return ev;
}

/* Comparing. */

static bool is_ignored(void *ctx, uint32_t node)
{
	struct world *w = ctx;
	for (unsigned i = 0; i < NODES; i++)
		if (w->node[i] == node)
			return w->is_ignored[i];
	return false;
}

static unsigned number_of(const struct world *w, uint32_t node)
{
	unsigned i = 0;
	while (i < NODES && w->node[i] != node)
		i++;
	assert_true(i < NODES);
	return i;
}

static void find_groups(void *ctx, uint32_t node, bool *is_in)
{
	for (unsigned g = 0; g < GROUPS; g++)
		is_in[g] = in_group(g, number_of(ctx, node));
}

static uint64_t instructions(void *ctx)
{
	return ((struct world *)ctx)->instructions;
}

/* @bytes, by leaf up to @count, are those of the sites of @seen. */
static void same_leaves(const struct world *w, struct profile *p, const uint64_t *bytes, uint32_t count,
			const bool *seen, const uint64_t *expected)
{
	unsigned sites = 0;
	for (unsigned i = 0; i < NODES; i++)
		sites += seen[i];
	assert_int_equal(count, sites);
	for (uint32_t leaf = 1; leaf <= count; leaf++) {
		unsigned i = 0;
		while (i < NODES && w->node[i] != profile_leaf(p, leaf)->node)
			i++;
		assert_true(i < NODES && seen[i]);
		assert_int_equal(bytes[leaf], expected[i]);
	}
}

static void same_groups(const struct world *w, struct profile *p)
{
	const struct naive *n = &w->naive;
	for (unsigned g = 0; g < n->o.groups; g++) {
		const struct leaf_group *group = profile_group(p, g);
		assert_int_equal(group->peak, n->group_peak[g]);
		for (uint32_t i = 1; i <= profile_leaf_count(p); i++) {
			const struct leaf *leaf = profile_leaf(p, i);
			unsigned node = number_of(w, leaf->node);
			assert_int_equal(groups_at_peak(group, i, leaf->live_bytes),
					 in_group(g, node) ? n->group_bytes[g][node] : 0);
		}
	}
}

static void same(const struct world *w, struct profile *p)
{
	const struct naive *n = &w->naive;
	uint64_t *bytes;
	profile_check(p);
	same_groups(w, p);
	assert_memory_equal(profile_totals(p), &n->totals, sizeof(n->totals));
	assert_int_equal(profile_snapshot_count(p), n->count);
	for (unsigned i = 0; i < n->count; i++) {
		const struct snapshot *s = profile_snapshot(p, i), *t = &n->table[i].s;
		assert_int_equal(s->kind, t->kind);
		assert_int_equal(s->time, t->time);
		assert_int_equal(s->heap, t->heap);
		assert_int_equal(s->extra, t->extra);
		assert_int_equal(s->stacks, t->stacks);
		if (s->kind == SNAPSHOT_EMPTY)
			continue;
		uint32_t count = profile_snapshot_leaves(p, i, &bytes);
		same_leaves(w, p, bytes, count, n->table[i].is_seen, n->table[i].bytes);
		free(bytes);
	}
	if (n->o.no_heap)
		return;
	uint32_t count = profile_snapshot_leaves(p, UINT32_MAX, &bytes);
	same_leaves(w, p, bytes, count, n->is_seen, n->bytes);
	free(bytes);
}

static struct profile_options any_options(struct world *w)
{
	static const double inaccuracies[] = { 1.0, 1.0, 0.0, 0.3, 5.0, 40.0, -5.0, 1000.0 };
	static const unsigned freqs[] = { 10, 10, 1, 2, 3, 25, 1000000 };
	static const unsigned maxima[] = { 100, 10, 11, 17, 30, 64 };
	static const unsigned alignments[] = { 16, 16, 64, 4096 };
	return (struct profile_options){
		.time_unit = (enum time_unit)any(w, 3),
		.peak_inaccuracy = inaccuracies[any(w, 8)],
		.peak_at_exit = any(w, 2),
		.detailed_freq = freqs[any(w, 7)],
		.max_snapshots = maxima[any(w, 6)],
		.heap_admin = any(w, 3) ? 8 : any(w, 1025),
		.alignment = alignments[any(w, 4)],
		.no_heap = !any(w, 10),
		.keep_times = any(w, 2),
		.keep_peak = any(w, 2),
		.is_ignored = is_ignored,
		.is_ignored_ctx = w,
		.groups = any(w, 2) ? GROUPS : 0,
		.find_groups = find_groups,
		.instructions = instructions,
		.instructions_ctx = w,
	};
}

static struct profile *start(struct world *w)
{
	struct naive *n = &w->naive;
	n->o = any_options(w);
	n->table = xcalloc(n->o.max_snapshots, sizeof(*n->table));
	struct profile *p = profile_new(&n->o, 1000000);
	struct calltree *t = profile_calltree(p);
	for (unsigned i = 0; i < NODES; i++) {
		uint32_t parent = i < 3 ? 0 : w->node[any(w, i)];
		w->node[i] = calltree_get_child(t, parent, calltree_get_frame(t, 0x400000 + i, 0));
		w->is_ignored[i] = !any(w, 15);
	}
	n_clock(n, 1000000, 0);
	n_normal(n);
	profile_start(p, 1000000);
	return p;
}

static struct profile *forked(struct world *w, struct profile *p)
{
	struct profile *child = profile_clone(p);
	profile_free(p);
	profile_set_ctx(child, w, w);
	n_put_all_back(&w->naive);
	return child;
}

/* Plain events go to the profile one at a time, or many. */
static void flush(struct world *w, struct profile *p)
{
	profile_quick(p, w->batch, w->batch_count);
	w->batch_count = 0;
}

static void feed(struct world *w, struct profile *p, const struct event *ev)
{
	bool is_plain = (ev->kind == EVENT_ALLOC || ev->kind == EVENT_FREE) && !ev->align;
	if (!is_plain || w->batch_count == ARRAY_SIZE(w->batch))
		flush(w, p);
	if (!is_plain || !any(w, 10)) {
		flush(w, p);
		profile_event(p, ev);
		return;
	}
	w->batch[w->batch_count++] = (struct quick_event){
		.time_ns = ev->time_ns, .addr = ev->addr, .size = ev->size, .node = ev->node, .is_free = ev->kind == EVENT_FREE,
	};
	if (w->naive.o.time_unit == TIME_INSTRUCTIONS) /* of which every event has its own */
		flush(w, p);
}

static void one_round(unsigned seed)
{
	struct world *w = xcalloc(1, sizeof(*w));
	w->seed = (uint64_t)seed << 32;
	struct profile *p = start(w);
	bool pages = !any(w, 3), stacks = !any(w, 3);
	unsigned variety = 1 + any(w, NODES), pace = any(w, 2) ? 3000000 : 30000;
	uint64_t time_ns = 1000000;
	for (unsigned i = 0; i < EVENTS; i++) {
		uint32_t node = any(w, any(w, 20) ? variety : NODES);
		struct event ev = any_event(w, pages, stacks);
		time_ns += any(w, pace);
		w->instructions += any(w, 100);
		if (w->last_addr && !any(w, 3))
			ev = (struct event){ .kind = EVENT_FREE, .addr = w->last_addr };
		w->last_addr = ev.kind == EVENT_ALLOC ? ev.addr : 0;
		ev.time_ns = time_ns - (any(w, 30) ? 0 : any(w, 900000));
		ev.node = w->node[node];
		n_event(w, &ev, node);
		feed(w, p, &ev);
		if (!any(w, 300)) {
			flush(w, p);
			uint32_t thread = any(w, THREADS);
			n_undo(&w->naive, &w->naive.held[thread]);
			profile_thread_exit(p, thread);
		}
		if (!any(w, 2000)) {
			flush(w, p);
			p = forked(w, p);
		}
		if (!any(w, 200)) {
			flush(w, p);
			same(w, p);
		}
	}
	flush(w, p);
	n_clock(&w->naive, time_ns + 5, w->instructions);
	n_put_all_back(&w->naive);
	if (w->naive.o.peak_at_exit)
		n_peak(&w->naive);
	profile_finish(p, time_ns + 5);
	same(w, p);
	profile_free(p);
	free(w->naive.table);
	free(w);
}

static void agrees_with_the_naive_profile(void **state)
{
	for (unsigned seed = 1; seed <= rounds(200); seed++)
		one_round(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_naive_profile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
