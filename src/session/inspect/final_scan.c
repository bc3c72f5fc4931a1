/*
 * The process is stopped for only a part of the leak check. As much as possible is done before: the
 * kernel takes longer to provide memory for the results than the scan takes to fill it.
 */
#include "session/inspect/final_scan.h"

#include <string.h>

#include "base/log.h"
#include "malloc/glibc.h"
#include "session/inspect/inspect_stopped.h"
#include "session/session.h"
#include "tracee/control/roots.h"
#include "tracee/control/target.h"
#include "tracee/state/module.h"

static int copy_block(void *ctx, const struct block *b)
{
	const struct leakcheck_block block = {
		.addr = b->addr, .size = MIN(b->size, LEAKCHECK_SIZE_MAX), .leaf = b->leaf,
		.us = b->time_us % 1000,
		.time = (uint32_t)MIN(b->time_us / 1000, (uint64_t)UINT32_MAX)};

	leakcheck_add_block(ctx, &block);
	return 0;
}

static int note_block(void *ctx, const struct block *b)
{
	leakcheck_note_block(ctx, &(struct leakcheck_block){
		.addr = b->addr, .size = MIN(b->size, LEAKCHECK_SIZE_MAX)});
	return 0;
}

static int add_other(void *ctx, const struct block *b)
{
	leakcheck_add_other(ctx, b->addr, b->addr + b->size);
	return 0;
}

static void copy_blocks(const struct session *s, struct final_scan *scan)
{
	leakcheck_expect(&scan->check, profile_block_count(s->heap.profile));
	profile_each_block(s->heap.profile, copy_block, &scan->check);
	scan->has_blocks = true;
}

/* -- memory -- */

/* Parts of the memory that are not read, ascending. */
struct gaps {
	VEC(struct root_range) list;
};

/* Memory below stack pointers, stacks of ended threads, and arenas. */
static void find_gaps(const struct leakcheck *c, const struct roots *r, const struct arenas *a,
		       struct gaps *out)
{
	*out = (struct gaps){0};
	for (size_t i = 0; i < r->below_stacks.count; i++) {
		struct root_range below = r->below_stacks.data[i];

		if (!pointer_scan_has_target_near(&c->scan, below.start, below.end))
			*vec_add(&out->list) = below; /* no stack in the heap */
	}
	vec_append(&out->list, &r->dead_stacks);
	for (size_t i = 0; i < a->states.count; i++)
		*vec_add(&out->list) =
			(struct root_range){a->states.data[i].start, a->states.data[i].end};
	vec_sort(&out->list, taddr_compare);
}

/* Adds @range without the gaps in it. *at: the first gap not passed yet. */
static void add_range(struct leakcheck *c, const struct gaps *gaps, struct root_range range,
		      size_t *at)
{
	for (; *at < gaps->list.count && gaps->list.data[*at].start < range.end; ++*at) {
		struct root_range gap = gaps->list.data[*at];

		if (gap.end > range.end) { /* in this and the next range */
			leakcheck_add_memory(c, range.start, MAX(range.start, gap.start));
			return;
		}
		leakcheck_add_memory(c, range.start, gap.start);
		range.start = MAX(range.start, gap.end);
	}
	leakcheck_add_memory(c, range.start, range.end);
}

static void add_memory(const struct roots *r, const struct arenas *a, struct leakcheck *c)
{
	struct gaps gaps;
	size_t at = 0;

	find_gaps(c, r, a, &gaps);
	for (size_t i = 0; i < r->memory.count; i++)
		add_range(c, &gaps, r->memory.data[i], &at);
	vec_deinit(&gaps.list);
}

/* -- glibc's malloc -- */

/* Whether all blocks in use are known: the process of @s was profiled from its start. */
static bool knows_all(const struct session *s, struct leakcheck *c)
{
	return !s->space->image.has_earlier_blocks && !s->run->options->profile.pages_as_heap &&
	       profile_each_ignored(s->heap.profile, add_other, c) == 0;
}

static void add_heaps(const struct session *s, const struct arenas *a, struct leakcheck *c)
{
	c->knows_all = knows_all(s, c);
	for (size_t i = 0; i < a->heaps.count; i++) {
		const struct glibc_heap *h = &a->heaps.data[i];

		leakcheck_add_heap(c, h->start, h->top_end, h->top);
	}
}

/* -- another malloc -- */

static void add_spare(const struct session *s, struct leakcheck *c)
{
	struct inspect_spare spare;

	if (inspect_stopped_spare(s->run->target, s->space, &spare) != 0)
		return; /* all of its memory counts as roots */
	for (size_t i = 0; i < spare.list.count; i++)
		leakcheck_add_spare(c, spare.list.data[i].start, spare.list.data[i].end);
	vec_deinit(&spare.list);
}

static struct final_scan *get_scan(struct session *s)
{
	if (s->end.final_scan && s->end.final_scan->is_done)
		final_scan_forget(s);
	if (!s->end.final_scan) {
		s->end.final_scan = xcalloc(1, sizeof(*s->end.final_scan));
		leakcheck_init(&s->end.final_scan->check);
		s->end.final_scan->check.wants_holders = s->run->options->leaks.holders;
	}
	return s->end.final_scan;
}

/* -- scans -- */

void final_scan_prepare(struct session *s)
{
	const struct arenas none = {0};
	struct roots *roots;

	if (roots_list(s->space, &roots) != 0)
		return; /* the scan itself logs the reason */
	struct final_scan *scan = get_scan(s);

	copy_blocks(s, scan);
	add_memory(roots, &none, &scan->check);
	leakcheck_prepare(&scan->check, roots_read, roots);
	scan->has_blocks = false;
	scan->is_prepared = true;
	roots_free(roots);
}

/* Keeps what names roots, or frees it. */
static void keep_roots(const struct session *s, struct final_scan *scan, struct roots *roots)
{
	if (!scan->check.wants_holders) {
		roots_free(roots);
		return;
	}
	scan->roots = roots;
	for (size_t i = 0; i < s->space->modules.count; i++)
		*vec_add(&scan->modules.list) = module_hold(s->space->modules.data[i]);
}

void final_scan_run(struct session *s)
{
	struct arenas arenas = {0};
	struct roots *roots;
	uint64_t begin = clock_now_ns();
	int rc = roots_collect(s->run->target, s->space, &roots);

	if (rc != 0) {
		final_scan_forget(s);
		log_warn("process %u: no leak check: %s", s->process.pid, strerror(-rc));
		return;
	}
	struct final_scan *scan = get_scan(s);

	if (scan->is_prepared)
		copy_blocks(s, scan);
	else /* moved, not copied: copying takes memory, and so time */
		profile_each_block(s->heap.profile, note_block, &scan->check);
	for (size_t i = 0; i < roots->data.count; i++)
		arenas_search(&arenas, roots->data.data[i].start, roots->data.data[i].end,
			      roots_read, roots);
	arenas_sort(&arenas);
	add_memory(roots, &arenas, &scan->check);
	add_heaps(s, &arenas, &scan->check);
	add_spare(s, &scan->check);
	for (size_t i = 0; i < roots->words.count; i++)
		leakcheck_add_root(&scan->check, roots->words.data[i]);
	leakcheck_scan(&scan->check, roots_read, roots);
	keep_roots(s, scan, roots);
	arenas_deinit(&arenas);
	scan->is_done = true;
	scan->bytes = scan->check.scan.bytes;
	scan->time_ns = clock_now_ns();
	scan->pause_ns = scan->time_ns - begin;
}

struct final_scan *final_scan_result(struct session *s)
{
	if (!s->end.final_scan || !s->end.final_scan->is_done)
		return NULL;
	if (!s->end.final_scan->has_blocks)
		copy_blocks(s, s->end.final_scan);
	return s->end.final_scan;
}

void final_scan_forget(struct session *s)
{
	if (!s->end.final_scan)
		return;
	leakcheck_deinit(&s->end.final_scan->check);
	roots_free(s->end.final_scan->roots);
	held_modules_deinit(&s->end.final_scan->modules);
	free(s->end.final_scan);
	s->end.final_scan = NULL;
}
