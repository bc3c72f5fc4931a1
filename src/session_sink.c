/*
 * From what the target tells to its sessions. Every event is unwound at once, since
 * the target stands still only now:
 *
 *	a stack          -> addresses (unwind) -> a node of the call tree
 *	a pad's record   -> the addresses that are new since the thread's last record, behind
 *	                    those that it kept (struct path) -> a node
 *	plain records    -> struct quick_event, many at a time (session_quick.c)
 */
#include "session_sink.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/proc.h"
#include "growth.h"
#include "session.h"
#include "session_quick.h"
#include "session_stacks.h"
#include "skip.h"

/* -- spaces and modules -- */

static void read_command(struct space *space, char **command)
{
	_cleanup_fclose_ FILE *f = proc_open(space->reader, "cmdline");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	ssize_t n = 0;
	VEC(char) text = {0};
	while (f && (n = getdelim(&line, &size, '\0', f)) > 0) {
		if (text.count)
			*vec_add(&text) = ' ';
		for (const char *p = line; *p; p++)
			*vec_add(&text) = *p == '\n' ? ' ' : *p;
	}
	*vec_add(&text) = '\0';
	free(*command);
	*command = text.data;
}

static void note_module(struct session *s, struct module *m)
{
	run_add_module(s->run, m);
	if (s->events)
		events_writer_module(s->events, m->id, m->start, m->end, m->bias, m->path);
}

static void sink_space_new(void *ctx, struct space *space)
{
	struct run *run = ctx;
	struct session *s = session_new(run, (uint32_t)space->pid, target_clock());
	bool is_first = !run->is_first_known;
	run->is_first_known = true;
	if (run->options->pid_count > 0 || !is_first)
		read_command(space, &s->command);
	if (run->events_file && is_first) {
		s->events = events_writer_new(run->events_file);
		events_writer_header(s->events, s->command, s->pid, s->start_ns);
	}
	session_bind(s, space);
	for (size_t i = 0; i < space->modules.count; i++)
		note_module(s, space->modules.data[i]);
	sources_start(s);
	usage_start(s);
}

static void sink_space_fork(void *ctx, struct space *parent, struct space *child)
{
	(void)ctx;
	session_fork(parent->user, child);
}

static void sink_space_end(void *ctx, struct space *space, enum space_end why)
{
	struct session *s = space->user;
	(void)ctx;
	space_count_probes(space, &s->jumps, &s->breakpoints);
	space_count_markers(space, &s->marker_jumps, &s->marker_breakpoints);
	space->user = NULL;
	s->space = NULL;
	bool is_exec = why == SPACE_EXEC || why == SPACE_NEXT_IMAGE;
	s->has_next_image = why == SPACE_NEXT_IMAGE;
	s->was_replaced = why == SPACE_EXEC && !s->run->options->trace_children;
	s->pauses = space->pauses;
	/* what a fork had before it executed something else is in its parent's file */
	s->end_ns = target_clock();
	usage_end(s, is_exec, is_exec && (s->run->options->trace_children || !s->is_own_image));
	if (!is_exec || s->is_own_image) {
		session_finish(s, s->end_ns);
		*run_images(s->run, s->pid) += s->has_next_image;
	}
	session_free(s);
}

static void sink_module_loaded(void *ctx, struct space *space, struct module *m)
{
	(void)ctx;
	note_module(space->user, m);
}

static void sink_module_unloaded(void *ctx, struct space *space, struct module *m)
{
	struct session *s = space->user;
	(void)ctx;
	unwind_forget(s->unwind, m->start, m->end);
	sources_forget(s, m->start, m->end);
	if (s->events)
		events_writer_module(s->events, m->id, 0, 0, 0, m->path);
}

/* -- events -- */

/* Takes the new frames of a walked stack into the path. */
__attribute__((noinline)) static void extend_path(struct session *s, const struct heap_event *he)
{
	while (s->paths.count <= he->path)
		*vec_add(&s->paths) = (struct path){0};
	struct path *p = &s->paths.data[he->path];
	CHECK(he->kept <= p->count);
	p->node = xgrow(p->node, &p->capacity, he->frame_count + 1, sizeof(*p->node));
	uint32_t node = he->kept ? p->node[he->kept - 1] : 0;
	for (uint32_t i = he->kept; i < he->frame_count; i++) {
		node = calltree_get_child(profile_calltree(s->profile), node,
					  session_frame(s, s->profile, he->frame[i]));
		p->node[i] = node;
	}
}

/* The node of a stack that a pad walked: what it kept is known from the thread's last record. */
static inline uint32_t find_path_node(struct session *s, const struct heap_event *he)
{
	if (he->kept < he->frame_count || he->path >= s->paths.count)
		extend_path(s, he);
	struct path *p = &s->paths.data[he->path];
	CHECK(he->kept <= p->count || he->kept < he->frame_count);
	p->count = he->frame_count;
	return p->count ? p->node[p->count - 1] : 0;
}

static uint32_t path_node(struct session *s, const struct heap_event *he)
{
	s->stacks++;
	s->complete_stacks++;
	s->ends[UNWIND_COMPLETE]++;
	return find_path_node(s, he);
}

/* --verify: the pad sent its stack both ways. */
static void verify_stack(struct session *s, const struct heap_event *he, uint32_t node)
{
	uint32_t whole = session_stack_node(s, s->profile, he->stack, 0);
	s->stacks--;
	s->complete_stacks--;
	s->verified++;
	if (whole == node)
		return;
	s->differing++;
	log_warn("thread %u: the walked stack (%u frames) is not the unwound one", he->thread,
		 he->frame_count);
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
		log_info("--%u-- %s(%llu) = 0x%llX", s->pid, name, size,
			 (unsigned long long)he->addr);
	else if (name && he->kind == HEAP_FREE)
		log_info("--%u-- %s(0x%llX)", s->pid, name, (unsigned long long)he->addr);
	else if (name && he->kind == HEAP_REALLOC_END)
		log_info("--%u-- realloc(0x%llX,%llu) = 0x%llX", s->pid,
			  (unsigned long long)he->old_addr, size, (unsigned long long)he->addr);
}

static void sink_event(void *ctx, struct space *space, const struct heap_event *he)
{
	struct session *s = space->user;
	(void)ctx;
	static const uint8_t kinds[] = {
		[HEAP_ALLOC] = EVENT_ALLOC,
		[HEAP_FREE] = EVENT_FREE,
		[HEAP_REALLOC_BEGIN] = EVENT_REALLOC_BEGIN,
		[HEAP_REALLOC_END] = EVENT_REALLOC_END,
		[HEAP_MAPPING_CALL] = EVENT_MAPPING_CALL,
		[HEAP_SAMPLE] = EVENT_SAMPLE,
		[HEAP_PROGRAM_END] = EVENT_PROGRAM_END,
	};
	const struct options *o = s->run->options;
	session_stacks_see(s, he);
	if (he->kind == HEAP_MAP || he->kind == HEAP_UNMAP || he->kind == HEAP_FAULT) {
		sources_event(s, he);
		return;
	}
	struct event ev = {
		.time_ns = he->time_ns,
		.thread = he->thread,
		.kind = kinds[he->kind],
		.function = he->function,
		.addr = he->addr,
		.old_addr = he->old_addr,
		.size = he->size,
		.align = he->align,
		.sp = he->sp,
		.is_inner = he->is_inner,
	};
	if (ev.kind == EVENT_REALLOC_END && ev.addr && !ev.size && !o->realloc_zero_bytes_frees)
		ev.size = 1;
	if (o->trace_malloc)
		trace_call(s, he);
	if (he->frame)
		ev.node = path_node(s, he);
	if (he->stack) {
		if (he->frame)
			verify_stack(s, he, ev.node);
		else
			ev.node = session_stack_node(s, s->profile, he->stack, 0);
	}
	if (s->events)
		events_writer_event(s->events, profile_calltree(s->profile), &ev);
	usage_event(s, &ev);
	if (s->flows)
		flows_event(s->flows, &ev);
	if (o->heap)
		profile_event(s->profile, &ev);
}

static bool sink_wants_quick(void *ctx, struct space *space)
{
	(void)ctx;
	return space->user && session_wants_quick(space->user);
}

static uint32_t sink_node(void *ctx, struct space *space, const struct heap_event *he)
{
	(void)ctx;
	return find_path_node(space->user, he);
}

static void sink_quick(void *ctx, struct space *space, uint64_t time_ns,
		       const struct quick_event *ev, size_t count)
{
	(void)ctx;
	session_quick(space->user, time_ns, ev, count);
}

static void sink_thread_exit(void *ctx, struct space *space, pid_t tid)
{
	struct session *s = space->user;
	(void)ctx;
	profile_thread_exit(s->profile, (uint32_t)tid);
	usage_thread_exit(s, (uint32_t)tid);
	session_stacks_thread_exit(s, (uint32_t)tid);
	if (s->events)
		events_writer_thread_exit(s->events, (uint32_t)tid);
}

/* -- what the target asks -- */

static bool sink_in_signal(void *ctx, struct space *space, struct stack_view *view,
			   taddr_t outer_sp)
{
	struct session *s = space->user;
	(void)ctx;
	return s && unwind_in_signal(s->unwind, view, outer_sp);
}

static size_t sink_stack_pcs(void *ctx, struct space *space, struct stack_view *view, taddr_t *pcs,
			     size_t max, bool *is_whole_out)
{
	struct session *s = space->user;
	enum unwind_end end = UNWIND_NO_CFI;
	(void)ctx;
	size_t n = s ? unwind_walk_stopped(s->unwind, view, pcs, max, &end) : 0;
	*is_whole_out = end == UNWIND_COMPLETE;
	return n;
}

static taddr_t sink_find_row(void *ctx, struct space *space, taddr_t start, taddr_t end,
			     int *saved_out)
{
	struct session *s = space->user;
	(void)ctx;
	for (taddr_t pc = start + 1; s && pc < end; pc++) {
		const struct unwind_rule *rule = unwind_rule_get(s->unwind, pc);
		unsigned saved = rule->saved;
		if (rule->kind != RULE_SP || rule->cfa_offset != 16 || (saved & (saved - 1)))
			continue;
		int i = saved ? __builtin_ctz(saved) : -1;
		if (i >= 0 && rule->slot[i] != -2)
			continue;
		*saved_out = i;
		return pc;
	}
	return 0;
}

static bool sink_skip_exec(void *ctx, pid_t pid)
{
	struct run *run = ctx;
	return skip_exec(run->options, pid);
}

static void sink_rule_memory(void *ctx, struct space *space, struct unwind_rule *memory,
			     uint32_t bits)
{
	struct session *s = space->user;
	(void)ctx;
	unwind_set_memory(s->unwind, memory, bits, NULL, NULL);
}

void session_sink_fill(struct target_sink *sink, struct run *run)
{
	*sink = (struct target_sink){
		.ctx = run,
		.space_new = sink_space_new,
		.space_fork = sink_space_fork,
		.space_end = sink_space_end,
		.module_loaded = sink_module_loaded,
		.module_unloaded = sink_module_unloaded,
		.event = sink_event,
		.wants_quick = sink_wants_quick,
		.node = sink_node,
		.quick = sink_quick,
		.thread_exit = sink_thread_exit,
		.in_signal = sink_in_signal,
		.rule_memory = sink_rule_memory,
		.find_row = sink_find_row,
		.stack_pcs = sink_stack_pcs,
		.last_look = growth_last_look,
		.skip_exec = sink_skip_exec,
	};
}
