/*
 * The life of a session: what it is made of, how stacks become frames, and its end, when
 * the files are written. Names are looked up then, each address once (earlier only where
 * --ignore-fn or an object that is unloaded asks for them). See session.h for the picture.
 */
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "growth.h"
#include "output/memusage.h"
#include "output/shown_stack.h"
#include "session_output.h"
#include "session_stacks.h"
#include "summary.h"
#include "top.h"

#define MAX_FRAMES 16384

/* -- names -- */

/*
 * Without ignore-fns a block is ignored only if all its frames are alloc-fns. One
 * that is not settles it; the outermost is the same for most stacks.
 */
static bool is_surely_counted(const struct session *s, const struct calltree *tree, uint32_t node)
{
	if (filter_has_ignore_fns(s->run->filter) || !node ||
	    calltree_node_depth(tree, node) > filter_reach(s->run->filter))
		return false;
	while (calltree_parent(tree, node))
		node = calltree_parent(tree, node);
	const struct calltree_frame *f = calltree_frame(tree, calltree_node_frame(tree, node));
	const char *name = symbols_function(s->run->symbols, run_module(s->run, f->module), f->pc);
	return name && !filter_is_alloc_fn(s->run->filter, name);
}

static bool is_ignored(void *ctx, uint32_t node)
{
	struct source *src = ctx;
	struct report report;
	struct shown_stack stack = {.report = &report};
	if (is_surely_counted(src->session, profile_calltree(src->profile), node))
		return false;
	source_fill_report(src, &report);
	bool counts = shown_stack_fill(&stack, node);
	shown_stack_deinit(&stack);
	return !counts;
}

/* -- life -- */

static uint64_t read_instructions(void *ctx)
{
	struct session *s = ctx;
	return s->run->target ? target_instructions(s->run->target) : 0;
}

static const struct module *module_at(void *ctx, taddr_t pc)
{
	struct session *s = ctx;
	struct module *m = space_find_module(s->space, pc);
	return m ? m : target_refresh_module(s->run->target, s->space, pc);
}

void session_bind(struct session *s, struct space *space)
{
	struct unwind_ops ops = {.module = module_at, .ctx = s};
	s->space = space;
	space->user = s;
	s->unwind = unwind_new(arch_native, &ops);
}

struct session *session_new(struct run *run, uint32_t pid, uint64_t start_ns)
{
	const struct options *o = run->options;
	struct session *s = xcalloc(1, sizeof(*s));
	s->run = run;
	s->pid = pid;
	s->start_ns = s->end_ns = start_ns;
	s->image = *run_images(run, pid) + 1;
	s->is_own_image = true;
	s->command = xstrdup(run->command);
	struct profile_options po = {
		.time_unit = o->time_unit,
		.peak_inaccuracy = o->peak_inaccuracy,
		.peak_at_exit = o->peak_at_exit,
		.detailed_freq = o->detailed_freq,
		.max_snapshots = o->max_snapshots,
		.heap_admin = o->heap_admin,
		.alignment = o->alignment,
		.process = pid,
		.no_heap = !o->heap,
		.is_ignored = is_ignored,
		.is_ignored_ctx = &s->source[SOURCE_HEAP],
		.instructions = read_instructions,
		.instructions_ctx = s,
		.keep_times = growth_needs_times(o),
	};
	if (o->pages_as_heap)
		po.heap_admin = 0;
	s->profile = profile_new(&po, start_ns);
	sources_init(s, &po, start_ns);
	session_stacks_init(s);
	*vec_add(&run->sessions) = s;
	if (o->xtree_memory != XTREE_NONE)
		s->flows = flows_new(o->xtree_memory == XTREE_FULL);
	return s;
}

struct session *session_fork(struct session *parent, struct space *space)
{
	struct session *s = xmemdup(parent, sizeof(*parent));
	s->pid = (uint32_t)space->pid;
	s->command = xstrdup(parent->command);
	s->events = NULL;
	s->look = NULL;
	s->top_table = NULL;
	memset(&s->paths, 0, sizeof(s->paths));
	s->is_own_image = false;
	s->image = 1;
	s->profile = profile_clone(parent->profile);
	*vec_add(&s->run->sessions) = s;
	if (parent->flows)
		s->flows = flows_clone(parent->flows);
	profile_set_ctx(s->profile, &s->source[SOURCE_HEAP], s);
	profile_set_process(s->profile, s->pid);
	sources_fork(s);
	session_stacks_init(s); /* of the parent's threads only one goes on */
	session_bind(s, space);
	usage_fork(parent, s);
	return s;
}

void session_free(struct session *s)
{
	struct run *run = s->run;
	for (size_t i = 0; i < run->sessions.count; i++) {
		if (run->sessions.data[i] != s)
			continue;
		memmove(&run->sessions.data[i], &run->sessions.data[i + 1],
			(--run->sessions.count - i) * sizeof(*run->sessions.data));
	}
	growth_forget(s);
	top_forget(s);
	if (s->unwind)
		unwind_free(s->unwind);
	if (s->events)
		events_writer_free(s->events);
	for (size_t i = 0; i < s->paths.count; i++)
		free(s->paths.data[i].node);
	vec_deinit(&s->paths);
	memusage_free(s->memusage);
	stacks_free(s->stack_use);
	sources_deinit(s);
	profile_free(s->profile);
	flows_free(s->flows);
	free(s->command);
	free(s);
}

/* -- stacks -- */

uint32_t session_frame(struct session *s, struct profile *p, taddr_t pc)
{
	struct calltree *tree = profile_calltree(p);
	uint32_t frame = calltree_find_frame(tree, pc);
	if (frame)
		return frame;
	const struct module *m = module_at(s, pc);
	return calltree_get_frame(tree, pc, m ? m->id : 0);
}

/* The frames of @view, innermost first, in @pcs. */
static size_t walk(struct session *s, const struct stack_view *view, taddr_t pcs[MAX_FRAMES])
{
	enum unwind_end end = UNWIND_COMPLETE;
	size_t n = unwind_walk(s->unwind, view, pcs, MAX_FRAMES, &end);
	s->stacks++;
	s->ends[end]++;
	s->complete_stacks += end == UNWIND_COMPLETE;
	return n;
}

uint32_t session_stack_node(struct session *s, struct profile *p, const struct stack_view *view,
			    taddr_t innermost_offset)
{
	static taddr_t pcs[MAX_FRAMES]; /* scratch: too large for the stack */
	uint32_t node = 0;
	for (size_t n = walk(s, view, pcs); n > 0; n--) {
		taddr_t pc = pcs[n - 1] + (n == 1 ? innermost_offset : 0);
		node = calltree_get_child(profile_calltree(p), node, session_frame(s, p, pc));
	}
	return node;
}

/* -- the end -- */

bool session_is_silent(const struct session *s)
{
	return s->run->options->child_silent_after_fork && !s->is_own_image;
}

void session_finish(struct session *s, uint64_t now_ns)
{
	char *path = NULL;
	s->end_ns = now_ns;
	profile_finish(s->profile, now_ns);
	if (s->events) {
		events_writer_end(s->events, now_ns);
		int rc = events_writer_free(s->events);
		s->events = NULL;
		if (rc != 0) {
			log_error("cannot write %s: %s", s->run->options->events_file,
				  strerror(-rc));
			s->run->files_failed++;
		}
	}
	if (s->source[SOURCE_HEAP].is_traced) {
		struct report r;
		source_fill_report(&s->source[SOURCE_HEAP], &r);
		int rc = run_wants_massif(s->run) ? session_put_massif(s, &r, "", &path) : -ENOENT;
		session_finish_xtree(s, now_ns);
		if (!session_is_silent(s))
			summary_print(s, rc == 0 ? path : NULL);
		free(path);
	}
	sources_finish(s, now_ns);
	growth_finish(s, now_ns);
}
