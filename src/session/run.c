/*
 * What all sessions of a run share, and the options of their tracee, all of which are computed
 * here.
 */
#include "session/run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "output/leaks.h"
#include "profile/calltree.h"
#include "session/runtimes/python_program.h"
#include "symbols/demangle.h"
#include "tracee/state/module.h"
#include "tracee/state/probe.h"
#include "tracee/state/target_options.h"

static bool traces(const struct options *o, enum memory_source_kind kind)
{
	return o->tracing.sources & 1u << kind;
}

/* Whether calls of allocation functions are watched at all. */
static bool watches_calls(const struct options *o)
{
	bool has_use = o->profile.heap || o->files.events || o->messages.trace_malloc ||
		       o->files.xtree_mode != XTREE_NONE;

	if (o->profile.pages_as_heap)
		return false;
	/* calls show stack pointers, even if no allocation is counted */
	return options_profile_stacks(o) || options_count_calls(o) ||
	       (traces(o, SOURCE_HEAP) && has_use);
}

/*
 * The interval at which threads without calls are stopped to read their stack pointers; 0 =
 * never.
 */
static uint64_t sample_ns(const struct options *o)
{
	bool is_counting = options_count_calls(o) && !o->memusage.no_timer;

	return is_counting || options_profile_stacks(o) ? o->profile.stack_sample_ms * 1000000ull :
							  0;
}

#define SPARSE_SAMPLES (256u << 10) /* bytes: fills a ring slowly while ptmem is stopped */

/* Sampled profiles are for programs that must not wait; dense samples are for tests. */
static uint64_t max_wait_ns(const struct options *o)
{
	if (o->tracing.max_wait >= 0)
		return (uint64_t)(o->tracing.max_wait * 1e9);
	return options_sample_interval(o) >= SPARSE_SAMPLES ? 0 : 1000000000;
}

void tracee_options_init(struct target_options *out, const struct run *run)
{
	const struct options *o = run->options;
	bool is_counting = options_count_calls(o), is_full = o->files.xtree_mode == XTREE_FULL;

	*out = (struct target_options){
		.running_on_valgrind = o->tracing.running_on_valgrind,
		.follow = {
			.exec = o->children.trace,
			.own_exec = options_sample_only(o) || o->children.follow_exec,
			.awaits_more = o->attach.follow.count > 0,
		},
		.start = {
			.file_signal = &run->file_signal,
			.pipe_signal = &run->pipe_signal,
		},
		.probes = {
			.none = !watches_calls(o),
			.none_in_go = o->inspect.at_exit || o->inspect.out || o->graph.out,
			/* pads record no stacks of frees */
			.no_promotion = o->tracing.probes == PROBES_BREAK || is_full,
			/* with a seed samples must not depend on when a function gets its jump */
			.promote_at_once = !is_full && (o->tracing.probes == PROBES_JUMP ||
							(o->tracing.probes == PROBES_AUTO &&
							 o->tracing.seed)),
			.ring_size = o->tracing.ring,
			.max_wait_ns = max_wait_ns(o),
			.custom = run->probes.list.count > 0 ? &run->probes : NULL,
			.somalloc = o->tracing.soname_synonyms,
			.verify = o->tracing.verify_stacks != 0,
		},
		.watch = {
			.mapping_calls = is_counting && o->memusage.mmap,
			.program_end = is_counting,
			.catches = run->needs_within || run->has_label_functions,
			.brk = o->profile.pages_as_heap || traces(o, SOURCE_BRK),
			.faults = traces(o, SOURCE_FAULTS),
			.mappings = o->profile.pages_as_heap || traces(o, SOURCE_MMAP),
			.mempools = o->tracing.mempools,
			.final_scan = o->leaks.check || o->inspect.at_exit,
		},
		.events = {
			.no_stacks = !o->profile.heap && o->files.xtree_mode == XTREE_NONE,
			.stack_pointers = is_counting || options_profile_stacks(o) ||
					  run->needs_within,
			.quick_threads = options_record(o) || run->needs_history,
			.count_instructions = o->profile.time_unit == TIME_INSTRUCTIONS,
			.free_stacks = is_full || o->files.free_stacks,
		},
		.samples = {
			.heap = options_sample_interval(o),
			.seed = run->sample_seed,
			.ns = sample_ns(o),
		},
	};
}

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

void run_init(struct run *run, struct options *options)
{
	*run = (struct run){.options = options};
	uint32_t seed = 0; /* small enough to be passed to --seed */
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint32_t)getpid();
	run->sample_seed = options->tracing.seed ? options->tracing.seed : MAX(seed, 1u);
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
	run->registry.files.keeps_last = true;
	run->probes.table = probe_table;
	run->probes.demangle = demangle;
	python_program_add_probes(run);
	filter_log(run->filter);
	run->flame_filter = make_filter(options, MAX_DEPTH);
	run->whole_filter = filter_new_whole(options->profile.depth,
					     options->names.show_below_main);
}

void run_deinit(struct run *run)
{
	symbols_free(run->symbols);
	symbols_free(run->fresh_symbols);
	custom_probes_deinit(&run->probes);
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
	vec_release(&run->processes, e, free(e->before));
	vec_deinit(&run->writers);
	for (size_t i = 0; i < run->parts.count; i++) {
		free(run->parts.data[i].path);
		free(run->parts.data[i].elsewhere);
	}
	vec_deinit(&run->parts);
	free(run->fallback_directory);
	vec_deinit(&run->observers);
	free(run->pcs);
	free(run->fps);
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

const struct symbol *run_symbol(const struct run *run, const struct calltree_frame *f,
				enum symbol_part part)
{
	return f->kind == FRAME_NAMED ? symbols_named(run->symbols, f->key) :
	       symbols_find(run->symbols, run_module(run, f->module), f->key, part);
}

const char *run_function(const struct run *run, const struct calltree_frame *f)
{
	return f->kind == FRAME_NAMED ? symbols_named(run->symbols, f->key)->frame->name :
	       symbols_function(run->symbols, run_module(run, f->module), f->key);
}
