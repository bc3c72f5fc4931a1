/* Reads a profiled process while its threads are stopped, and reports or compares it afterwards. */
#include "session/inspect/inspect_session.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "output/call_sites.h"
#include "output/inspect_report.h"
#include "output/report.h"
#include "output/report_tree.h"
#include "profile/blocks.h"
#include "session/inspect/copy_ahead.h"
#include "session/inspect/graph_paths.h"
#include "session/session.h"
#include "session/out.h"
#include "tracee/state/space.h"

#define PATHS_SHOWN 5u
#define COLD_PATHS 1000u
#define HUGE_READ_MAX (UINT64_C(256) << 20) /* 50 ms, in which rings may become full */

static uint32_t find_leaf(void *ctx, taddr_t addr)
{
	const struct path_pins *p = ctx;
	struct block b;

	/* threads that left malloc may have added others since they were counted */
	return blocks_find(profile_blocks(p->profile), addr, &b) && b.leaf < p->paths.count ?
	       b.leaf : 0;
}

/* For the blocks that the profile of @s has; with samples there are none. */
static void path_pins_init(struct path_pins *p, struct session *s)
{
	*p = (struct path_pins){0};
	if (options_sample_interval(s->run->options) || s->run->options->profile.pages_as_heap)
		return;
	p->profile = s->heap.profile;
	p->paths = (struct pinned_paths){
		.find = find_leaf, .ctx = p, .count = profile_leaf_count(s->heap.profile) + 1};
	p->paths.pages = xcalloc(p->paths.count, sizeof(*p->paths.pages));
}

/* The leaf with most pages, which is not found again; 0 = none is left. */
static uint32_t take_largest(struct path_pins *p, struct pin_count *out)
{
	uint32_t best = 0;

	*out = (struct pin_count){0};
	for (uint32_t i = 1; i < p->paths.count; i++)
		if (p->paths.pages[i].pages > out->pages) {
			best = i;
			*out = p->paths.pages[i];
		}
	p->paths.pages[best] = (struct pin_count){0};
	return best;
}

static void name_frames(const struct report *r, struct shown_stack *stack, struct inspect_pin *out)
{
	for (size_t i = 0; i < stack->count && out->depth < INSPECT_PIN_FRAMES; i++) {
		const struct symbol *sym = shown_stack_symbol(stack, stack->first + i);

		for (uint32_t k = 0; k < sym->count && out->depth < INSPECT_PIN_FRAMES; k++)
			out->frame[out->depth++] = call_site_text(
				r, (struct call_site){.frame = stack->frame.data[stack->first + i],
						      .inlined = k});
	}
}

/* Finds those with most pages, and their names. */
static void path_pins_name(struct path_pins *p, struct session *s)
{
	const struct report r = session_report(s);
	struct shown_stack stack = {.report = &r};
	struct pin_count pages;
	uint32_t leaf;

	while (p->paths.pages && p->list.count < PATHS_SHOWN && (leaf = take_largest(p, &pages))) {
		struct inspect_pin *pin = vec_add(&p->list);

		*pin = (struct inspect_pin){.pages = pages.pages, .pages_alone = pages.alone};
		if (shown_stack_fill(&stack, profile_leaf(s->heap.profile, leaf)->node))
			name_frames(&r, &stack, pin);
	}
	shown_stack_deinit(&stack);
}

/* -- call paths of what was not touched -- */

static int compare_cold(const void *a, const void *b, void *ctx)
{
	const struct cold_sum *sum = ctx;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	uint64_t x = sum[i].untouched.cold, y = sum[k].untouched.cold;

	return x != y ? (x > y ? -1 : 1) : i < k ? -1 : i > k;
}

/* The paths with most, and their names; the sum of all in the title. */
static void name_cold(struct inspection *i, struct session *s)
{
	const struct session_cold *c = &s->end.cold;
	const struct report r = session_report(s);
	struct shown_stack stack = {.report = &r};
	VEC(uint32_t) leaves = {0};

	for (uint32_t leaf = 1; leaf < c->sums.count; leaf++) {
		const struct cold_sum *sum = &c->sums.data[leaf];

		i->title.cold_all.bytes += sum->bytes;
		i->title.cold_all.untouched.cold += sum->untouched.cold;
		i->title.cold_all.untouched.shared += sum->untouched.shared;
		if (sum->untouched.cold + sum->untouched.shared > 0)
			*vec_add(&leaves) = leaf;
	}
	if (leaves.count > 0)
		qsort_r(leaves.data, leaves.count, sizeof(*leaves.data), compare_cold,
			c->sums.data);
	for (size_t k = 0; k < MIN(leaves.count, COLD_PATHS); k++) {
		const struct cold_sum *sum = &c->sums.data[leaves.data[k]];
		struct inspect_pin *pin = vec_add(&i->pins.cold);

		*pin = (struct inspect_pin){.bytes = sum->bytes, .untouched = sum->untouched};
		if (shown_stack_fill(&stack, profile_leaf(s->heap.profile, leaves.data[k])->node))
			name_frames(&r, &stack, pin);
	}
	vec_deinit(&leaves);
	shown_stack_deinit(&stack);
}

/* What a session reads while the threads of @space are stopped. */
static void read_space(struct inspection *i, struct session *s, struct address_space *space,
		       bool is_last)
{
	uint64_t now = clock_now_ns();

	i->time_ms = (now - MIN(now, s->process.start_ns)) / 1000000;
	if (i->wants_types)
		path_pins_init(&i->pins, s);
	struct inspect_wish wish = inspection_wish(i);
	struct ahead_copy *ahead = copy_ahead_of(s);

	wish.is_last = is_last;
	if (ahead)
		wish.copy = &ahead->copy;
	if (ahead && ahead->written.uffd >= 0)
		wish.written = &ahead->written;
	i->rc = inspect_stopped(s->run->target, space, &wish, &i->look);
}

/* Keeps it, with @i's title, and names what pins pages. */
static void finish_title(struct inspection *i, struct session *s)
{
	path_pins_name(&i->pins, s);
	i->title.pin = i->pins.list.data;
	i->title.pin_count = i->pins.list.count;
	if (i->cold <= 0)
		return;
	name_cold(i, s);
	i->title.cold = i->pins.cold.data;
	i->title.cold_count = i->pins.cold.count;
	i->title.is_estimated = options_sample_interval(s->run->options) > 0;
}

/* Keeps it for others (last_inspection.h), a graph with its call paths. */
static void keep(struct inspection *i, struct session *s)
{
	if (i->wants_graph)
		graph_paths_find(s, &i->look);
	last_inspection_set(s, i);
}

/* -- at the last stop: the session keeps the result until the report is made -- */

void inspect_final_read(struct session *s, bool is_last)
{
	struct session_cold *cold = &s->end.cold;
	uint64_t begin = clock_now_ns();

	if (cold->state == COLD_REPORTED)
		return; /* what the end finds has nothing of that */
	struct inspection *i = xmalloc(sizeof(*i));

	inspection_init(i, s->run->options, inspection_path(s->run->options));
	i->cold = cold->state == COLD_FOUND ? cold->seconds : 0;
	i->touched = cold->pages;
	cold->pages = (struct touched_pages){0};
	if (!copy_ahead_of(s)) /* a graph has types only of a copy */
		inspect_stopped_copy_init(&i->copy, s->space->processes.reader,
					  copy_ahead_most(s->run->options, !i->wants_graph));
	inspect_final_free(s->end.inspected);
	s->end.inspected = i;
	read_space(i, s, s->space, is_last);
	i->stopped_ns = clock_now_ns() - begin;
}

static int print_to_stderr(struct inspection *i)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	if (!file)
		return -errno;
	i->brief.prefix = strlen("ptmem: ");
	inspection_print(i, file);
	if (fclose(file) != 0)
		return -errno;
	log_print_lines(LOG_RESULT, "", text);
	return 0;
}

static int write_file(struct session *s)
{
	const char *path;
	int rc = out_name(s, inspection_output(s->run->options), SOURCE_HEAP, &path);

	if (rc != 0)
		return rc;
	rc = inspection_save(s->end.inspected, path);
	if (rc == 0)
		out_announce(s, inspection_output(s->run->options), path);
	return rc;
}

void inspect_final_classify(struct session *s)
{
	struct inspection *i = s->end.inspected;

	if (!i || i->rc != 0 || i->title.pid)
		return;
	inspect_stopped_classify(&i->look);
	memory_copy_deinit(&i->copy);
	if (inspection_judge(i, s->process.pid, s->process.command))
		keep(i, s);
}

void inspect_final_finish(struct session *s)
{
	struct inspection *i = s->end.inspected;

	inspect_final_classify(s);
	if (!i && s->image.has_executed) {
		log_warn("process %u executed another program: its memory before that is "
			 "not reported", s->process.pid);
	} else if (!i && s->end.cold.state == COLD_REPORTED) {
		return;
	} else if (!i) {
		log_warn("process %u ended before its memory could be read: there is nothing to "
			 "inspect", s->process.pid);
	} else if (i->rc != 0) {
		log_warn("process %u: its memory cannot be read: %s", s->process.pid,
			 strerror(-i->rc));
	} else if (i->why) {
		log_warn("%s", i->why);
	} else {
		finish_title(i, s);
		const char *path = inspection_path(s->run->options);

		s->run->files_failed += (path ? write_file(s) : print_to_stderr(i)) != 0;
		if (i->cold > 0)
			s->end.cold.state = COLD_REPORTED;
	}
	if (s->end.cold.state == COLD_WATCHED)
		log_warn("process %u ended before the time of --cold: what it did not touch is "
			 "not known", s->process.pid);
	inspect_final_free(i);
	s->end.inspected = NULL;
}

void inspect_final_free(struct inspection *i)
{
	if (i)
		inspection_deinit(i);
	free(i);
}

/*
 * The comparison is exact if the process was profiled from its start, and no thread is within
 * malloc: each block is either on both sides or on none.
 */

#define SHOWN 20u

struct inspect_request {
	struct session *session; /* which may end while its process is copied */
	struct run *run;
	uint32_t space;
	struct inspection inspection;
	struct inspect_blocks counted; /* if types are not wanted: of the profile */
};

/* -- both -- */

static int add_counted(void *ctx, const struct block *b)
{
	inspect_blocks_add(ctx, b->addr, b->size, 0);
	return 0;
}

static void look(void *ctx, struct address_space *space)
{
	struct inspect_request *q = ctx;

	if (space->sink.user != q->session)
		return;
	read_space(&q->inspection, q->session, space, false);
	if (q->inspection.rc != 0 || q->inspection.wants_types)
		return;
	q->counted.list.count = 0;
	profile_each_block(q->session->heap.profile, add_counted, &q->counted);
	profile_each_ignored(q->session->heap.profile, add_counted, &q->counted);
}

/* If the session has not ended meanwhile. */
static void unwatch(void *ctx, struct address_space *space)
{
	const struct inspect_request *q = ctx;

	if (space->id == q->space)
		copy_ahead_unwatch(space->sink.user);
}

static int read_once(struct inspection *i, void *ctx)
{
	const struct inspect_request *q = ctx;

	copy_ahead_sessions(q->run, q->space);
	i->stopped_ns += target_inspect(q->run->target, look, ctx);
	target_each(q->run->target, unwatch, ctx);
	return 0;
}

static void forget_copy(void *ctx, struct address_space *space)
{
	const struct inspect_request *q = ctx;

	if (space->id == q->space)
		copy_ahead_forget(space->sink.user);
}

static int ask(struct inspect_request *q, FILE *file)
{
	struct inspection *i = &q->inspection;
	const struct session *s = q->session;
	uint32_t pid = s->process.pid;

	i->rc = -ESRCH;
	if (!s->run->target || !s->space)
		return -ESRCH;
	q->run = s->run;
	q->space = s->space->id;
	const pid_t reader = s->space->processes.reader;
	int rc = inspection_read(i, read_once, q);

	target_each(q->run->target, forget_copy, q);
	if (rc != 0) {
		fprintf(file, "process %u cannot be read: %s\n", pid, strerror(-rc));
		return -ESRCH;
	}
	inspection_read_huge(i, reader, HUGE_READ_MAX);
	if (inspection_judge(i, s->process.pid, s->process.command))
		return 0;
	fprintf(file, "%s\n", i->why);
	return -ENOTSUP;
}

int inspect_session_write(struct session *s, const char *path, FILE *file)
{
	struct inspect_request q = {.session = s};
	struct inspection *i = &q.inspection;

	inspection_init(i, s->run->options, path);
	i->cold = 0;
	int rc = ask(&q, file);

	if (rc == 0) {
		keep(i, s);
		finish_title(i, s);
		if (path)
			rc = inspection_write(i, path);
		else
			inspection_print(i, file);
	}
	inspection_deinit(i);
	return rc;
}

int inspect_session_keep_graph(struct session *s, FILE *file)
{
	struct inspect_request q = {.session = s};
	struct inspection *i = &q.inspection;

	inspection_init(i, s->run->options, NULL);
	i->wants_graph = i->keeps_graph = i->wants_holders = true;
	int rc = ask(&q, file);

	if (rc == 0)
		last_inspection_set(s, i);
	inspection_deinit(i);
	return rc;
}

void inspect_session_save(struct session *s, unsigned number)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	if (!file)
		return;
	enum output which = inspection_output(s->run->options);
	int rc = out_numbered_path(s, which, SOURCE_HEAP, number, &path);

	if (rc == 0)
		rc = inspect_session_write(s, path, file);
	if (fclose(file) == 0 && size > 0)
		log_print_lines(LOG_WARN, "", text);
	if (rc == 0)
		log_info("process %u: its memory is in %s", s->process.pid, path);
	else if (path && rc != -ESRCH && rc != -ENOTSUP)
		log_warn("cannot write %s: %s", path, strerror(-rc));
}

/* -- the comparison -- */

/*
 * The usable size for the request @b, or up to 32 bytes more if the rest would be too small for a
 * chunk (16 except for aligned blocks); for a block mapped separately, up to the end of its last
 * page. pvalloc asks for whole pages.
 */
static bool fits(const struct inspect_block *b, uint64_t usable)
{
	uint64_t page = PAGE_SIZE_MIN, size = b->addr % page ? b->size : ROUND_UP(b->size, page);
	uint64_t chunk = MAX(ROUND_UP(size + 8, UINT64_C(16)), UINT64_C(32));
	/* a block with a mapping of its own ends at the page, since glibc 2.43 a word before it */
	taddr_t end = ROUND_UP(b->addr + usable, UINT64_C(16));
	bool is_to_page = end % page == 0;

	return usable >= b->size && usable <= chunk + (is_to_page ? page : 24);
}

struct differences {
	bool is_glibc, is_loose;
	uint64_t common, counted, found, sizes;
	FILE *file;
};

static void show(struct differences *d, uint64_t *count, const char *what,
		 const struct inspect_block *b)
{
	if (++*count <= SHOWN)
		fprintf(d->file, "%s: %#llx, %llu bytes\n", what, (unsigned long long)b->addr,
			(unsigned long long)b->size);
}

/*
 * Whether @c is what @f is in the heap: it begins there, or, if that is not recorded, at the first
 * address in it that has some alignment.
 */
static bool is_same(const struct differences *d, const struct inspect_block *c,
		    const struct inspect_block *f)
{
	uint64_t offset = c->addr - f->addr;

	return c->addr == f->addr ||
	       (d->is_loose && offset < f->size && offset < (c->addr & -c->addr));
}

static void compare(const struct inspect_blocks *counted, const struct inspect_blocks *found,
		    struct differences *d)
{
	size_t i = 0, k = 0;

	while (i < counted->list.count || k < found->list.count) {
		const struct inspect_block *c = &counted->list.data[i], *f = &found->list.data[k];

		if (k == found->list.count || (i < counted->list.count && c->addr < f->addr)) {
			show(d, &d->counted, "only counted", c);
			i++;
		} else if (i == counted->list.count || !is_same(d, c, f)) {
			show(d, &d->found, "only in the heap", f);
			k++;
		} else {
			uint64_t usable = f->size - (c->addr - f->addr);

			d->common++;
			if (d->is_glibc ? !fits(c, usable) : usable < c->size)
				show(d, &d->sizes, "of another size", f);
			i++;
			k++;
		}
	}
}

int inspect_session_check(struct session *s, FILE *file)
{
	struct inspect_request q = {.session = s};
	struct inspection *i = &q.inspection;
	struct differences d = {.file = file};

	inspection_init(i, s->run->options, NULL);
	i->cold = 0;
	i->wants_blocks = true;
	i->wants_types = i->wants_holders = i->wants_graph = false;
	int rc = ask(&q, file);

	if (rc == 0) {
		d.is_glibc = !i->look.report.other.name;
		d.is_loose = i->look.report.other.sums.loose_blocks > 0;
		inspect_blocks_sort(&i->blocks);
		inspect_blocks_sort(&q.counted);
		compare(&q.counted, &i->blocks, &d);
		fprintf(file, "common %llu, only counted %llu, only in the heap %llu, of another "
			      "size %llu; threads in malloc %u after %u moments; consistent %d\n",
			(unsigned long long)d.common, (unsigned long long)d.counted,
			(unsigned long long)d.found, (unsigned long long)d.sizes, i->look.inside,
			i->look.moments, inspect_is_consistent(&i->look.report));
	}
	inspection_deinit(i);
	vec_deinit(&q.counted.list);
	return rc;
}
