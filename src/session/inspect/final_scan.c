/*
 * The process is stopped for only a part of the leak check. If its memory was copied ahead, that is
 * what was written since; the copy is scanned when it runs on. Otherwise its memory is scanned
 * while it is stopped, and as much as possible is done before: the kernel takes longer to provide
 * memory for the results than the scan takes to fill it.
 */
#include "session/inspect/final_scan.h"

#include <string.h>

#include "base/log.h"
#include "malloc/glibc.h"
#include "session/inspect/copy_ahead.h"
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
static bool knows_all(const struct session *s, struct final_scan *scan)
{
	return !scan->has_earlier && !s->run->options->profile.pages_as_heap &&
	       profile_each_ignored(s->heap.profile, add_other, &scan->check) == 0;
}

static void add_heaps(const struct session *s, const struct arenas *a, struct final_scan *scan)
{
	struct leakcheck *c = &scan->check;

	c->knows_all = knows_all(s, scan);
	for (size_t i = 0; i < a->heaps.count; i++) {
		const struct glibc_heap *h = &a->heaps.data[i];

		leakcheck_add_heap(c, h->start, h->top_end, h->top);
	}
}

/* -- another malloc -- */

static void add_spare(struct inspect_spare_input *in, struct leakcheck *c)
{
	struct inspect_spare spare;

	inspect_find_spare(&in->in, &spare);
	for (size_t i = 0; i < spare.list.count; i++)
		leakcheck_add_spare(c, spare.list.data[i].start, spare.list.data[i].end);
	vec_deinit(&spare.list);
}

static void add_spare_now(const struct session *s, struct leakcheck *c)
{
	struct inspect_spare_input in;

	if (inspect_stopped_spare(s->run->target, s->space, NULL, &in) != 0)
		return; /* all of its memory counts as roots */
	add_spare(&in, c);
	inspect_spare_input_deinit(&in);
}

/* Of a process that was copied when it was stopped. */
struct copied_scan {
	struct ahead_copy *ahead;       /* the session's */
	struct roots *roots;            /* owned */
	struct inspect_spare_input spare;
};

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

/* -- while it is stopped -- */

static void prepare(struct session *s)
{
	const struct arenas none = {0};
	struct roots *roots;

	if (copy_ahead_of(s) || roots_list(s->space, &roots) != 0)
		return; /* nothing is to be done, or the scan itself logs the reason */
	struct final_scan *scan = get_scan(s);

	copy_blocks(s, scan);
	add_memory(roots, &none, &scan->check);
	leakcheck_prepare(&scan->check, roots_read, roots);
	scan->has_blocks = false;
	scan->is_prepared = true;
	roots_free(roots);
}

static void prepare_space(void *only, struct address_space *space)
{
	if (*(const uint32_t *)only == 0 || space->id == *(const uint32_t *)only)
		prepare(space->sink.user);
}

/* Keeps what names roots, or frees it. */
static void keep_roots(struct final_scan *scan, struct roots *roots)
{
	if (scan->check.wants_holders)
		scan->roots = roots;
	else
		roots_free(roots);
}

static void keep_modules(const struct session *s, struct final_scan *scan)
{
	for (size_t i = 0; scan->check.wants_holders && i < s->space->modules.count; i++)
		*vec_add(&scan->modules.list) = module_hold(s->space->modules.data[i]);
}

/* What was stopped at @begin_ns is about to run on. */
static void note_time(struct final_scan *scan, uint64_t begin_ns)
{
	scan->is_done = true;
	scan->time_ns = clock_now_ns();
	scan->pause_ns = scan->time_ns - begin_ns;
}

/* All blocks have been added or noted: reads memory by @read. */
static void scan_memory(const struct session *s, struct final_scan *scan,
			const struct roots *roots, memory_read_fn *read, void *ctx)
{
	struct arenas arenas = {0};

	for (size_t i = 0; i < roots->data.count; i++)
		arenas_search(&arenas, roots->data.data[i].start, roots->data.data[i].end, read,
			      ctx);
	arenas_sort(&arenas);
	add_memory(roots, &arenas, &scan->check);
	add_heaps(s, &arenas, scan);
	for (size_t i = 0; i < roots->words.count; i++)
		leakcheck_add_root(&scan->check, roots->words.data[i]);
	leakcheck_scan(&scan->check, read, ctx);
	arenas_deinit(&arenas);
	scan->bytes = scan->check.scan.bytes;
}

/* -- by a copy -- */

static bool is_shared_with_us(const struct address_space *s, const struct page_run *run)
{
	return run->start >= s->own.shared && run->end <= s->own.shared + s->own.shared_size;
}

/*
 * The pages that are scanned, and all that an inspection copies: it may use the copy, too. Both
 * lists are ascending.
 */
static void list_pages(const struct address_space *s, const struct resident *pages,
		       const struct roots *roots, struct resident *out)
{
	size_t k = 0;

	*out = (struct resident){.maps = pages->maps};
	for (size_t i = 0; i < pages->list.count || k < roots->memory.count;) {
		const struct page_run *run = i < pages->list.count ? &pages->list.data[i] : NULL;
		const struct root_range *r = k < roots->memory.count ? &roots->memory.data[k] :
								       NULL;
		taddr_t done = out->list.count ? out->list.data[out->list.count - 1].end : 0;
		bool is_root = r && (!run || r->start <= run->start);
		struct page_run next = is_root ?
			(struct page_run){r->start, r->end, PAGE_RESIDENT} : *run;

		k += is_root;
		i += !is_root;
		next.start = MAX(next.start, done);
		if (next.start < next.end && !is_shared_with_us(s, &next))
			*vec_add(&out->list) = next;
	}
}

static void copied_free(struct copied_scan *c)
{
	if (!c)
		return;
	roots_free(c->roots);
	inspect_spare_input_deinit(&c->spare);
	free(c);
}

/* Copies @pages and what @roots adds. False: that is more than was expected. */
static bool copy_pages(const struct address_space *s, struct ahead_copy *ahead,
		       const struct resident *pages, struct roots *roots,
		       const struct copy_ranges *unchanged)
{
	const struct memory_source from = memory_of_process(&roots->reader);
	struct resident all;

	list_pages(s, pages, roots, &all);
	bool is_made = memory_copy_make(&ahead->copy, &all, unchanged, &from);

	vec_deinit(&all.list);
	return is_made;
}

/* The process of @s has been stopped since @begin_ns. False: it cannot be copied. */
static bool copy_stopped(struct session *s, struct ahead_copy *ahead, uint64_t begin_ns)
{
	struct copy_ranges unchanged = {0};
	struct resident pages;
	struct roots *roots = NULL;

	if (copy_ahead_pages(ahead, s->space->processes.reader, &pages, &unchanged) != 0)
		return false;
	bool is_made = roots_collect(s->run->target, s->space, &pages, &roots) == 0 &&
		       copy_pages(s->space, ahead, &pages, roots, &unchanged);

	vec_deinit(&unchanged.list);
	if (!is_made) {
		roots_free(roots);
		resident_deinit(&pages);
		return false;
	}
	struct final_scan *scan = get_scan(s);

	scan->has_earlier = s->space->image.has_earlier_blocks;
	scan->copied = xcalloc(1, sizeof(*scan->copied));
	scan->copied->ahead = ahead;
	scan->copied->roots = roots;
	inspect_stopped_spare(s->run->target, s->space, &pages, &scan->copied->spare);
	keep_modules(s, scan);
	note_time(scan, begin_ns);
	return true;
}

/* The process runs, but its events since the stop have not been read. */
static void scan_copy(struct session *s, struct final_scan *scan)
{
	struct copied_scan *c = scan->copied;
	struct memory_source *source = &c->spare.in.source;

	copy_blocks(s, scan);
	memory_copy_redirect(&c->ahead->copy, source);
	add_spare(&c->spare, &scan->check);
	scan_memory(s, scan, c->roots, source->read, source->ctx);
	keep_roots(scan, c->roots);
	c->roots = NULL;
	copied_free(c);
	scan->copied = NULL;
}

/* -- scans -- */

void final_scan_prepare(struct run *run, uint32_t only)
{
	copy_ahead_sessions(run, only);
	if (run->options->leaks.check)
		target_each(run->target, prepare_space, &only);
}

void final_scan_run(struct session *s)
{
	struct roots *roots;
	uint64_t begin = clock_now_ns();
	struct ahead_copy *ahead = copy_ahead_of(s);

	if (ahead && copy_stopped(s, ahead, begin))
		return;
	int rc = roots_collect(s->run->target, s->space, NULL, &roots);

	if (rc != 0) {
		final_scan_forget(s);
		log_warn("process %u: no leak check: %s", s->process.pid, strerror(-rc));
		return;
	}
	struct final_scan *scan = get_scan(s);

	scan->has_earlier = s->space->image.has_earlier_blocks;
	if (scan->is_prepared)
		copy_blocks(s, scan);
	else /* moved, not copied: copying takes memory, and so time */
		profile_each_block(s->heap.profile, note_block, &scan->check);
	add_spare_now(s, &scan->check);
	scan_memory(s, scan, roots, roots_read, roots);
	keep_modules(s, scan);
	keep_roots(scan, roots);
	note_time(scan, begin);
}

struct final_scan *final_scan_result(struct session *s)
{
	if (!s->end.final_scan || !s->end.final_scan->is_done)
		return NULL;
	if (s->end.final_scan->copied)
		scan_copy(s, s->end.final_scan);
	else if (!s->end.final_scan->has_blocks)
		copy_blocks(s, s->end.final_scan);
	return s->end.final_scan;
}

void final_scan_forget(struct session *s)
{
	if (!s->end.final_scan)
		return;
	leakcheck_deinit(&s->end.final_scan->check);
	roots_free(s->end.final_scan->roots);
	copied_free(s->end.final_scan->copied);
	held_modules_deinit(&s->end.final_scan->modules);
	free(s->end.final_scan);
	s->end.final_scan = NULL;
}
