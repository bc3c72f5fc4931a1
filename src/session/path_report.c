/* Call paths with their bytes, as folded stacks (--folded) and flame graphs (--flame). */
#include "session/path_report.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "output/flame.h"
#include "output/folded.h"
#include "output/profile_paths.h"
#include "session/final_file.h"
#include "session/rescue.h"
#include "session/session.h"
#include "session/session_files.h"

/* Titles of flame graphs. Touched pages are never released. */
static const char *const view_titles[SOURCE_COUNT][VIEW_COUNT + 1] = {
	[SOURCE_HEAP] = {
		[VIEW_LIVE] = "bytes not freed",
		[VIEW_PEAK] = "bytes at the peak",
		[VIEW_EXIT] = "bytes in use at the end",
		[VIEW_TOTAL] = "bytes allocated",
		[VIEW_COUNT] = "allocations",
	},
	[SOURCE_BRK] = {
		[VIEW_LIVE] = "bytes not given back",
		[VIEW_PEAK] = "bytes at the peak",
		[VIEW_EXIT] = "bytes there at the end",
		[VIEW_TOTAL] = "bytes added",
		[VIEW_COUNT] = "calls that added",
	},
	[SOURCE_MMAP] = {
		[VIEW_LIVE] = "bytes not unmapped",
		[VIEW_PEAK] = "bytes mapped at the peak",
		[VIEW_EXIT] = "bytes mapped at the end",
		[VIEW_TOTAL] = "bytes ever mapped",
		[VIEW_COUNT] = "mappings",
	},
	[SOURCE_FAULTS] = {
		[VIEW_LIVE] = "bytes touched",
		[VIEW_PEAK] = "bytes touched",
		[VIEW_EXIT] = "bytes touched",
		[VIEW_TOTAL] = "bytes touched",
		[VIEW_COUNT] = "pages touched",
	},
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

	folded_write(file, p->tree, false);
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
	enum source_kind shown = is_pages ? SOURCE_MMAP : src->kind;
	_cleanup_free_ char *title =
		xasprintf("%s: %s", source_info[shown].title, view_titles[shown][view]);
	uint64_t interval = profile_options(src->profile)->sample_interval;
	_cleanup_free_ char *subtitle =
		xasprintf("process %u, %s%s", s->process.pid, s->process.command,
			  interval ? " (estimates)" : "");
	const struct flame_options options = {
		.title = title,
		.subtitle = subtitle,
		.unit = view == VIEW_COUNT ? counted[shown] : "bytes",
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
		.option = option, .pattern = pattern,
		.source = source_in_paths(options_sources(s->run->options), p->source->kind)};

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
