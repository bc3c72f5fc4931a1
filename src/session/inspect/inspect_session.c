/* Reads a profiled process while its threads are stopped, and reports or compares it afterwards. */
#include "session/inspect/inspect_session.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "output/call_sites.h"
#include "output/inspect_report.h"
#include "output/report.h"
#include "output/report_tree.h"
#include "profile/blocks.h"
#include "session/inspect/inspect_stopped.h"
#include "session/inspect/inspect_title.h"
#include "session/session.h"
#include "session/out.h"
#include "tracee/state/space.h"

#define PATHS_SHOWN 5u

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

static void path_pins_deinit(struct path_pins *p)
{
	for (size_t i = 0; i < p->list.count; i++)
		for (size_t k = 0; k < p->list.data[i].depth; k++)
			free(p->list.data[i].frame[k]);
	vec_deinit(&p->list);
	free(p->paths.pages);
	p->paths.pages = NULL;
}

/* The leaf with most pages, which is not found again; 0 = none is left. */
static uint32_t take_largest(struct path_pins *p, uint64_t *pages_out)
{
	uint32_t best = 0;

	*pages_out = 0;
	for (uint32_t i = 1; i < p->paths.count; i++)
		if (p->paths.pages[i] > *pages_out) {
			best = i;
			*pages_out = p->paths.pages[i];
		}
	p->paths.pages[best] = 0;
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
	uint64_t pages;
	uint32_t leaf;

	while (p->paths.pages && p->list.count < PATHS_SHOWN && (leaf = take_largest(p, &pages))) {
		struct inspect_pin *pin = vec_add(&p->list);

		*pin = (struct inspect_pin){.pages = pages};
		if (shown_stack_fill(&stack, profile_leaf(s->heap.profile, leaf)->node))
			name_frames(&r, &stack, pin);
	}
	shown_stack_deinit(&stack);
}

/* The session keeps the result until the report is made. See inspect_session.h. */

struct inspect_final {
	int rc;                  /* when it was read */
	uint64_t time_ms;        /* since the profile began */
	uint64_t stopped_ns;
	struct inspect_stopped look;
	struct memory_copy copy; /* until it is classified */
	struct inspect_blocks blocks;
	struct path_pins pins;
	/* by inspect_final_classify */
	bool is_classified;
	char *why;               /* it cannot be reported; NULL = it can; owned */
	struct inspect_title title;
};

void inspect_final_read(struct session *s, bool is_last)
{
	struct inspect_final *f = xcalloc(1, sizeof(*f));
	const char *path = s->run->options->inspect.out;
	struct inspect_wish wish = {.ctx = &f->blocks, .is_last = is_last,
				     .wants_types = true, .copy = &f->copy,
				     .wants_holders = s->run->options->inspect.pointers};
	uint64_t begin = clock_now_ns();

	inspect_stopped_copy_init(&f->copy, s->space->processes.reader,
			       s->run->options->inspect.copy);
	path_pins_init(&f->pins, s);
	if (f->pins.paths.pages)
		wish.paths = &f->pins.paths;
	inspect_final_free(s->end.inspected);
	s->end.inspected = f;
	if (path && inspect_title_wants_blocks(path)) {
		wish.block = inspect_blocks_add;
		wish.python_block = inspect_blocks_add_python;
	}
	f->rc = inspect_stopped(s->run->target, s->space, &wish, &f->look);
	f->time_ms = (begin - MIN(begin, s->process.start_ns)) / 1000000;
	f->stopped_ns = clock_now_ns() - begin;
}

static int print_to_stderr(const struct inspect_title *t, const struct inspect_report *r)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	if (!file)
		return -errno;
	inspect_report_print(file, t, r);
	if (fclose(file) != 0)
		return -errno;
	log_print_lines(LOG_RESULT, "", text);
	return 0;
}

static int write_file(struct session *s, const struct inspect_title *t)
{
	const char *path;
	int rc = out_name(s, OUT_INSPECT, SOURCE_HEAP, &path);

	if (rc != 0)
		return rc;
	rc = inspect_title_save(&(struct inspect_found){path, t, &s->end.inspected->look.report,
							&s->end.inspected->blocks});
	if (rc == 0)
		out_announce(s, OUT_INSPECT, path);
	return rc;
}

void inspect_final_classify(struct session *s)
{
	struct inspect_final *f = s->end.inspected;

	if (!f || f->rc != 0 || f->is_classified)
		return;
	f->is_classified = true;
	inspect_stopped_classify(&f->look);
	memory_copy_deinit(&f->copy);
	f->why = inspect_title_refusal(s->process.pid, &f->look);
	if (f->why)
		return;
	inspect_title_init(&f->title, s->process.pid, s->process.command, &f->look);
	f->title.stopped_ns = f->stopped_ns;
	last_inspection_set(s, &f->title, &f->look.report, &f->pins, f->time_ms);
}

static void report(struct session *s)
{
	struct inspect_final *f = s->end.inspected;

	inspect_final_classify(s);
	if (f->why) {
		log_warn("%s", f->why);
		return;
	}
	path_pins_name(&f->pins, s);
	f->title.pin = f->pins.list.data;
	f->title.pin_count = f->pins.list.count;
	s->run->files_failed += (s->run->options->inspect.out ?
				 write_file(s, &f->title) :
				 print_to_stderr(&f->title, &f->look.report)) != 0;
}

void inspect_final_finish(struct session *s)
{
	struct inspect_final *f = s->end.inspected;

	if (!f && s->image.has_executed)
		log_warn("process %u executed another program: its memory before that is "
			 "not reported", s->process.pid);
	else if (!f)
		log_warn("process %u ended before its memory could be read: there is nothing to "
			 "inspect", s->process.pid);
	else if (f->rc != 0)
		log_warn("process %u: its memory cannot be read: %s", s->process.pid,
			 strerror(-f->rc));
	else
		report(s);
	inspect_final_free(f);
	s->end.inspected = NULL;
}

void inspect_final_free(struct inspect_final *f)
{
	if (!f)
		return;
	if (f->rc == 0)
		inspect_stopped_deinit(&f->look);
	memory_copy_deinit(&f->copy);
	vec_deinit(&f->blocks.list);
	path_pins_deinit(&f->pins);
	free(f->why);
	free(f);
}

/*
 * The comparison is exact if the process was profiled from its start, and no thread is within
 * malloc: each block is either on both sides or on none.
 */

#define SHOWN 20u
#define PAUSE_NS 1000000 /* between two looks, for the program to go on */

struct inspect_request {
	struct session *session;
	struct inspect_stopped look;
	struct inspect_blocks *found;   /* NULL = not needed */
	struct inspect_blocks *counted;
	struct path_pins pins;
	struct memory_copy copy;
	uint64_t time_ms;               /* when it was read, since the profile began */
	int rc;
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
	struct inspect_wish wish = {.block = q->found ? inspect_blocks_add : NULL,
					  .ctx = q->found, .wants_types = !q->counted,
					  .copy = &q->copy,
					  .wants_holders =
						  !q->counted &&
						  q->session->run->options->inspect.pointers};

	if (space->sink.user != q->session)
		return;
	q->time_ms = (clock_now_ns() - q->session->process.start_ns) / 1000000;
	if (!q->counted) {
		path_pins_init(&q->pins, q->session);
		wish.paths = q->pins.paths.pages ? &q->pins.paths : NULL;
		wish.python_block = q->found ? inspect_blocks_add_python : NULL;
	}
	q->rc = inspect_stopped(q->session->run->target, space, &wish, &q->look);
	if (q->rc != 0 || !q->counted)
		return;
	profile_each_block(q->session->heap.profile, add_counted, q->counted);
	profile_each_ignored(q->session->heap.profile, add_counted, q->counted);
}

static void forget(struct inspect_request *q)
{
	inspect_stopped_deinit(&q->look);
	path_pins_deinit(&q->pins);
	if (q->found)
		q->found->list.count = 0;
	if (q->counted)
		q->counted->list.count = 0;
}

static void read_once(struct inspect_request *q, uint64_t *stopped_out)
{
	const struct session *s = q->session;

	q->rc = -ESRCH;
	inspect_stopped_copy_init(&q->copy, s->space->processes.reader,
				  s->run->options->inspect.copy);
	*stopped_out += target_inspect(s->run->target, look, q);
	if (q->rc == 0)
		inspect_stopped_classify(&q->look);
	memory_copy_deinit(&q->copy);
}

/* Reads and classifies, again if Python's allocator was being changed. */
static int read_whole(struct inspect_request *q, uint64_t *stopped_out)
{
	*stopped_out = 0;
	for (uint32_t i = 1;; i++) {
		read_once(q, stopped_out);
		if (q->rc != 0)
			return q->rc;
		if (i == PYTHON_LOOKS || !python_report_is_torn(&q->look.report.python))
			return 0;
		forget(q);
		nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
	}
}

static int ask(struct inspect_request *q, uint64_t *stopped_out, FILE *file)
{
	uint32_t pid = q->session->process.pid;

	if (!q->session->run->target)
		return -ESRCH;
	int rc = read_whole(q, stopped_out);

	if (rc != 0) {
		fprintf(file, "process %u cannot be read: %s\n", pid, strerror(-rc));
		return -ESRCH;
	}
	char *why = inspect_title_refusal(pid, &q->look);

	if (!why)
		return 0;
	fprintf(file, "%s\n", why);
	free(why);
	inspect_stopped_deinit(&q->look);
	return -ENOTSUP;
}

int inspect_session_write(struct session *s, const char *path, FILE *file)
{
	struct inspect_blocks blocks = {0};
	struct inspect_request q = {.session = s};
	struct inspect_title title;
	uint64_t stopped_ns;
	int rc;

	if (path && inspect_title_wants_blocks(path))
		q.found = &blocks;
	rc = ask(&q, &stopped_ns, file);
	if (rc != 0) {
		vec_deinit(&blocks.list);
		path_pins_deinit(&q.pins);
		return rc;
	}
	inspect_title_init(&title, s->process.pid, s->process.command, &q.look);
	title.stopped_ns = stopped_ns;
	last_inspection_set(s, &title, &q.look.report, &q.pins, q.time_ms);
	path_pins_name(&q.pins, s);
	title.pin = q.pins.list.data;
	title.pin_count = q.pins.list.count;
	if (path)
		rc = inspect_title_write(
			&(struct inspect_found){path, &title, &q.look.report, &blocks});
	else
		inspect_report_print(file, &title, &q.look.report);
	vec_deinit(&blocks.list);
	path_pins_deinit(&q.pins);
	inspect_stopped_deinit(&q.look);
	return rc;
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
	struct inspect_blocks found = {0}, counted = {0};
	struct inspect_request q = {.session = s, .found = &found, .counted = &counted};
	struct differences d = {.file = file};
	uint64_t stopped_ns;
	int rc = ask(&q, &stopped_ns, file);

	if (rc == 0) {
		d.is_glibc = !q.look.report.other.name;
		d.is_loose = q.look.report.other.sums.loose_blocks > 0;
		inspect_blocks_sort(&found);
		inspect_blocks_sort(&counted);
		compare(&counted, &found, &d);
		fprintf(file, "common %llu, only counted %llu, only in the heap %llu, of another "
			      "size %llu; threads in malloc %u after %u moments; consistent %d\n",
			(unsigned long long)d.common, (unsigned long long)d.counted,
			(unsigned long long)d.found, (unsigned long long)d.sizes, q.look.inside,
			q.look.moments, inspect_is_consistent(&q.look.report));
		inspect_stopped_deinit(&q.look);
	}
	vec_deinit(&found.list);
	vec_deinit(&counted.list);
	return rc;
}
