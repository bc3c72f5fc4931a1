/* Reads, judges and writes inspections, however their memory is read. */
#include "session/inspect/inspection.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "output/graph/graph_page.h"
#include "output/inspect_report.h"
#include "output/outfile.h"
#include "recording/graph_file.h"
#include "recording/recording_pprof.h"
#include "session/inspect/inspect_stopped.h"
#include "session/out.h"
#include "tracee/state/module.h"

#define PPROF_END ".pb.gz"
#define PAUSE_NS 1000000 /* between two looks, for the program to go on */

/* Its name says so, as for other files that are read by ptmem-report. */
static bool is_graph_file(const char *path)
{
	return !text_ends_in(path, ".json") && !text_ends_in(path, ".txt") &&
	       !text_ends_in(path, ".md") && strcmp(path, "-") != 0;
}

enum output inspection_output(const struct options *o)
{
	return o->graph.what ? OUT_GRAPH : OUT_INSPECT;
}

const char *inspection_path(const struct options *o)
{
	return o->graph.what ? o->graph.out : o->inspect.out;
}

void inspection_init(struct inspection *i, const struct options *o, const char *path)
{
	*i = (struct inspection){
		.wants_blocks = path && !o->graph.what && text_ends_in(path, ".csv"),
		.wants_types = true,
		.wants_pprof = path && !o->graph.what && text_ends_in(path, PPROF_END),
		.wants_holders = o->inspect.pointers || o->graph.what,
		.wants_graph = o->graph.what,
		.containers = o->graph.containers,
		.graph_wish = {.depth = o->graph.depth, .holds = o->graph.who_holds,
			       /* neither in files nor in logs of profiled programs */
			       .shows_strings = o->graph.what && !path &&
						(!o->command || *o->graph.what)},
		.cold = o->inspect.cold,
		.keeps_graph = o->graph.what && options_record(o),
		.wants_graph_file = o->graph.what && path && is_graph_file(path),
		.is_brief = o->is_brief};
	options_command(o, &i->brief.command);
}

struct inspect_wish inspection_wish(struct inspection *i)
{
	return (struct inspect_wish){.block = i->wants_blocks ? inspect_blocks_add : NULL,
				     .python_block = i->wants_blocks && i->wants_types ?
							     inspect_blocks_add_python :
							     NULL,
				     .ctx = &i->blocks,
				     .paths = i->pins.paths.pages ? &i->pins.paths : NULL,
				     .touched = i->cold > 0 ? &i->touched : NULL,
				     .wants_types = i->wants_types,
				     .wants_holders = i->wants_holders,
				     .wants_graph = i->wants_graph,
				     .containers = i->containers,
				     .drops_places = !i->graph_wish.holds && !i->wants_graph_file &&
						     !i->keeps_graph,
				     .copy = &i->copy};
}

static void free_frames(struct inspect_pin *p)
{
	for (size_t k = 0; k < p->depth; k++)
		free(p->frame[k]);
}

static void path_pins_deinit(struct path_pins *p)
{
	vec_release(&p->list, e, free_frames(e));
	vec_release(&p->cold, e, free_frames(e));
	free(p->paths.pages);
	p->paths.pages = NULL;
}

int inspection_read(struct inspection *i, inspection_read_fn *read, void *ctx)
{
	for (uint32_t looks = 1;; looks++) {
		i->rc = -ESRCH;
		int rc = read(i, ctx);

		if (rc != 0 && i->rc == 0)
			inspect_stopped_deinit(&i->look);
		i->rc = rc ? rc : i->rc;
		if (i->rc == 0)
			inspect_stopped_classify(&i->look);
		memory_copy_deinit(&i->copy);
		if (i->rc != 0 || looks == PYTHON_LOOKS ||
		    (!python_report_is_torn(&i->look.report.python) && !i->look.go.heap.is_torn))
			return i->rc;
		inspect_stopped_deinit(&i->look);
		path_pins_deinit(&i->pins);
		i->blocks.list.count = 0;
		nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
	}
}

void inspection_read_huge(struct inspection *i, pid_t pid, uint64_t most)
{
	if (!i->wants_graph && !i->wants_pprof && !i->wants_blocks)
		huge_pages_read(pid, most, &i->huge);
}

void inspection_deinit(struct inspection *i)
{
	if (i->rc == 0)
		inspect_stopped_deinit(&i->look);
	memory_copy_deinit(&i->copy);
	vec_deinit(&i->blocks.list);
	touched_pages_deinit(&i->touched);
	path_pins_deinit(&i->pins);
	inspect_go_deinit(&i->go);
	free(i->why);
}

/* -- whether it can be reported -- */

static bool is_newer(unsigned major, unsigned minor)
{
	return major == 2 && minor > GLIBC_MINOR_MAX;
}

/* Whether all structures of a glibc's malloc are as in a known version, block by block. */
static bool is_verified(const struct inspect_report *r)
{
	for (size_t i = 0; i < r->heaps.arenas.count; i++)
		if (r->heaps.arenas.data[i].missing_bytes > 0)
			return false;
	return inspect_is_consistent(r) && r->params.is_known && r->is_mmapped_complete &&
	       (r->caches > 0 || r->params.tcache_count == 0);
}

/* Its file's name tells versions and builds apart: "libmimalloc-secure.so.2.1". */
static char *refuse_other(uint32_t pid, const struct inspect_stopped *look)
{
	const struct module *m = look->other_object;
	const struct allocator_kind *kind = allocator_kind_named(look->other);

	return xasprintf("process %u: its malloc is %s's (%s), %s", pid, look->other,
			 m ? text_base_name(m->path) : "unknown file",
			 kind && kind->find ?
			 "which has not been used, or is of a version or a build that --inspect "
			 "does not know" : "which --inspect does not know");
}

/* Why the malloc of process @pid cannot be read; NULL if it can. The caller frees it. */
static char *find_refusal(uint32_t pid, const struct inspect_stopped *look)
{
	unsigned major = look->glibc_major, minor = look->glibc_minor;

	if (!inspect_stopped_knows_other(look))
		return xasprintf("process %u: its malloc is %s's, version %s, which --inspect does "
				 "not know", pid, look->report.other.name,
				 *look->version ? look->version : "unknown");
	if (look->other && look->report.other.name &&
	    strcmp(look->report.other.name, look->other) == 0)
		return NULL;
	if (look->other)
		return refuse_other(pid, look);
	if (!inspect_stopped_knows_glibc(look))
		return xasprintf("process %u: its malloc is glibc %u.%u's; --inspect knows 2.%u to "
				 "2.%u", pid, major, minor, GLIBC_MINOR_MIN, GLIBC_MINOR_MAX);
	if (is_newer(major, minor) && !is_verified(&look->report))
		return xasprintf("process %u: its malloc is glibc %u.%u's, not all of which is as "
				 "in the versions that --inspect knows, 2.%u to 2.%u", pid, major,
				 minor, GLIBC_MINOR_MIN, GLIBC_MINOR_MAX);
	return NULL;
}

/* Why there is nothing for pprof; NULL if there is. The caller frees it. */
static char *find_no_profile(uint32_t pid, const struct inspect_go *g)
{
	const char *what = !g->is_go	 ? "is no Go program" :
			   g->is_unknown ? "has no symbols, and was built by a Go before 1.19" :
			   !g->rate	 ? "keeps no heap profile (runtime.MemProfileRate is 0)" :
					   NULL;

	return what ? xasprintf("process %u %s: --inspect-out=FILE" PPROF_END " is for the heap "
				"profile that a Go program keeps", pid, what) : NULL;
}

bool inspection_judge(struct inspection *i, uint32_t pid, const char *command)
{
	const struct inspect_stopped *look = &i->look;
	unsigned major = look->glibc_major, minor = look->glibc_minor;

	inspect_go_deinit(&i->go);
	go_report_make(&look->go, &look->modules, &i->go);
	i->why = i->wants_pprof ? find_no_profile(pid, &i->go) : find_refusal(pid, look);
	if (!i->why && i->wants_graph && !look->has_graph)
		i->why = xasprintf("process %u has more blocks or pointers than --graph can number",
				   pid);
	i->title = (struct inspect_title){
		.pid = pid, .command = command, .go = &i->go, .rss = look->rss, .swap = look->swap,
		.hugetlb = look->hugetlb, .huge = i->huge.all,
		.huge_read = i->huge.read, .huge_zeros = i->huge.zeros,
		.cgroup = look->has_cgroup ? &look->cgroup : NULL,
		.glibc_major = major, .glibc_minor = minor,
		.is_newer = is_newer(major, minor) && look->has_arena && !look->other,
		.has_malloc = look->has_arena, .inside = look->inside, .moments = look->moments,
		.touched = i->cold > 0 ? &i->touched : NULL, .touched_seconds = i->cold,
		.stopped_ns = i->stopped_ns};
	if (!i->why && i->wants_graph && i->cold > 0 && !i->look.graph.untouched)
		heap_graph_find_untouched(&i->look.graph, &i->touched);
	return !i->why;
}

/* -- its file -- */

struct inspection_file {
	const char *path;
	struct inspection *inspection;
};

/* The text's warnings have no place in a list of blocks. */
static void warn_of_doubts(const char *path, const struct inspection *i)
{
	_cleanup_free_ char *text = NULL, *prefix = xasprintf("%s: ", path);
	size_t size;
	FILE *file = i->wants_blocks ? open_memstream(&text, &size) : NULL;

	if (!file)
		return;
	inspect_report_print_doubts(file, &i->title, &i->look.report);
	if (fclose(file) == 0)
		log_print_lines(LOG_WARN, prefix, text);
}

static struct graph_title graph_title(const struct inspection *i)
{
	return (struct graph_title){
		.pid = i->title.pid, .command = i->title.command,
		.core = i->title.core ? i->title.core->path : NULL, .stopped_ns = i->stopped_ns,
		.touched_seconds = i->look.graph.untouched ? i->cold : 0};
}

static void print_brief(struct inspection *i, FILE *file, enum brief_form form)
{
	const struct graph_title t = graph_title(i);

	if (i->wants_graph)
		graph_report_brief(&i->brief, &t, &i->look.graph, &i->graph_wish);
	else
		inspect_report_brief(&i->brief, &i->title, &i->look.report);
	brief_print(file, &i->brief, form);
	brief_deinit(&i->brief);
}

void inspection_print(struct inspection *i, FILE *file)
{
	const struct graph_title t = graph_title(i);

	if (i->is_brief) {
		print_brief(i, file, BRIEF_TEXT);
		return;
	}
	if (!i->wants_graph) {
		inspect_report_print(file, &i->title, &i->look.report);
		return;
	}
	graph_report_print(file, &t, &i->look.graph, &i->graph_wish);
	inspect_report_print_doubts(file, &i->title, &i->look.report);
}

static int put_found(FILE *file, const void *ctx)
{
	const struct inspection_file *f = ctx;
	struct inspection *i = f->inspection;

	const struct graph_title t = graph_title(i);

	if (i->wants_graph_file)
		return graph_file_write(file, &i->look.graph, &(struct graph_source){
			.command = t.command, .pid = t.pid, .stopped_ns = t.stopped_ns});
	if (i->wants_graph && text_ends_in(f->path, ".json"))
		graph_report_write_json(file, &t, &i->look.graph, &i->graph_wish);
	else if (text_ends_in(f->path, ".json"))
		inspect_report_write_json(file, &i->title, &i->look.report);
	else if (i->wants_pprof)
		recording_pprof_write_go(file, &i->go);
	else if (i->is_brief && text_ends_in(f->path, ".md"))
		print_brief(i, file, BRIEF_MARKDOWN);
	else if (i->wants_blocks)
		inspect_blocks_write(file, &i->blocks, &i->look.report.types,
				     i->title.touched);
	else
		inspection_print(i, file);
	return 0;
}

int inspection_write(struct inspection *i, const char *path)
{
	int rc = outfile_put(path, put_found, &(struct inspection_file){path, i});

	if (rc == 0)
		warn_of_doubts(path, i);
	return rc;
}

int inspection_save(struct inspection *i, const char *path)
{
	const struct inspection_file f = {path, i};
	const char *end = text_ends_in(path, ".json") ? ".json" :
			  i->wants_pprof ? PPROF_END : i->wants_blocks ? ".csv" : "";
	int rc = out_put(i->wants_graph ? OUT_GRAPH : OUT_INSPECT, i->title.pid, path,
			 &(struct out_content){.put = put_found, .ctx = &f, .end = end});

	warn_of_doubts(path, i);
	return rc;
}

static int put_page(FILE *file, const void *ctx)
{
	const struct inspection *i = ctx;
	const struct graph_title t = graph_title(i);

	graph_page_write(file, &t, &i->look.graph);
	return 0;
}

int inspection_save_page(const struct inspection *i, const char *path)
{
	return out_put(OUT_HTML, i->title.pid, path,
		       &(struct out_content){.put = put_page, .ctx = i, .end = ".html"});
}
