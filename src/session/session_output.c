/*
 * Writes the contents of a session's files. Each is complete or missing (outfile); its name is
 * expanded for the process when it is written.
 */
#include "session/session_output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "output/flame.h"
#include "output/html_page.h"
#include "output/massif.h"
#include "output/outfile.h"
#include "output/path_tree.h"
#include "output/report_tree.h"
#include "recording/recording_format.h"
#include "recording/recording_json.h"
#include "recording/recording_site.h"
#include "session/session.h"

/* -- massif files -- */

static int put_report(FILE *file, const void *ctx)
{
	return massif_write(file, ctx, NULL);
}

int session_output_massif(struct session *s, const char *path)
{
	struct report r = session_report(s);

	return outfile_put(path, put_report, &r);
}

int session_output_finish_massif(struct session *s, enum memory_source_kind kind,
				 const struct report *r, const char **path_out)
{
	_cleanup_free_ char *end =
		kind == SOURCE_HEAP ? NULL : xasprintf(".%s", memory_source_info[kind].name);

	return out_write(s, OUT_MASSIF, kind,
			 &(struct out_content){.put = put_report, .ctx = r, .end = end}, path_out);
}

void session_output_so_far(struct session *s, char *message, size_t size)
{
	_cleanup_free_ char *path = NULL;
	struct profile *copy = profile_clone(s->heap.profile);
	struct report r = session_report(s);
	unsigned number = ++run_process(s->run, s->process.pid)->numbers;
	int rc = out_numbered_path(s, OUT_MASSIF, SOURCE_HEAP, number, &path);

	if (rc == 0) {
		profile_finish(copy, clock_now_ns());
		r.profile = copy; /* its frames have the same numbers as the original's */
		rc = outfile_put(path, put_report, &r);
	}
	profile_free(copy);
	if (rc == 0)
		snprintf(message, size, "written to %s", path);
	else
		snprintf(message, size, "cannot write: %s", strerror(-rc));
}

void session_output_snapshots(struct session *s, unsigned number)
{
	for (enum memory_source_kind k = 0; k < SOURCE_COUNT; k++) {
		_cleanup_free_ char *path = NULL;
		struct report r;

		if (!s->source[k].is_traced || !options_write_massif(s->run->options) ||
		    out_numbered_path(s, OUT_MASSIF, k, number, &path) != 0)
			continue;
		memory_source_fill_report(&s->source[k], &r);
		int rc = outfile_put(path, put_report, &r);

		if (rc == 0)
			log_info("all snapshots written to %s", path);
		else
			log_warn("cannot write %s: %s", path, strerror(-rc));
	}
}

struct moment {
	struct report report;
	struct snapshot snapshot;
};

static int put_moment(FILE *file, const void *ctx)
{
	const struct moment *m = ctx;

	return massif_write(file, &m->report, &m->snapshot);
}

int session_output_now(struct session *s, const char *path, enum snapshot_kind kind,
		       uint64_t now_ns)
{
	struct moment m = {.report = session_report(s)};

	profile_current(s->heap.profile, now_ns, &m.snapshot);
	m.snapshot.kind = kind;
	return outfile_put(path, put_moment, &m);
}

struct xtree {
	struct session *session;
	struct xtree_options options;
};

static int put_xtree(FILE *file, const void *ctx)
{
	const struct xtree *x = ctx;
	struct session *s = x->session;
	struct report r = session_report(s);
	struct flows *f = s->heap.flows ? flows_rounded(s->heap.flows) :
					  flows_from_profile(s->heap.profile);
	r.filter = s->run->whole_filter;
	r.threshold = 0;
	int rc = xtree_write(file, &r, f, &x->options);
	flows_free(f);
	return rc;
}

static struct xtree make_xtree(struct session *s, const char *path, uint64_t now_ns)
{
	return (struct xtree){
		.session = s,
		.options.is_massif = xtree_is_massif_name(path),
		.options.time_ms = (now_ns - s->process.start_ns) / 1000000,
		.options.has_whole_names = !s->run->options->files.xtree_compress_strings,
	};
}

int session_output_xtree(struct session *s, const char *path, uint64_t now_ns)
{
	const struct xtree x = make_xtree(s, path, now_ns);

	return outfile_put(path, put_xtree, &x);
}

void session_output_finish_xtree(struct session *s)
{
	const char *path;

	if (!s->heap.flows || out_name(s, OUT_XTREE, SOURCE_HEAP, &path) != 0)
		return;
	const struct xtree x = make_xtree(s, path, s->process.end_ns);
	const struct out_content content = {.put = put_xtree, .ctx = &x,
					    .end = x.options.is_massif ? ".ms" : ".kcg"};

	out_write(s, OUT_XTREE, SOURCE_HEAP, &content, NULL);
}

/* Call paths with their bytes, as folded stacks (--folded) and flame graphs (--flame). */

/* Titles of flame graphs. Touched pages are never released. */
static const char *const view_titles[SOURCE_COUNT][SHOW_COLD + 1] = {
	[SOURCE_HEAP] = {
		[SHOW_LIVE] = "bytes not freed",
		[SHOW_PEAK] = "bytes at the peak",
		[SHOW_EXIT] = "bytes in use at the end",
		[SHOW_TOTAL] = "bytes allocated",
		[SHOW_CALLS] = "allocations",
		[SHOW_COLD] = "bytes not touched",
	},
	[SOURCE_BRK] = {
		[SHOW_LIVE] = "bytes not given back",
		[SHOW_PEAK] = "bytes at the peak",
		[SHOW_EXIT] = "bytes there at the end",
		[SHOW_TOTAL] = "bytes added",
		[SHOW_CALLS] = "calls that added",
	},
	[SOURCE_MMAP] = {
		[SHOW_LIVE] = "bytes not unmapped",
		[SHOW_PEAK] = "bytes mapped at the peak",
		[SHOW_EXIT] = "bytes mapped at the end",
		[SHOW_TOTAL] = "bytes ever mapped",
		[SHOW_CALLS] = "mappings",
	},
	[SOURCE_FAULTS] = {
		[SHOW_LIVE] = "bytes touched",
		[SHOW_PEAK] = "bytes touched",
		[SHOW_EXIT] = "bytes touched",
		[SHOW_TOTAL] = "bytes touched",
		[SHOW_CALLS] = "pages touched",
	},
};

static uint64_t cold_bytes_at(const void *ctx, uint32_t leaf)
{
	const struct session_cold *c = ctx;

	return leaf < c->sums.count ? c->sums.data[leaf].untouched.cold : 0;
}

static struct path_tree *make_paths(struct source *src)
{
	struct session *s = src->session;
	static const uint8_t quantities[] = {
		[SHOW_LIVE] = PATHS_LIVE, [SHOW_PEAK] = PATHS_PEAK, [SHOW_EXIT] = PATHS_LIVE,
		[SHOW_TOTAL] = PATHS_TOTAL, [SHOW_CALLS] = PATHS_COUNT,
	};
	struct report r;
	struct path_tree *t = path_tree_new();

	memory_source_fill_report(src, &r);
	r.filter = s->run->flame_filter;
	if (s->run->options->files.view == SHOW_COLD) {
		profile_paths_add_values(t, &r, cold_bytes_at, &s->end.cold);
		path_tree_sum(t);
		return t;
	}
	int rc = profile_paths_add(
		t, &r, (enum profile_quantity)quantities[s->run->options->files.view]);

	if (rc != 0 && !s->end.is_draft)
		log_warn("process %u never allocated: there is no peak to draw", s->process.pid);
	path_tree_sum(t);
	return t;
}

struct paths {
	struct source *source;
	const struct path_tree *tree;
};

static int put_folded(FILE *file, const void *ctx)
{
	const struct paths *p = ctx;

	path_tree_write_folded(file, p->tree, false);
	return 0;
}

/* The unit of --view=count, by source. */
static const char *const counted[] = {
	[SOURCE_HEAP] = "allocations",
	[SOURCE_BRK] = "calls",
	[SOURCE_MMAP] = "mappings",
	[SOURCE_FAULTS] = "pages",
};

static int put_flame(FILE *file, const void *ctx)
{
	const struct paths *p = ctx;
	const struct source *src = p->source;
	const struct session *s = src->session;
	const struct options *o = s->run->options;
	enum shown_paths view = o->files.view;
	bool is_pages = src->kind == SOURCE_HEAP && o->profile.pages_as_heap;
	enum memory_source_kind shown = is_pages ? SOURCE_MMAP : src->kind;
	_cleanup_free_ char *title =
		xasprintf("%s: %s", memory_source_info[shown].title, view_titles[shown][view]);
	uint64_t interval = profile_options(src->profile)->sample_interval;
	_cleanup_free_ char *subtitle =
		xasprintf("process %u, %s%s", s->process.pid, s->process.command,
			  interval ? " (estimates)" : "");
	const struct flame_options options = {
		.title = title,
		.subtitle = subtitle,
		.unit = view == SHOW_CALLS ? counted[shown] : "bytes",
		.width = FLAME_WIDTH_DEFAULT,
		.min_frame = FLAME_MIN_FRAME,
	};

	flame_write(file, p->tree, &options);
	return 0;
}

/* Whether there is anything to draw of --view=cold, which is about blocks; a message if not. */
static bool knows_cold(const struct source *src)
{
	const struct session *s = src->session;

	if (src->kind != SOURCE_HEAP)
		return false;
	if (s->end.cold.seconds <= 0 && !s->end.is_draft)
		log_warn("process %u: --view=cold has nothing to show: what was not touched is not "
			 "known", s->process.pid);
	return s->end.cold.seconds > 0;
}

void path_report_write(struct source *src)
{
	struct session *s = src->session;
	const struct options *o = s->run->options;

	if ((!o->files.folded && !o->files.flame) ||
	    (o->files.view == SHOW_COLD && !knows_cold(src)))
		return;
	struct path_tree *t = make_paths(src);
	const struct paths p = {src, t};

	if (o->files.folded)
		out_write(s, OUT_FOLDED, src->kind,
			  &(struct out_content){.put = put_folded, .ctx = &p}, NULL);
	if (o->files.flame)
		out_write(s, OUT_FLAME, src->kind,
			  &(struct out_content){.put = put_flame, .ctx = &p, .end = ".svg"}, NULL);
	path_tree_free(t);
}

struct own_page {
	const struct recording *recording;
	const char *sources; /* members of its JSON */
};

static int put_page(FILE *file, const void *ctx)
{
	const struct own_page *p = ctx;
	_cleanup_free_ char *json = NULL;
	size_t size;
	FILE *memory = open_memstream(&json, &size);

	CHECK(memory);
	recording_json_write(memory, p->recording, p->sources);
	CHECK(!fclose(memory));
	html_page_write(file, json, size, false);
	return 0;
}

void session_output_page(struct session *s, struct recording *r)
{
	if (one_page_add(s, r))
		return;
	/* readers of its file get it in this form: so ptmem-report makes the same page */
	const char *why = recording_check(r, r->interval);

	if (why) {
		log_error("cannot write the page of --html: %s", why);
		s->run->files_failed++;
		return;
	}
	recording_read_my_code(r);
	const struct recording *const one[] = {r};
	/* what is missing is said once */
	_cleanup_free_ char *sources =
		one_page_sources(s->run->options, one, s->end.is_draft ? 0 : 1);
	const struct own_page page = {r, sources};

	out_write(s, OUT_HTML, SOURCE_HEAP,
		  &(struct out_content){.put = put_page, .ctx = &page, .end = ".html"}, NULL);
}
