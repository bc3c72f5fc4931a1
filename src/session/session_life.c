/*
 * Starts, forks and ends sessions, whose files are written at the end. Names are looked up then,
 * once for each address (earlier only for --ignore-fn and unloaded objects); debug files are
 * fetched from debuginfod servers first.
 */
#include "session/limits.h"
#include "session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "output/memusage_output.h"
#include "output/report_tree.h"
#include "profile/memusage.h"
#include "session/heap_sample.h"
#include "session/inspect/copy_ahead.h"
#include "session/inspect/final_scan.h"
#include "session/inspect/inspect_session.h"
#include "session/labels.h"
#include "session/memory_source.h"
#include "session/memusage_run.h"
#include "session/record/recording_run.h"
#include "session/record/touched_blocks.h"
#include "session/runtimes/code_names.h"
#include "session/runtimes/java_frames.h"
#include "session/runtimes/v8_stacks.h"
#include "session/runtimes/virtual_stacks.h"
#include "session/session_output.h"
#include "session/signals.h"
#include "session/summaries.h"
#include "symbols/debug_files.h"
#include "tracee/control/target.h"
#include "tracee/os/maps.h"
#include "tracee/pads/heap_sampling.h"
#include "tracee/pads/own_code.h"

/* -- names -- */

/*
 * Without ignore-fns a block is ignored only if all frames that the filter examines are alloc-fns.
 * A single other frame is enough to count it: the outermost, shared by most stacks, is checked
 * first.
 */
static bool is_surely_counted(struct source *src, uint32_t node)
{
	const struct filter *filter = src->session->run->filter;
	const struct calltree *tree = profile_calltree(src->profile);
	size_t left = filter_reach(filter);

	if (filter_has_ignore_fns(filter) || !node)
		return false;
	while (--left > 0 && calltree_parent(tree, node))
		node = calltree_parent(tree, node);
	return memory_source_is_counted(src, calltree_node_frame(tree, node));
}

static bool is_ignored(void *ctx, uint32_t node)
{
	struct source *src = ctx;
	struct report report;
	struct shown_stack stack = {.report = &report};
	if (is_surely_counted(src, node))
		return false;
	memory_source_fill_report(src, &report);
	bool counts = shown_stack_fill(&stack, node);
	shown_stack_deinit(&stack);
	return !counts;
}

static void find_groups(void *ctx, uint32_t node, bool *is_in)
{
	struct source *src = ctx;
	struct report report;

	memory_source_fill_report(src, &report);
	limits_find_groups(src->session->run, &report, node, is_in);
}

/* -- the file of its events -- */

void session_open_events(struct session *s, bool is_first)
{
	FILE *file = is_first ? s->run->events_file : NULL;

	if (!file && (!s->run->options->files.events || s->run->events_file))
		return;
	if (!file && out_session_path(s, OUT_EVENTS, &s->events.path) != 0)
		return;
	if (!file && !(file = s->events.stream = stream_create(s->events.path))) {
		log_error("cannot write %s: %s", s->events.path, strerror(errno));
		s->run->files_failed++;
		return;
	}
	s->events.writer = events_writer_new(file);
	events_writer_header(s->events.writer, s->process.command, s->process.pid,
			     s->process.start_ns);
	if (s->heap.sample.interval)
		events_writer_sampling(s->events.writer, s->heap.sample.interval,
				       s->heap.sample.seed);
	s->events.touched = touched_blocks_new(s);
}

/* The events that are in the file can be replayed. */
static void log_cut(const struct session *s, const char *path, int err)
{
	uint64_t last_ns;

	if (events_cut(path, &last_ns))
		log_error("cannot write %s: %s; it has the events of the first %.3f s, the others "
			  "are missing",
			  path, strerror(-err),
			  (double)(MAX(last_ns, s->process.start_ns) - s->process.start_ns) / 1e9);
	else
		log_error("cannot write %s: %s; the events are missing", path, strerror(-err));
}

static void close_events(struct session *s)
{
	int rc = s->events.writer ? events_writer_free(s->events.writer) : 0;

	s->events.writer = NULL;
	touched_blocks_free(s->events.touched);
	s->events.touched = NULL;
	if (s->events.stream && fclose(s->events.stream) != 0 && rc == 0)
		rc = -errno;
	s->events.stream = NULL;
	if (rc != 0) {
		log_cut(s, s->events.path ? s->events.path : s->run->options->files.events, rc);
		s->run->files_failed++;
	}
	free(s->events.path);
	s->events.path = NULL;
}

/* -- life -- */

static uint64_t read_instructions(void *ctx)
{
	struct session *s = ctx;
	return s->run->target ? target_instructions(s->run->target) : 0;
}

static const struct module *module_at(void *ctx, taddr_t pc)
{
	return session_module(ctx, pc);
}

static bool own_code_at(void *ctx, const struct own_place *place, struct own_code *out)
{
	struct session *s = ctx;
	return own_code_find(s->run->target, s->space, place, out);
}

static bool is_code_at(void *ctx, taddr_t pc)
{
	const struct session *s = ctx;
	return s->space->files.maps >= 0 && maps_query(s->space->files.maps, pc) == 1;
}

static bool generated_at(void *ctx, const struct generated_place *place, struct generated_code *out)
{
	struct session *s = ctx;

	return (s->stacks.java && java_frames_find(s->stacks.java, place, out)) ||
	       (v8_stacks_are_on(s) && v8_stacks_find_code(s, place, out)) ||
	       code_names_range(s, place, out);
}

void session_bind(struct session *s, struct address_space *space)
{
	struct unwind_ops ops = {
		.module = module_at, .generated = generated_at, .own = own_code_at,
		.is_code = is_code_at, .ctx = s};
	s->space = space;
	space->sink.user = s;
	s->stacks.unwind = unwind_new(arch_native, &ops);
	space->sink.unwind = s->stacks.unwind;
}

struct session *session_new(struct run *run, uint32_t pid, uint64_t start_ns)
{
	const struct options *o = run->options;
	struct session *s = xcalloc(1, sizeof(*s));
	s->run = run;
	s->process.pid = pid;
	s->process.start_ns = s->process.end_ns = start_ns;
	s->process.exit_status = -1;
	out_begin(s);
	s->image.is_own = true;
	s->image.serial = ++run->programs;
	s->process.command = xstrdup(run->command);
	bool keep_history = options_record(o) || run->needs_history;
	struct profile_options po = {
		.time_unit = o->profile.time_unit,
		.peak_inaccuracy = o->profile.peak_inaccuracy,
		.peak_at_exit = o->profile.peak_at_exit,
		.detailed_freq = o->profile.detailed_freq,
		.max_snapshots = o->profile.max_snapshots,
		.heap_admin = o->profile.heap_admin,
		.alignment = o->profile.alignment,
		.process = pid,
		.no_heap = !o->profile.heap,
		.is_ignored = is_ignored,
		.is_ignored_ctx = &s->source[SOURCE_HEAP],
		.groups = limits_count_groups(run),
		.find_groups = find_groups,
		.instructions = read_instructions,
		.instructions_ctx = s,
		.keep_times = options_report_leaks(o) || keep_history,
		.keep_history = keep_history,
		.keep_peak = run->needs_peak,
		.keep_whole_history = o->files.record_every > 0 && (o->listen.at || o->files.html),
		.sample_interval = options_sample_interval(o),
	};
	if (o->profile.pages_as_heap)
		po.heap_admin = 0;
	s->heap.profile = profile_new(&po, start_ns);
	memory_sources_init(s, &po, start_ns);
	heap_sample_init(&s->heap.sample, po.sample_interval, run->sample_seed);
	session_describe(s, o->tracing.heap_sample);
	session_stacks_init(s);
	*vec_add(&run->sessions) = s;
	if (o->files.xtree_mode != XTREE_NONE)
		s->heap.flows = flows_new(o->files.xtree_mode == XTREE_FULL);
	if (s->heap.flows)
		flows_set_sample_interval(s->heap.flows, po.sample_interval);
	if (o->files.free_stacks)
		s->heap.releases = releases_new();
	return s;
}

static void note_inherited(struct session *s, const struct session *parent,
			   const struct address_space *space)
{
	const struct profile *p = parent->heap.profile;
	struct session_inherited *in = &s->process.inherited;

	*in = (struct session_inherited){.totals = *profile_totals(p)};
	heap_sampling_add_totals(space, &in->calls);
	*vec_add(&in->leaf) = (struct leaf_calls){0}; /* there is no leaf 0 */
	for (uint32_t i = 1; i <= profile_leaf_count(p); i++) {
		const struct leaf *l = profile_leaf(p, i);

		*vec_add(&in->leaf) = (struct leaf_calls){l->calls, l->total_bytes};
	}
}

struct session *session_fork(struct session *parent, struct address_space *space)
{
	struct session *s = xmemdup(parent, sizeof(*parent));
	s->process.pid = (uint32_t)space->processes.pid;
	s->process.command = xstrdup(parent->process.command);
	s->process.desc = xstrdup(parent->process.desc);
	s->process.name = parent->process.name ? xstrdup(parent->process.name) : NULL;
	s->process.cgroup = parent->process.cgroup ? xstrdup(parent->process.cgroup) : NULL;
	s->events.touched = NULL; /* the parent's */
	s->events.writer = NULL; /* the inherited blocks have no events in its own file */
	s->events.stream = NULL;
	s->events.path = NULL;
	s->end = (struct session_end){0};
	memset(&s->stacks.paths, 0, sizeof(s->stacks.paths));
	s->stacks.java = NULL; /* its threads are not in the child */
	s->within = NULL; /* calls in progress are the parent's */
	s->image.is_own = s->image.was_attached = false;
	note_inherited(s, parent, space);
	out_begin(s);
	s->heap.profile = profile_clone(parent->heap.profile);
	*vec_add(&s->run->sessions) = s;
	if (parent->heap.flows)
		s->heap.flows = flows_clone(parent->heap.flows);
	if (parent->heap.releases)
		s->heap.releases = releases_clone(parent->heap.releases);
	profile_set_ctx(s->heap.profile, &s->source[SOURCE_HEAP], s);
	profile_set_process(s->heap.profile, s->process.pid);
	memory_sources_fork(s);
	session_stacks_init(s); /* only one of the parent's threads exists in the child */
	session_bind(s, space);
	labels_fork(parent, s);
	virtual_stacks_fork(s);
	v8_stacks_fork(s);
	code_names_fork(parent, s);
	memusage_run_fork(parent, s);
	recording_run_fork(parent, s);
	return s;
}

void session_unlist(struct session *s)
{
	struct run *run = s->run;
	for (size_t i = 0; i < run->sessions.count; i++) {
		if (run->sessions.data[i] != s)
			continue;
		memmove(&run->sessions.data[i], &run->sessions.data[i + 1],
			(--run->sessions.count - i) * sizeof(*run->sessions.data));
	}
}

void session_free(struct session *s)
{
	session_unlist(s);
	final_scan_forget(s);
	inspect_final_free(s->end.inspected);
	copy_ahead_forget(s);
	last_inspection_deinit(&s->end.inspection);
	session_cold_deinit(&s->end.cold);
	if (s->stacks.unwind)
		unwind_free(s->stacks.unwind);
	java_frames_free(s->stacks.java);
	close_events(s);
	recording_run_free(s);
	code_names_free(s);
	vec_release(&s->stacks.paths, e, free(e->node));
	virtual_stacks_free(s->stacks.virtual);
	v8_stacks_free(s->stacks.v8);
	memusage_free(s->memusage.counts);
	stacks_free(s->stack_use);
	within_free(s);
	labels_free(s);
	memory_sources_deinit(s);
	profile_free(s->heap.profile);
	flows_free(s->heap.flows);
	releases_free(s->heap.releases);
	if (s->memusage.data)
		memusage_data_close(s->memusage.data); /* after a failed replay */
	free(s->memusage.data_path);
	for (size_t i = 0; i < (size_t)OUTPUTS * SOURCE_COUNT; i++)
		free(s->end.path[i / SOURCE_COUNT][i % SOURCE_COUNT]);
	free(s->process.command);
	free(s->process.desc);
	free(s->process.name);
	free(s->process.cgroup);
	vec_deinit(&s->process.inherited.leaf);
	free(s->image.successor);
	free(s->image.successor_problem);
	free(s->image.passed);
	free(s);
}

/* -- the end -- */

static void write_heap(struct session *s)
{
	const char *path = NULL;
	struct report r = session_report(s);
	int rc = -ENOENT;

	if (options_write_massif(s->run->options))
		rc = session_output_finish_massif(s, SOURCE_HEAP, &r, &path);
	session_output_finish_xtree(s);
	if (!s->end.is_draft && !session_is_silent(s)) {
		summaries_print(s, rc == 0 ? path : NULL);
		limits_check(s);
	}
}

static void write_files(struct session *s)
{
	if (s->source[SOURCE_HEAP].is_traced)
		write_heap(s);
	memory_sources_finish(s);
	reports_finish(s, s->process.end_ns);
	recording_run_finish(s);
}

static bool was_asked_again(void *ctx)
{
	const unsigned *before = ctx;

	return signals_leave_count() != *before;
}

/* All objects with a frame: their names may not have been needed so far. */
static void note_objects(struct run *run, const struct calltree *tree)
{
	uint32_t last = 0;

	for (uint32_t i = 1; i <= calltree_frame_count(tree); i++) {
		uint32_t id = calltree_frame(tree, i)->module;

		if (id && id != last)
			symbols_note(run->symbols, run_module(run, id));
		last = id;
	}
}

/*
 * Fetches debug files of the objects in the profiles of @s, unless a process is still traced: that
 * would wait meanwhile. Another SIGINT or SIGTERM to ptmem ends it.
 */
static void fetch_names(struct session *s)
{
	struct run *run = s->run;
	unsigned count = signals_leave_count();

	if (!run->options->names.debuginfod || !debuginfod_is_configured() ||
	    (run->target && target_is_tracing(run->target)))
		return;
	for (int k = 0; k < SOURCE_COUNT; k++) {
		if (s->source[k].is_traced)
			note_objects(run, profile_calltree(s->source[k].profile));
	}
	if (!symbols_wants_fetch(run->symbols))
		return;
	/* nothing is lost if ptmem is killed while it waits */
	s->end.is_draft = true;
	write_files(s);
	s->end.is_draft = false;
	symbols_fetch(run->symbols, was_asked_again, &count);
}

void session_finish(struct session *s, uint64_t now_ns)
{
	s->process.end_ns = now_ns;
	session_describe(s, s->heap.sample.interval ? s->heap.sample.interval :
						      s->run->options->tracing.heap_sample);
	profile_finish(s->heap.profile, now_ns);
	within_finish(s);
	within_record(s);
	memory_sources_end(s, now_ns);
	releases_note(s->heap.releases, profile_totals(s->heap.profile), 0);
	if (s->events.writer) {
		struct call_totals totals = s->heap.sample.totals;

		/* without samples the profile has the calls, except for those that are missing */
		if (!s->heap.sample.interval)
			memset(totals.function, 0, sizeof(totals.function));
		events_writer_totals(s->events.writer, &totals);
		events_writer_end(s->events.writer, now_ns);
		close_events(s);
	}
	fetch_names(s);
	summaries_begin(s);
	write_files(s);
	summaries_end(s);
}
