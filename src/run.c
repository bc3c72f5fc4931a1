/*
 * What all sessions of a run share, and the names of the files that it writes: they
 * are expanded when a file is written, for the process that it is about.
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "output/pattern.h"
#include "output/writer.h"
#include "target/module.h"
#include "usage.h"

#define MAX_DEPTH 200 /* of a filter */

static struct filter *make_filter(const struct options *options, uint32_t depth)
{
	struct filter *f = filter_new(depth, options->show_below_main);
	if (options->pages_as_heap)
		filter_keep_first(f);
	for (size_t i = 0; i < options->alloc_fn.count; i++)
		filter_add_alloc_fn(f, options->alloc_fn.data[i]);
	for (size_t i = 0; i < options->ignore_fn.count; i++)
		filter_add_ignore_fn(f, options->ignore_fn.data[i]);
	return f;
}

void run_init(struct run *run, struct options *options)
{
	*run = (struct run){.options = options};
	run->directory = getcwd(NULL, 0);
	if (!run->directory)
		run->directory = xstrdup(".");
	_cleanup_free_ char *debug_dirs = NULL;
	if (options->extra_debuginfo_path)
		debug_dirs = xasprintf("%s:/usr/lib/debug", options->extra_debuginfo_path);
	struct symbols_options symbols_options = {
		.no_demangle = !options->demangle, .no_inline = !options->read_inline_info,
		.show_below_main = options->show_below_main, .debug_dirs = debug_dirs,
	};
	run->symbols = symbols_new(&symbols_options);
	run->filter = make_filter(options, options->depth);
	run->flame_filter = make_filter(options, MAX_DEPTH);
	run->whole_filter = filter_new_whole(options->depth, options->show_below_main);
}

void run_deinit(struct run *run)
{
	symbols_free(run->symbols);
	filter_free(run->filter);
	filter_free(run->whole_filter);
	filter_free(run->flame_filter);
	for (size_t i = 0; i < run->modules.count; i++) {
		if (run->modules.data[i])
			module_release(run->modules.data[i]);
	}
	vec_deinit(&run->modules);
	vec_deinit(&run->sessions);
	vec_deinit(&run->images);
	free(run->directory);
	free(run->command);
}

void run_add_module(struct run *run, struct module *m)
{
	while (run->modules.count <= m->id)
		*vec_add(&run->modules) = NULL;
	if (!run->modules.data[m->id])
		run->modules.data[m->id] = module_hold(m);
}

unsigned *run_images(struct run *run, uint32_t pid)
{
	for (size_t i = 0; i < run->images.count; i++) {
		if (run->images.data[i].pid == pid)
			return &run->images.data[i].count;
	}
	struct image_count *c = vec_add(&run->images);
	*c = (struct image_count){.pid = pid};
	return &c->count;
}

struct module *run_module(const struct run *run, uint32_t id)
{
	return id < run->modules.count ? run->modules.data[id] : NULL;
}

/* -- files -- */

/* Whether each process gives @pattern another name. */
static bool names_differ(const char *pattern)
{
	for (const char *s = strchr(pattern, '%'); s; s = strchr(s + 2, '%')) {
		if (s[1] == 'p' || s[1] == 'n')
			return true;
		if (!s[1])
			break;
	}
	return strcmp(pattern, "-") == 0;
}

/* "flame.svg" to "flame.%p.svg", "massif" to "massif.%p". */
static char *with_pid(const char *pattern)
{
	const char *slash = strrchr(pattern, '/'), *dot = strrchr(pattern, '.');
	size_t stem = dot && dot > (slash ? slash + 1 : pattern) ? (size_t)(dot - pattern) :
								   strlen(pattern);

	return xasprintf("%.*s.%%p%s", (int)stem, pattern, pattern + stem);
}

int run_expand(struct run *run, const char *option, const char *pattern, uint32_t pid,
	       char **path_out)
{
	_cleanup_free_ char *why = NULL;
	bool is_shared = run->options->pid_count > 1 && !names_differ(pattern);
	_cleanup_free_ char *own = is_shared ? with_pid(pattern) : NULL;
	struct pattern_values values = {.pid = pid,
					.sequence = &run->sequence,
					.dir = run->directory};
	int rc = pattern_expand(own ? own : pattern, &values, path_out, &why);
	if (rc != 0)
		log_error("%s: %s", option, why);
	return rc;
}

static int check_file(struct run *run, const char *option, const char *pattern)
{
	_cleanup_free_ char *path = NULL;
	struct outfile out;
	struct stat st;
	uint32_t sequence = run->sequence;
	int rc = run_expand(run, option, pattern, (uint32_t)getpid(), &path);
	run->sequence = sequence;
	if (rc != 0)
		return rc;
	/* a FIFO or a device is not opened before there is something to write */
	bool is_plain = strcmp(path, "-") != 0 &&
			(stat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
	rc = is_plain ? outfile_open(path, &out) : 0;
	if (rc != 0)
		log_error("cannot write %s: %s", path, strerror(-rc));
	else if (is_plain)
		outfile_abort(&out);
	return rc;
}

int run_check_patterns(const struct run *run)
{
	_cleanup_free_ char *why = NULL;
	const struct options *o = run->options;
	const char *option = "--massif-out-file";
	int rc = pattern_check(o->massif_out_file, &why);
	if (rc == 0 && o->xtree_memory != XTREE_NONE) {
		option = "--xtree-memory-file";
		rc = pattern_check(o->xtree_memory_file, &why);
	}
	if (rc != 0)
		log_error("%s: %s", option, why);
	return rc;
}

bool run_wants_massif(const struct run *run)
{
	if (run->options->pages_as_heap)
		return true;
	return run->options->heap || run->options->stacks || !usage_is_wanted(run->options);
}

int run_check_out_files(struct run *run)
{
	const struct options *o = run->options;
	int rc = 0;
	if (run_wants_massif(run))
		rc = check_file(run, "--massif-out-file", o->massif_out_file);
	if (rc == 0 && o->xtree_memory != XTREE_NONE)
		rc = check_file(run, "--xtree-memory-file", o->xtree_memory_file);
	if (rc == 0 && o->leaks_out)
		rc = check_file(run, "--leaks-out", o->leaks_out);
	if (rc == 0 && o->folded_file)
		rc = check_file(run, "--folded", o->folded_file);
	if (rc == 0 && o->flame_file)
		rc = check_file(run, "--flame", o->flame_file);
	return rc;
}
