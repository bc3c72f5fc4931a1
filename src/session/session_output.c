/*
 * Writes the contents of a session's files. Each is complete or missing (outfile); its name is
 * expanded for the process when it is written.
 */
#include "session/session_output.h"

#include <errno.h>
#include <fcntl.h>
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
#include "session/result_file.h"
#include "session/session.h"
#include "session/session_files.h"

/* -- massif files -- */

static int close_file(struct outfile *out, int rc)
{
	if (rc == 0)
		return outfile_commit(out);
	outfile_abort(out);
	return rc;
}

static int put_report(FILE *file, const void *ctx)
{
	return massif_write(file, ctx);
}

static int write_report(const char *path, const struct report *r)
{
	struct outfile out;
	int rc = outfile_open(path, &out);
	return rc != 0 ? rc : close_file(&out, massif_write(out.file, r));
}

int session_output_massif(struct session *s, const char *path)
{
	struct report r = session_report(s);
	return write_report(path, &r);
}

/*
 * An earlier run in the same directory may have attached to the same process: its profile is
 * renamed with the first free number.
 */
static void keep_earlier(const struct session *s, const char *path)
{
	const struct options *o = s->run->options;
	if (!options_attach(o) || !file_name_has(o->files.massif, "p") ||
	    file_name_is_shared(path))
		return;
	for (struct file_name_parts parts = {.number = 1}; parts.number < 10000; parts.number++) {
		_cleanup_free_ char *moved = file_name_insert(path, &parts);
		if (renameat2(AT_FDCWD, path, AT_FDCWD, moved, RENAME_NOREPLACE) == 0)
			log_info("%s, of an earlier ptmem, is now %s", path, moved);
		else if (errno == EEXIST)
			continue;
		return;
	}
}

static int massif_name(struct session *s, const char *source, const char **path_out)
{
	const struct session_file name = {.option = "--massif-out-file",
					  .pattern = s->run->options->files.massif,
					  .source = source};
	bool is_new = final_file_is_new(s, &name);
	int rc = final_file_name(s, &name, path_out);

	if (rc == 0 && is_new)
		keep_earlier(s, *path_out);
	return rc;
}

static void count_file(const struct session *s, int rc)
{
	s->run->files_failed += rc != 0;
	s->run->files_written += rc == 0 && !s->end.is_draft;
}

int session_output_finish_massif(struct session *s, const struct report *r, const char *source,
				 const char **path_out)
{
	int rc = massif_name(s, source, path_out);

	if (rc == 0) {
		_cleanup_free_ char *plain =
			xasprintf("massif.out.%u%s%s", s->process.pid, source ? "." : "",
				  source ? source : "");
		const struct result result = {"profile", plain, put_report, r};
		rc = final_file_write(s, &result, *path_out);
	}
	count_file(s, rc);
	return rc;
}

void session_output_so_far(struct session *s, char *message, size_t size)
{
	_cleanup_free_ char *path = NULL;
	struct profile *copy = profile_clone(s->heap.profile);
	struct report r = session_report(s);
	unsigned number = ++run_process(s->run, s->process.pid)->numbers;
	int rc = session_files_snapshot_name(s, NULL, number, &path);

	if (rc == 0) {
		profile_finish(copy, clock_now_ns());
		r.profile = copy; /* its frames have the same numbers as the original's */
		rc = write_report(path, &r);
	}
	profile_free(copy);
	if (rc == 0)
		snprintf(message, size, "written to %s", path);
	else
		snprintf(message, size, "cannot write: %s", strerror(-rc));
}

static void write_snapshots_of(struct source *src, unsigned number)
{
	_cleanup_free_ char *path = NULL;
	struct report r;

	const char *name = memory_source_in_massif(src->kind);

	if (session_files_snapshot_name(src->session, name, number, &path) != 0)
		return;
	memory_source_fill_report(src, &r);
	int rc = write_report(path, &r);

	if (rc == 0)
		log_info("all snapshots written to %s", path);
	else
		log_warn("cannot write %s: %s", path, strerror(-rc));
}

void session_output_snapshots(struct session *s, unsigned number)
{
	for (int k = 0; k < SOURCE_COUNT; k++) {
		if (s->source[k].is_traced)
			write_snapshots_of(&s->source[k], number);
	}
}

int session_output_now(struct session *s, const char *path, enum snapshot_kind kind,
		       uint64_t now_ns)
{
	struct report r = session_report(s);
	struct snapshot now;
	struct outfile out;
	profile_current(s->heap.profile, now_ns, &now);
	now.kind = kind;
	int rc = outfile_open(path, &out);
	return rc != 0 ? rc : close_file(&out, massif_write_now(out.file, &r, &now));
}

struct xtree {
	struct session *session;
	struct xtree_options options;
};

static struct xtree make_xtree(struct session *s, const char *path, uint64_t now_ns)
{
	return (struct xtree){
		.session = s,
		.options.is_massif = xtree_is_massif_name(path),
		.options.time_ms = (now_ns - s->process.start_ns) / 1000000,
		.options.has_whole_names = !s->run->options->files.xtree_compress_strings,
	};
}

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

int session_output_xtree(struct session *s, const char *path, uint64_t now_ns)
{
	const struct xtree x = make_xtree(s, path, now_ns);
	struct outfile out;
	int rc = outfile_open(path, &out);
	return rc != 0 ? rc : close_file(&out, put_xtree(out.file, &x));
}

void session_output_finish_xtree(struct session *s, uint64_t now_ns)
{
	const struct session_file name = {.option = "--xtree-memory-file",
					  .pattern = s->run->options->files.xtree};
	const char *path;
	if (!s->heap.flows)
		return;
	int rc = final_file_name(s, &name, &path);
	if (rc == 0) {
		const struct xtree x = make_xtree(s, path, now_ns);
		const char *end = x.options.is_massif ? "ms" : "kcg";
		_cleanup_free_ char *plain = xasprintf("xtmemory.%u.%s", s->process.pid, end);
		rc = final_file_write(
			s, &(struct result){"xtree memory report", plain, put_xtree, &x}, path);
		if (rc == 0 && !s->end.is_draft && !session_is_silent(s))
			log_info("xtree memory report: %s",
				 strcmp(path, "-") == 0 ? "standard output" : path);
	}
	count_file(s, rc);
}

/* Call paths with their bytes, as folded stacks (--folded) and flame graphs (--flame). */

/* Titles of flame graphs. Touched pages are never released. */
static const char *const view_titles[SOURCE_COUNT][VIEW_CALLS + 1] = {
	[SOURCE_HEAP] = {
		[VIEW_LIVE] = "bytes not freed",
		[VIEW_PEAK] = "bytes at the peak",
		[VIEW_EXIT] = "bytes in use at the end",
		[VIEW_TOTAL] = "bytes allocated",
		[VIEW_CALLS] = "allocations",
	},
	[SOURCE_BRK] = {
		[VIEW_LIVE] = "bytes not given back",
		[VIEW_PEAK] = "bytes at the peak",
		[VIEW_EXIT] = "bytes there at the end",
		[VIEW_TOTAL] = "bytes added",
		[VIEW_CALLS] = "calls that added",
	},
	[SOURCE_MMAP] = {
		[VIEW_LIVE] = "bytes not unmapped",
		[VIEW_PEAK] = "bytes mapped at the peak",
		[VIEW_EXIT] = "bytes mapped at the end",
		[VIEW_TOTAL] = "bytes ever mapped",
		[VIEW_CALLS] = "mappings",
	},
	[SOURCE_FAULTS] = {
		[VIEW_LIVE] = "bytes touched",
		[VIEW_PEAK] = "bytes touched",
		[VIEW_EXIT] = "bytes touched",
		[VIEW_TOTAL] = "bytes touched",
		[VIEW_CALLS] = "pages touched",
	},
};

static struct path_tree *make_paths(struct source *src)
{
	struct session *s = src->session;
	static const uint8_t quantities[] = {
		[VIEW_LIVE] = PATHS_LIVE, [VIEW_PEAK] = PATHS_PEAK, [VIEW_EXIT] = PATHS_LIVE,
		[VIEW_TOTAL] = PATHS_TOTAL, [VIEW_CALLS] = PATHS_COUNT,
	};
	struct report r;
	struct path_tree *t = path_tree_new();

	memory_source_fill_report(src, &r);
	r.filter = s->run->flame_filter;
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
	enum view view = o->files.view;
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
		.unit = view == VIEW_CALLS ? counted[shown] : "bytes",
		.width = FLAME_WIDTH_DEFAULT,
		.min_frame = FLAME_MIN_FRAME,
	};

	flame_write(file, p->tree, &options);
	return 0;
}

/* One file for each source; its name holds the source when there are several. */
static void put_paths(const struct paths *p, const char *option, const char *pattern,
		      const struct result *result)
{
	struct session *s = p->source->session;
	const struct session_file name = {
		.option = option,
		.pattern = pattern,
		.source =
			memory_source_in_paths(options_sources(s->run->options), p->source->kind)};

	s->run->files_failed += final_file_put(s, &name, result) != 0;
}

void path_report_write(struct source *src)
{
	const struct options *o = src->session->run->options;

	if (!o->files.folded && !o->files.flame)
		return;
	struct path_tree *t = make_paths(src);
	const struct paths p = {src, t};
	_cleanup_free_ char *folded = xasprintf("folded.%u", src->session->process.pid),
			    *flame = xasprintf("flame.%u.svg", src->session->process.pid);

	if (o->files.folded)
		put_paths(&p, "--folded", o->files.folded,
			  &(struct result){"folded stacks", folded, put_folded, &p});
	if (o->files.flame)
		put_paths(&p, "--flame", o->files.flame,
			  &(struct result){"flame graph", flame, put_flame, &p});
	path_tree_free(t);
}

/*
 * Converts @r to the form in which readers of its file get it: intervals of one length, each block
 * once (recording_format.h). So ptmem and ptmem-report make the same page.
 */
static int reread(const struct recording *r, struct recording **out)
{
	_cleanup_free_ char *data = NULL, *why = NULL;
	size_t size;
	FILE *memory = open_memstream(&data, &size);

	CHECK(memory);
	int rc = recording_write(memory, r);

	CHECK(!fclose(memory));
	return rc != 0 ? rc : recording_read(data, size, out, &why);
}

static char *make_json(const struct recording *r, size_t *size_out)
{
	char *json = NULL;
	FILE *memory = open_memstream(&json, size_out);

	CHECK(memory);
	recording_json_write(memory, r, "");
	CHECK(!fclose(memory));
	return json;
}

struct page {
	const char *json;
	size_t size;
};

static int write_page(FILE *file, const void *ctx)
{
	const struct page *page = ctx;

	html_page_write(file, page->json, page->size, false);
	return 0;
}

int html_run_write(struct session *s, const struct recording *unread)
{
	const struct session_file file = {.option = "--html",
					  .pattern = s->run->options->files.html};
	struct recording *r;
	struct page page;
	int rc = reread(unread, &r);

	if (rc != 0) {
		log_error("cannot write the page of --html: %s", strerror(-rc));
		return rc;
	}
	_cleanup_free_ char *json = make_json(r, &page.size);
	_cleanup_free_ char *name = xasprintf("page.%u.html", s->process.pid);
	const struct result result = {"page", name, write_page, &page};

	page.json = json;
	recording_free(r);
	return final_file_put(s, &file, &result);
}
