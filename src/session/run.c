/*
 * Data shared by all sessions of a run, and its file names, which are expanded for a process when a
 * file is written.
 */
#include "session/run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "session/earlier_blocks.h"
#include "session/file_name.h"
#include "output/pattern.h"
#include "output/suppressions.h"
#include "tracee/state/module.h"

#define MAX_DEPTH 200 /* of a filter */

static struct filter *make_filter(const struct options *options, uint32_t depth)
{
	struct filter *f = filter_new(depth, options->names.show_below_main);
	if (options->profile.pages_as_heap)
		filter_keep_first(f);
	for (size_t i = 0; i < options->names.alloc_fn.count; i++)
		filter_add_alloc_fn(f, options->names.alloc_fn.data[i]);
	for (size_t i = 0; i < options->names.ignore_fn.count; i++)
		filter_add_ignore_fn(f, options->names.ignore_fn.data[i]);
	return f;
}

/* Small enough to be passed to --seed. */
static uint32_t random_seed(void)
{
	uint32_t seed = 0;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint32_t)getpid();
	return MAX(seed, 1u);
}

void run_init(struct run *run, struct options *options)
{
	*run = (struct run){.options = options};
	run->sample_seed = options->tracing.seed ? options->tracing.seed : random_seed();
	run->directory = getcwd(NULL, 0);
	if (!run->directory)
		run->directory = xstrdup(".");
	_cleanup_free_ char *debug_dirs = NULL;
	if (options->names.extra_debuginfo_path)
		debug_dirs = xasprintf("%s:/usr/lib/debug", options->names.extra_debuginfo_path);
	struct symbols_options symbols_options = {
		.no_demangle = !options->names.demangle,
		.no_inline = !options->names.read_inline_info,
		.show_below_main = options->names.show_below_main,
		.debug_dirs = debug_dirs,
	};
	run->symbols = symbols_new(&symbols_options);
	run->fresh_symbols = symbols_new(&symbols_options);
	run->filter = make_filter(options, options->profile.depth);
	filter_log(run->filter);
	run->flame_filter = make_filter(options, MAX_DEPTH);
	run->whole_filter = filter_new_whole(options->profile.depth,
					     options->names.show_below_main);
}

void run_deinit(struct run *run)
{
	symbols_free(run->symbols);
	symbols_free(run->fresh_symbols);
	filter_free(run->filter);
	filter_free(run->whole_filter);
	filter_free(run->flame_filter);
	suppressions_free(run->suppressions);
	for (size_t i = 0; i < run->modules.count; i++) {
		if (run->modules.data[i])
			module_release(run->modules.data[i]);
	}
	vec_deinit(&run->modules);
	elf_files_deinit(&run->registry.files);
	vec_deinit(&run->sessions);
	vec_deinit(&run->ended_forks);
	for (size_t i = 0; i < run->processes.count; i++)
		free(run->processes.data[i].before);
	vec_deinit(&run->processes);
	vec_deinit(&run->writers);
	for (size_t i = 0; i < run->parts.count; i++) {
		free(run->parts.data[i].path);
		free(run->parts.data[i].elsewhere);
	}
	vec_deinit(&run->parts);
	free(run->rescue);
	vec_deinit(&run->observers);
	earlier_blocks_free(run->earlier);
	free(run->pcs);
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

struct process_files *run_process(struct run *run, uint32_t pid)
{
	for (size_t i = 0; i < run->processes.count; i++) {
		if (run->processes.data[i].pid == pid)
			return &run->processes.data[i];
	}
	struct process_files *p = vec_add(&run->processes);
	*p = (struct process_files){.pid = pid};
	return p;
}

struct module *run_module(const struct run *run, uint32_t id)
{
	return id < run->modules.count ? run->modules.data[id] : NULL;
}

/* -- files -- */

int run_file_name(struct run *run, const struct file_request *r, char **path_out)
{
	_cleanup_free_ char *why = NULL, *path = NULL;
	bool is_numbered = file_name_has(r->pattern, "n");
	/* parts of several processes have the same numbers */
	bool has_own_name = file_name_has(r->pattern, r->part ? "p" : "pn");
	struct file_name_parts parts = {
		.source = r->source,
		.pid = r->needs_pid && !has_own_name ? r->pid : 0,
		.number = is_numbered && !r->part ? 0 : r->number,
		.part = is_numbered ? 0 : r->part,
	};
	struct pattern_values values = {.pid = r->pid,
					.part = r->part,
					.sequence = &run->sequence,
					.dir = run->directory};
	int rc = pattern_expand(r->pattern, &values, &path, &why);
	if (rc != 0)
		log_error("%s: %s", r->option, why);
	else
		*path_out = file_name_insert(path, &parts);
	return rc;
}
