/*
 * The wires of growth.h. Nothing here knows how a leak is found or a graph drawn.
 *
 * A leak check has two halves: scanning needs the target to stand still and is
 * kept short; deciding works on what was scanned and happens when it runs again.
 */
#include "growth.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "leak/leakcheck.h"
#include "output/flame.h"
#include "output/folded.h"
#include "output/leaks.h"
#include "output/profile_paths.h"
#include "session_output.h"
#include "target/roots.h"
#include "top.h"

#define SITES_ON_STDERR 50

/* What a last look leaves for the report. */
struct leak_look {
	struct leakcheck check;
	uint64_t time_ns, pause_ns, bytes;
};

static volatile sig_atomic_t report_wanted;

bool growth_needs_times(const struct options *o)
{
	return o->leaks >= 0 || o->leak_check;
}

int growth_exit_code(const struct run *run)
{
	return run->definite_bytes > 0 ? (int)run->options->error_exitcode : 0;
}

/* -- scanning -- */

static int copy_block(void *ctx, const struct block *b)
{
	const struct leakcheck_block block = {
		.addr = b->addr, .size = b->size, .leaf = b->leaf, .time = b->time};

	leakcheck_add_block(ctx, &block);
	return 0;
}

/*
 * Scans @range but for what is below a stack pointer in it. *@below: the first such part not passed
 * yet.
 */
static void scan_range(struct leakcheck *c, struct roots *r, struct root_range range, size_t *below)
{
	for (; *below < r->below_stacks.count && r->below_stacks.data[*below].start < range.end;
	     ++*below) {
		struct root_range hole = r->below_stacks.data[*below];

		if (pointer_scan_has_target_near(&c->scan, hole.start, hole.end))
			continue; /* a stack in the heap, perhaps */
		if (hole.end > range.end) { /* this and the next range */
			leakcheck_scan(c, range.start, MAX(range.start, hole.start), roots_read, r);
			return;
		}
		leakcheck_scan(c, range.start, hole.start, roots_read, r);
		range.start = MAX(range.start, hole.end);
	}
	leakcheck_scan(c, range.start, range.end, roots_read, r);
}

static void scan(struct session *s, struct roots *r, struct leak_look *look)
{
	struct leakcheck *c = &look->check;
	uint64_t total = 0;
	size_t below = 0;

	leakcheck_init(c);
	for (size_t i = 0; i < r->memory.count; i++)
		total += r->memory.data[i].end - r->memory.data[i].start;
	pointer_scan_reserve(&c->scan, total);
	profile_each_block(s->profile, copy_block, c);
	for (size_t i = 0; i < r->words.count; i++)
		leakcheck_add_root(c, r->words.data[i]);
	for (size_t i = 0; i < r->memory.count; i++)
		scan_range(c, r, r->memory.data[i], &below);
	look->bytes = c->scan.bytes;
}

static void look_at(struct session *s)
{
	struct roots *roots;
	uint64_t begin = target_clock();
	int rc = roots_collect(s->run->target, s->space, &roots);

	growth_forget(s);
	if (rc != 0) {
		log_warn("process %u: no leak check: %s", s->pid, strerror(-rc));
		return;
	}
	s->look = xcalloc(1, sizeof(*s->look));
	scan(s, roots, s->look);
	roots_free(roots);
	s->look->time_ns = target_clock();
	s->look->pause_ns = s->look->time_ns - begin;
}

void growth_last_look(void *ctx, struct space *space)
{
	const struct run *run = ctx;

	if (run->options->leak_check)
		look_at(space->user);
}

void growth_forget(struct session *s)
{
	if (!s->look)
		return;
	leakcheck_deinit(&s->look->check);
	free(s->look);
	s->look = NULL;
}

/* -- leaks -- */

static enum leak_kind kind_of(const struct leakcheck *c, size_t block)
{
	static const uint8_t kinds[] = {
		[LEAKCHECK_DEFINITE] = LEAK_DEFINITE, [LEAKCHECK_INDIRECT] = LEAK_INDIRECT,
		[LEAKCHECK_POSSIBLE] = LEAK_POSSIBLE, [LEAKCHECK_REACHABLE] = LEAK_REACHABLE,
	};

	return (enum leak_kind)kinds[c->state[block]];
}

static void add_checked(struct leaks *l, const struct leakcheck *c)
{
	for (size_t i = 0; i < c->blocks.count; i++) {
		const struct leakcheck_block *b = &c->blocks.data[i];
		const struct block block = {
			.addr = b->addr, .size = b->size, .leaf = b->leaf, .time = b->time};

		leaks_add(l, &block, kind_of(c, i));
	}
}

static void print_to_stderr(void *ctx, const char *line)
{
	(void)ctx;
	log_print(LOG_RESULT, "%s", line);
}

static void print_to_file(void *ctx, const char *line)
{
	fprintf(ctx, "%s\n", line);
}

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n >= k && strcmp(text + n - k, end) == 0;
}

static char *headline(const struct session *s, const struct leaks *l)
{
	_cleanup_free_ char *younger =
		l->minimum_age ? xasprintf(", at least %.3f s old", l->minimum_age / 1000.0) :
				 xstrdup("");

	return xasprintf("leaks of process %u, %s: %zu site%s%s", s->pid, s->command,
			 l->sites.count, l->sites.count == 1 ? "" : "s", younger);
}

static void print_leaks(const struct session *s, const struct leaks *l, FILE *file)
{
	_cleanup_free_ char *head = headline(s, l);

	fprintf(file, "%s\n", head);
	leaks_print(l, SIZE_MAX, print_to_file, file);
}

static int write_leaks(const struct session *s, const struct leaks *l, const char *path)
{
	struct outfile out;
	int rc = outfile_open(path, &out);

	if (rc != 0)
		return rc;
	if (ends_in(path, ".json"))
		leaks_write_json(out.file, l);
	else
		print_leaks(s, l, out.file);
	return outfile_commit(&out);
}

static void put_leaks(struct session *s, const struct leaks *l)
{
	const char *pattern = s->run->options->leaks_out;

	if (!pattern) {
		_cleanup_free_ char *head = headline(s, l);
		print_to_stderr(NULL, head);
		leaks_print(l, SITES_ON_STDERR, print_to_stderr, NULL);
		return;
	}
	_cleanup_free_ char *path = NULL;
	int rc = session_file_name(s, "--leaks-out", pattern, &path);

	if (rc == 0) {
		rc = write_leaks(s, l, path);
		if (rc != 0)
			log_error("cannot write %s: %s", path, strerror(-rc));
	}
	s->run->files_failed += rc != 0;
}

static void announce_look(const struct session *s)
{
	const struct leak_look *look = s->look;

	log_info("leak check of process %u: stopped for %.1f ms to read %.1f MB and %zu blocks",
		 s->pid, (double)look->pause_ns / 1e6, (double)look->bytes / 1e6,
		 look->check.blocks.count);
	if (look->check.scan.unreadable)
		log_warn("%llu bytes of memory could not be read: "
			 "what only they point to looks lost",
			 (unsigned long long)look->check.scan.unreadable);
}

/*
 * What is live, with the answers of the last look if there was one, which is used up. @r must
 * outlive @l.
 */
static void find_leaks(struct session *s, const struct report *r, uint64_t time_ns, struct leaks *l)
{
	const struct options *o = s->run->options;

	if (s->look)
		time_ns = s->look->time_ns;
	leaks_init(l, r, profile_block_clock(s->profile, time_ns),
		   o->leaks > 0 ? (uint32_t)(o->leaks * 1000) : 0);
	if (s->look) {
		announce_look(s);
		leakcheck_run(&s->look->check);
		add_checked(l, &s->look->check);
	} else {
		leaks_add_all(l);
	}
	leaks_sort(l);
	growth_forget(s);
}

static void report_leaks(struct session *s, uint64_t time_ns)
{
	const struct report r = session_report(s);
	struct leaks l;

	if (s->run->options->leak_check && !s->look)
		log_warn("process %u ended without a last look: no leak check", s->pid);
	find_leaks(s, &r, time_ns, &l);
	s->run->definite_bytes += l.sum[LEAK_DEFINITE].bytes;
	put_leaks(s, &l);
	leaks_deinit(&l);
}

/* -- folded stacks and flame graphs -- */

static const char *const view_titles[] = {
	[VIEW_LIVE] = "bytes not freed",
	[VIEW_PEAK] = "bytes at the peak",
	[VIEW_EXIT] = "bytes in use at the end",
	[VIEW_TOTAL] = "bytes allocated",
	[VIEW_COUNT] = "allocations",
};

static struct path_tree *make_paths(struct source *src)
{
	struct session *s = src->session;
	static const uint8_t quantities[] = {
		[VIEW_LIVE] = PATHS_LIVE, [VIEW_PEAK] = PATHS_PEAK, [VIEW_EXIT] = PATHS_LIVE,
		[VIEW_TOTAL] = PATHS_TOTAL, [VIEW_COUNT] = PATHS_COUNT,
	};
	struct report r;
	struct path_tree *t = path_tree_new();

	source_fill_report(src, &r);
	r.filter = s->run->flame_filter;
	if (profile_paths_add(t, &r, (enum profile_quantity)quantities[s->run->options->view]) != 0)
		log_warn("process %u never allocated: there is no peak to draw", s->pid);
	path_tree_sum(t);
	return t;
}

static void write_folded(FILE *file, const struct path_tree *t, const struct source *src)
{
	(void)src;
	folded_write(file, t, false);
}

static void write_flame(FILE *file, const struct path_tree *t, const struct source *src)
{
	const struct session *s = src->session;
	enum view view = s->run->options->view;
	_cleanup_free_ char *title =
		xasprintf("%s: %s", source_info[src->kind].title, view_titles[view]);
	_cleanup_free_ char *subtitle = xasprintf("process %u, %s", s->pid, s->command);
	const struct flame_options options = {
		.title = title,
		.subtitle = subtitle,
		.unit = view != VIEW_COUNT	    ? "bytes" :
			src->kind == SOURCE_FAULTS ? "pages" :
						     "count",
		.width = FLAME_WIDTH_DEFAULT,
		.min_frame = FLAME_MIN_FRAME,
	};

	flame_write(file, t, &options);
}

typedef void paths_writer(FILE *file, const struct path_tree *t, const struct source *src);

/* One file for each source; with a suffix when there are several. */
static void put_paths(struct source *src, const char *option, const char *pattern,
		      const struct path_tree *t, paths_writer *write)
{
	_cleanup_free_ char *base = NULL, *path = NULL;
	struct session *s = src->session;
	struct outfile out;
	int rc = session_file_name(s, option, pattern, &base);
	uint32_t trace = s->run->options->trace;
	bool is_one = (trace & (trace - 1)) == 0 || strcmp(pattern, "-") == 0;

	if (rc == 0) {
		size_t stem = strlen(base);
		if (stem > 4 && strcmp(base + stem - 4, ".svg") == 0)
			stem -= 4; /* a browser goes by the end of the name */
		path = xasprintf("%.*s%s%s%s", (int)stem, base, is_one ? "" : ".",
				 is_one ? "" : source_info[src->kind].name, base + stem);
		rc = outfile_open(path, &out);
		if (rc == 0) {
			write(out.file, t, src);
			rc = outfile_commit(&out);
		}
		if (rc != 0)
			log_error("cannot write %s: %s", path, strerror(-rc));
		else
			log_info("  written to   %s", path);
	}
	s->run->files_failed += rc != 0;
}

static void report_paths(struct source *src)
{
	const struct options *o = src->session->run->options;
	struct path_tree *t = make_paths(src);

	if (o->folded_file)
		put_paths(src, "--folded", o->folded_file, t, write_folded);
	if (o->flame_file)
		put_paths(src, "--flame", o->flame_file, t, write_flame);
	path_tree_free(t);
}

void growth_finish(struct session *s, uint64_t time_ns)
{
	const struct options *o = s->run->options;

	for (int k = 0; k < SOURCE_COUNT && (o->folded_file || o->flame_file); k++) {
		if (s->source[k].is_traced)
			report_paths(&s->source[k]);
	}

	if (o->leaks >= 0 || o->leak_check)
		report_leaks(s, time_ns);
}

/* -- on demand -- */

void growth_want_report(void)
{
	report_wanted = 1;
}

static void on_report_signal(int sig)
{
	(void)sig;
	growth_want_report();
	target_wake();
}

void growth_catch_signals(const struct options *o)
{
	struct sigaction sa = {.sa_handler = on_report_signal};

	if (o->leaks < 0 && !o->leak_check)
		return;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGUSR1, &sa, NULL);
}

struct sessions {
	VEC(struct session *) list;
};

static void look_and_note(void *ctx, struct space *space)
{
	struct sessions *all = ctx;
	struct session *s = space->user;

	if (s->run->options->leak_check)
		look_at(s);
	*vec_add(&all->list) = s;
}

bool growth_poll(struct run *run)
{
	struct sessions all = {0};

	if (!run->target)
		return false; /* nobody is traced */
	if (top_poll(run))
		return true;
	if (!report_wanted)
		return false;
	report_wanted = 0;
	if (run->options->leaks < 0 && !run->options->leak_check)
		return false;
	uint64_t before = run->definite_bytes;

	target_inspect(run->target, look_and_note, &all);
	for (size_t i = 0; i < all.list.count; i++)
		report_leaks(all.list.data[i], target_clock());
	run->definite_bytes = before; /* the end decides about the exit status */
	vec_deinit(&all.list);
	return false;
}

/* -- for one process that somebody asks about -- */

struct question {
	struct session *session;
	bool is_there;
};

static void look_at_asked(void *ctx, struct space *space)
{
	struct question *q = ctx;

	if (space->user != q->session)
		return;
	q->is_there = true;
	if (q->session->run->options->leak_check)
		look_at(q->session);
}

int growth_write_leaks(struct session *s, const char *path, FILE *file)
{
	struct run *run = s->run;
	struct question q = {.session = s};
	struct leaks l;

	if (!growth_needs_times(run->options))
		return -ENOTSUP;
	if (!run->target)
		return -ESRCH;
	target_inspect(run->target, look_at_asked, &q);
	if (!q.is_there)
		return -ESRCH; /* it ended just now */
	const struct report r = session_report(s);
	find_leaks(s, &r, target_clock(), &l);
	int rc = path ? write_leaks(s, &l, path) : 0;
	if (!path)
		print_leaks(s, &l, file);
	leaks_deinit(&l);
	return rc;
}
