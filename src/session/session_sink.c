/*
 * Passes the events of a target to its sessions. Every stack is unwound at once, while the thread
 * is stopped:
 *
 *	a stack          -> addresses (unwind) -> a node of the call tree
 *	a pad's record   -> the new addresses since the thread's last record, after the kept
 *	                    ones (struct path) -> a node
 *	plain records    -> struct quick_event, many at a time: the short path from the ring to the
 *	                    profile and to memusage's numbers, unless outputs need complete events
 *	                    (an event file, an xtree)
 */
#include "session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cgroup.h"
#include "base/heap_calls.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "profile/memusage.h"
#include "profile/profile.h"
#include "session/exec_info.h"
#include "session/heap_sample.h"
#include "session/inspect/earlier_blocks.h"
#include "session/labels.h"
#include "session/memory_source.h"
#include "session/memusage_run.h"
#include "session/observer.h"
#include "session/record/recording_run.h"
#include "session/record/recording_values.h"
#include "session/record/touched_blocks.h"
#include "session/runtimes/code_names.h"
#include "session/runtimes/java_frames.h"
#include "session/runtimes/runtime_system.h"
#include "session/runtimes/python_program.h"
#include "session/runtimes/v8_stacks.h"
#include "session/runtimes/virtual_stacks.h"
#include "session/session_output.h"
#include "session/summary.h"
#include "tracee/state/module.h"
#include "tracee/state/probe.h"
#include "unwind/unwind.h"


/* -- spaces and modules -- */

/* Whether @path is an interpreter of Python, or its library. */
static bool is_python(const char *path)
{
	const char *name = text_base_name(path);
	if (strncmp(name, "lib", 3) == 0)
		name += 3;
	return strncmp(name, "python3", 7) == 0 || strncmp(name, "python2", 7) == 0;
}

/* The name that the program has given itself, and its control group. */
static void read_labels(struct session *s, pid_t pid)
{
	char comm[PROC_COMM_SIZE];

	proc_read_comm(pid, comm);
	s->process.name = xstrdup(comm);
	s->process.cgroup = cgroup_read(pid);
}

/* Code that a virtual machine of Java generated has gone. */
static void forget_code(void *ctx, taddr_t start, taddr_t end)
{
	struct session *s = ctx;

	unwind_forget(s->stacks.unwind, start, end);
}

static void note_name(void *ctx, uint64_t key, const char *name, const char *file, uint32_t line)
{
	const struct session *s = ctx;

	if (s->events.writer)
		events_writer_name(s->events.writer, &(struct events_name){
			.pc = key, .name = name, .file = file, .line = line});
}

static void note_java(struct session *s, const struct module *m)
{
	const struct java_ops ops = {.forget = forget_code, .named = note_name, .ctx = s};

	if (!s->stacks.java && s->space && strcmp(text_base_name(m->path), "libjvm.so") == 0)
		s->stacks.java = java_frames_new(m, s->space, s->run->symbols, &ops);
}

static bool has_own_realloc(const struct probe_sites *sites)
{
	for (size_t i = 0; sites && i < sites->list.count; i++) {
		const struct probe *p = sites->list.data[i].probe;

		if (p->kind == PROBE_REALLOC && probe_is_own(p))
			return true;
	}
	return false;
}

static void note_module(struct session *s, struct module *m)
{
	run_add_module(s->run, m);
	note_java(s, m);
	if (is_python(m->path)) {
		s->image.has_python = true;
		s->image.is_free_threaded |= m->file && python_program_is_free_threaded(m->file);
	}
	if (m->path && strncmp(text_base_name(m->path), "python", strlen("python")) == 0 &&
	    python_program_ignores_variables(s->space)) {
		s->image.ignores_variables = true;
		s->image.has_python_malloc = false;
	}
	s->image.has_pymalloc |= python_program_watches(m, s->image.is_free_threaded);
	s->image.has_own_realloc |= has_own_realloc(m->sites);
	virtual_stacks_module(s, m);
	v8_stacks_module(s, m);
	code_names_note(s, m);
	runtime_system_note_module(s, m);
	labels_add_module(s, m);
	if (s->events.writer)
		events_writer_module(s->events.writer,
				     &(struct events_module){m->id, m->start, m->end, m->bias,
							     m->path});
}

/*
 * Reads the rules and symbols that the first stacks need: later a thread would wait for them at its
 * first breakpoint.
 */
static void sink_before_stop(void *ctx, struct address_space *space)
{
	const struct run *run = ctx;
	for (size_t i = 0; i < space->modules.count; i++) {
		const struct module *m = space->modules.data[i];
		unwind_prepare(m);
		if (i == 0 || (m->sites && m->sites->list.count > 0))
			symbols_note(run->symbols, m);
	}
}

static void sink_space_new(void *ctx, struct address_space *space)
{
	struct run *run = ctx;
	const struct observer *o;
	former_image_supersede(run, space->processes.pid);
	struct session *s = session_new(run, (uint32_t)space->processes.pid, clock_now_ns());
	bool is_first = !run->is_first_known;
	run->is_first_known = true;
	s->image.was_attached = space->image.has_earlier_blocks;
	s->image.was_given_malloc = space->image.has_variable;
	python_program_has_variable(space, &s->image.has_python_malloc);
	if (s->image.was_attached)
		read_labels(s, space->processes.pid);
	if (options_attach(run->options) || !is_first) {
		/* one that was attached to ran already; others have just executed theirs */
		free(s->process.command);
		s->process.command = exec_info_command(space->processes.reader,
						       !s->image.was_attached);
	}
	session_bind(s, space);
	hints_at_start(s);
	session_open_events(s, is_first || run_process(run, s->process.pid)->before);
	for (size_t i = 0; i < space->modules.count; i++)
		note_module(s, space->modules.data[i]);
	/* the executable has the lowest id (state/module.c) */
	for (size_t i = 0; i < space->modules.count; i++)
		if (!s->image.program || space->modules.data[i]->id < s->image.program)
			s->image.program = space->modules.data[i]->id;
	session_add_earlier_blocks(s);
	memory_sources_start(s);
	memusage_run_start(s);
	recording_run_start(s);
	observers_each(o, run, session_started)
		o->session_started(o->ctx, s);
}

static void sink_space_fork(void *ctx, struct address_space *parent, struct address_space *child)
{
	struct session *s = session_fork(parent->sink.user, child);
	const struct observer *o;

	observers_each(o, (struct run *)ctx, session_forked)
		o->session_forked(o->ctx, s);
}

static void sink_module_loaded(void *ctx, struct address_space *space, struct module *m)
{
	struct session *s = space->sink.user;

	(void)ctx;
	if (run_module(s->run, m->id))
		memory_sources_recall(s, m->id);
	note_module(s, m);
}

static void sink_module_unloaded(void *ctx, struct address_space *space, struct module *m)
{
	struct session *s = space->sink.user;
	(void)ctx;
	unwind_forget(s->stacks.unwind, m->start, m->end);
	virtual_stacks_module_gone(s, m);
	v8_stacks_module_gone(s, m);
	labels_remove_module(s, m);
	memory_sources_forget(s, m->start, m->end);
	if (s->events.writer)
		events_writer_module(s->events.writer, &(struct events_module){.id = m->id});
}

/* -- events -- */

/* Adds the new frames of a walked stack to the path. */
__attribute__((noinline)) static void extend_path(struct session *s, const struct heap_event *he)
{
	while (s->stacks.paths.count <= he->path)
		*vec_add(&s->stacks.paths) = (struct path){0};
	struct path *p = &s->stacks.paths.data[he->path];
	uint32_t kept = MIN(he->kept, p->count); /* all frames are given */
	p->node = xgrow(p->node, &p->capacity, he->frame_count + 1, sizeof(*p->node));
	uint32_t node = kept ? p->node[kept - 1] : 0;
	for (uint32_t i = kept; i < he->frame_count; i++) {
		node = session_child(s, s->heap.profile, node, he->frame[i]);
		p->node[i] = node;
	}
}

/* The node of a stack walked by a pad: kept frames are known from the thread's last record. */
static inline uint32_t find_path_node(struct session *s, const struct heap_event *he)
{
	if (s->stacks.virtual)
		return virtual_path_node(s, he);
	if (v8_stacks_are_on(s))
		return v8_path_node(s, he);
	if (he->kept < he->frame_count || he->path >= s->stacks.paths.count ||
	    he->kept > s->stacks.paths.data[he->path].count)
		extend_path(s, he);
	struct path *p = &s->stacks.paths.data[he->path];
	p->count = he->frame_count;
	return p->count ? p->node[p->count - 1] : 0;
}

/* The node of a stack that no pad has walked. */
static uint32_t stopped_node(struct session *s, const struct heap_event *he)
{
	struct stack_view view = *he->stack;

	if (he->kind == HEAP_REALLOC_END && he->addr) {
		view.moved_from = he->old_addr;
		view.moved_to = he->addr;
	}
	return session_stack_node(s, s->heap.profile, &view);
}

/*
 * A pad left frames of @he by their frame pointers, without knowing whether they have one. Returns
 * the node of the stack, @node, or, if a frame has none, that of the frames inside of it.
 */
__attribute__((noinline)) static uint32_t confirm_guesses(struct session *s,
							  const struct heap_event *he,
							  uint32_t node)
{
	uint32_t wrong = UINT32_MAX;

	for (uint32_t i = 0; i < he->guess_count; i++) {
		uint32_t n = he->guess[i];
		taddr_t caller = n > 0 ? he->frame[n - 1] + 1 : 0;

		if (!unwind_confirm_framed(s->stacks.unwind, he->frame[n] + 1, caller))
			wrong = n;
	}
	if (wrong == UINT32_MAX)
		return node;
	s->stacks.counts.complete--;
	s->stacks.counts.ends[UNWIND_COMPLETE]--;
	s->stacks.counts.ends[UNWIND_NO_CFI]++;
	node = 0;
	for (uint32_t i = wrong; i < he->frame_count; i++)
		node = session_child(s, s->heap.profile, node, he->frame[i]);
	return node;
}

/* --verify-stacks: the pad recorded its stack both ways. */
static void verify_stack(struct session *s, const struct heap_event *he, uint32_t node)
{
	uint32_t whole = session_stack_node(s, s->heap.profile, he->stack);
	s->stacks.counts.taken--;
	s->stacks.counts.complete--;
	s->stacks.counts.verified++;
	if (whole != node && session_stack_differs(s))
		log_warn("thread %u: the stack walked by its pad (%u frames) differs from the "
			 "unwound one", he->thread, he->frame_count);
}

/* --trace-malloc: a line in Valgrind's form. */
static void trace_call(const struct session *s, const struct heap_event *he)
{
	static const char *const names[] = {
		[FUNCTION_MALLOC] = "malloc",	[FUNCTION_CALLOC] = "calloc",
		[FUNCTION_REALLOC] = "realloc", [FUNCTION_MEMALIGN] = "memalign",
		[FUNCTION_NEW] = "new",		[FUNCTION_FREE] = "free",
		[FUNCTION_DELETE] = "delete",	[FUNCTION_BRK] = NULL,
	};
	const char *name = he->function < ARRAY_SIZE(names) ? names[he->function] : NULL;
	unsigned long long size = he->size;
	if (name && he->kind == HEAP_ALLOC)
		log_info("--%u-- %s(%llu) = 0x%llX", s->process.pid, name, size,
			 (unsigned long long)he->addr);
	else if (name && he->kind == HEAP_FREE)
		log_info("--%u-- %s(0x%llX)", s->process.pid, name, (unsigned long long)he->addr);
	else if (name && he->kind == HEAP_REALLOC_END)
		log_info("--%u-- realloc(0x%llX,%llu) = 0x%llX", s->process.pid,
			  (unsigned long long)he->old_addr, size, (unsigned long long)he->addr);
}

/* Removes the frames of an unwatched operator new, as if that had been called. */
static void hide_new(const struct session *s, struct heap_event *he)
{
	const struct stack_view *view = he->stack;
	while (he->frame && he->frame_count > 0 &&
	       session_hides(s, he->frame[he->frame_count - 1])) {
		he->frame_count--;
		he->function = FUNCTION_NEW;
	}
	if (view && session_hides(s, view->regs.reg[arch_native->dwarf_pc] - 1))
		he->function = FUNCTION_NEW;
}

/* @he without its stack: the node is 0, since it depends on the profile. */
static struct event counted_event(const struct heap_event *he)
{
	/* one to one, except for those of profile/event.h that sessions create */
	static const uint8_t kinds[] = {
		[HEAP_ALLOC] = EVENT_ALLOC,
		[HEAP_FREE] = EVENT_FREE,
		[HEAP_REALLOC_BEGIN] = EVENT_REALLOC_BEGIN,
		[HEAP_REALLOC_END] = EVENT_REALLOC_END,
		[HEAP_MAP] = EVENT_MAP,
		[HEAP_UNMAP] = EVENT_UNMAP,
		[HEAP_MAPPING_CALL] = EVENT_MAPPING_CALL,
		[HEAP_SAMPLE] = EVENT_SAMPLE,
		[HEAP_PROGRAM_END] = EVENT_PROGRAM_END,
		[HEAP_FAULT] = EVENT_COUNT,
	};

	return (struct event){
		.time_ns = he->time_ns,
		.thread = he->thread,
		.kind = kinds[he->kind],
		.function = he->function,
		.is_inner = he->is_inner,
		.sample_shift = he->sample_shift,
		.addr = he->addr,
		.old_addr = he->old_addr,
		.size = he->size,
		.align = he->align,
		.weighted = he->weighted,
		.sp = he->sp,
	};
}

static void sink_event(void *ctx, struct address_space *space, struct heap_event *he)
{
	struct session *s = space->sink.user;
	(void)ctx;
	const struct options *o = s->run->options;
	uint64_t complete = s->stacks.counts.complete;
	hide_new(s, he);
	/*
	 * a stamp may be older than the number of its record, or than a sample of memory that was
	 * taken meanwhile: the order of events counts
	 */
	he->time_ns = MAX(he->time_ns, profile_now(s->heap.profile));
	he->time_ns = s->events.last_ns = MAX(s->events.last_ns, he->time_ns);
	if (s->code)
		code_names_before_event(s, he);
	session_stacks_see(s, he);
	struct event ev = counted_event(he);
	if (he->kind == HEAP_MAP || he->kind == HEAP_UNMAP || he->kind == HEAP_FAULT) {
		ev.sp = 0; /* nothing that counts mappings needs it */
		memory_sources_event(s, he, &ev);
		return;
	}
	if (ev.kind == EVENT_REALLOC_END && ev.addr && !ev.size &&
	    !o->profile.realloc_zero_bytes_frees)
		ev.size = 1;
	if (o->messages.trace_malloc)
		trace_call(s, he);
	if (he->frame) {
		ev.node = find_path_node(s, he);
		s->stacks.counts.taken++;
		s->stacks.counts.complete++;
		s->stacks.counts.ends[UNWIND_COMPLETE]++;
		if (he->guess_count)
			ev.node = confirm_guesses(s, he, ev.node);
	}
	/* frames are always read: the next stack of their slot builds on them */
	if (!heap_sample_keep(&s->heap.sample, s->heap.profile, he->is_chosen, &ev))
		return;
	session_sampling_note_sample(s, ev.sample_shift);
	if (he->stack) {
		if (!he->frame)
			ev.node = stopped_node(s, he);
		else if (session_verifies(s))
			verify_stack(s, he, ev.node);
	}
	if (s->labels && ev.node)
		ev.node = labels_node(s, he, ev.node,
				      s->stacks.counts.complete != complete);
	touched_blocks_event(s, &ev);
	if (s->events.writer)
		events_writer_event(s->events.writer, profile_calltree(s->heap.profile), &ev);
	memusage_run_event(s, &ev);
	if (s->heap.flows)
		flows_event(s->heap.flows, &ev);
	if (within_is_on(s))
		within_event(s, &ev);
	if (o->profile.heap)
		profile_event(s->heap.profile, &ev);
	releases_note(s->heap.releases, profile_totals(s->heap.profile), ev.node);
}

static void sink_records(void *ctx, struct address_space *space, bool is_behind)
{
	(void)ctx;
	if (space->sink.user)
		code_names_before_records(space->sink.user, is_behind);
}

/* Whether a struct quick_event contains everything that the session needs. */
static bool sink_wants_quick(void *ctx, struct address_space *space)
{
	const struct options *o = ((struct run *)ctx)->options;
	const struct session *s = space->sink.user;

	return s && !code_names_needs_times(s) && !s->heap.sample.interval && !s->events.writer &&
	       !s->heap.flows && !s->heap.releases && !s->stack_use && !within_is_on(s) &&
	       !o->messages.trace_malloc && (o->profile.heap || s->memusage.counts);
}

static uint32_t sink_node(void *ctx, struct address_space *space, const struct heap_event *he)
{
	struct session *s = space->sink.user;
	uint32_t node = find_path_node(s, he);

	(void)ctx;
	return s->labels ? labels_node(s, he, node, true) : node;
}

/* Counts them, in their order. */
static void sink_quick(void *ctx, struct address_space *space, const struct quick_event *ev,
		       size_t count)
{
	struct session *s = space->sink.user;

	if (s->memusage.counts)
		memusage_quick(s->memusage.counts, ev, count);
	if (!((struct run *)ctx)->options->profile.heap)
		return;
	uint64_t stacks = profile_quick(s->heap.profile, ev, count);

	s->stacks.counts.taken += stacks;
	s->stacks.counts.complete += stacks;
	s->stacks.counts.ends[UNWIND_COMPLETE] += stacks;
}

static void sink_thread_exiting(void *ctx, struct address_space *space, pid_t tid)
{
	struct session *s = space->sink.user;

	(void)ctx;
	if (s->recording)
		recording_values_name_thread(s, (uint32_t)tid);
}

static void sink_thread_exit(void *ctx, struct address_space *space, pid_t tid)
{
	struct session *s = space->sink.user;
	(void)ctx;
	within_thread_exit(s, (uint32_t)tid);
	labels_thread_exit(s, (uint32_t)tid);
	profile_thread_exit(s->heap.profile, (uint32_t)tid);
	releases_note(s->heap.releases, profile_totals(s->heap.profile), 0);
	memusage_run_thread_exit(s, (uint32_t)tid);
	session_stacks_thread_exit(s, (uint32_t)tid);
	if (s->events.writer)
		events_writer_thread_exit(s->events.writer, (uint32_t)tid);
}

/* -- events of the whole run -- */

static void sink_process_exit(void *ctx, struct address_space *space, pid_t pid, pid_t tid)
{
	const struct observer *o;

	if (space->sink.user)
		runtime_system_measure(space->sink.user, tid);
	if (space->sink.user)
		touched_blocks_end(space->sink.user);
	observers_each(o, (struct run *)ctx, process_exit)
		o->process_exit(o->ctx, pid, tid);
}

static void sink_will_map(void *ctx, struct address_space *space)
{
	const struct observer *o;

	observers_each(o, (struct run *)ctx, will_map)
		o->will_map(o->ctx, space->processes.reader);
}

static bool sink_monitor(void *ctx, struct address_space *space, const char *text)
{
	const struct observer *o;

	observers_each(o, (struct run *)ctx, monitor) {
		if (o->monitor(o->ctx, space->sink.user, text))
			return true;
	}
	return false;
}

static uint64_t sink_tick(void *ctx, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;
	const struct observer *o;

	observers_each(o, (struct run *)ctx, tick)
		next = MIN(next, o->tick(o->ctx, now_ns));
	next = MIN(next, recording_run_tick(ctx, now_ns));
	next = MIN(next, touched_blocks_tick(ctx, now_ns));
	next = MIN(next, code_names_tick(ctx, now_ns));
	next = MIN(next, cold_watch_tick(ctx));
	return MIN(next, ended_forks_tick(ctx, now_ns));
}

void session_sink_init(struct event_sink *out, struct run *run, bool (*poll)(void *ctx))
{
	const struct options *o = run->options;

	*out = (struct event_sink){
		.ctx = run,
		.before_stop = sink_before_stop,
		.space_new = sink_space_new,
		.space_fork = sink_space_fork,
		.space_end = image_end,
		.image_refused = former_image_refused,
		.process_left = former_image_process_left,
		.module_loaded = sink_module_loaded,
		.module_unloaded = sink_module_unloaded,
		.event = sink_event,
		.records = sink_records,
		.wants_quick = sink_wants_quick,
		.node = sink_node,
		.quick = sink_quick,
		.within_begin = session_within_begin,
		.within_end = session_within_end,
		.thread_exiting = sink_thread_exiting,
		.thread_exit = sink_thread_exit,
		.process_exit = sink_process_exit,
		.skip_exec = skip_exec,
		.variable = python_program_variable,
		.will_map = sink_will_map,
		.prepare_final_scan = reports_prepare_scan,
		.final_scan = reports_final_scan,
		.monitor = sink_monitor,
		.tick = sink_tick,
		.poll = poll,
	};
	if (earlier_blocks_are_wanted(o))
		out->before_install = earlier_blocks_read;
	if (options_profile_stacks(o) || options_count_calls(o)) {
		out->stack_new = session_stacks_new;
		out->stack_gone = session_stacks_gone;
	}
}
