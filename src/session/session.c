/* The frames of a session's call trees and their names, for its profiles and for writers. */
#include "session/session.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "session/memory_source.h"
#include "session/runtimes/code_names.h"
#include "session/runtimes/java_frames.h"
#include "session/runtimes/v8_stacks.h"
#include "session/runtimes/virtual_stacks.h"
#include "tracee/control/target.h"
#include "tracee/state/module.h"

static struct frame_names *get_names(struct source *src, uint32_t frame)
{
	uint64_t changes = symbols_changes(src->session->run->symbols);
	size_t known = src->names_changes == changes ? src->names.count : 0;

	if (frame >= known) {
		vec_reserve(&src->names, (size_t)frame + 1);
		memset(&src->names.data[known], 0,
		       (src->names.capacity - known) * sizeof(*src->names.data));
		src->names.count = src->names.capacity;
		src->names_changes = changes;
	}
	return &src->names.data[frame];
}

/* For the call tree of @ctx, a struct source. */
static const struct symbol *find_symbol(void *ctx, uint32_t frame, enum symbol_part part)
{
	struct source *src = ctx;
	struct run *run = src->session->run;
	const struct symbol **known = &get_names(src, frame)->part[part];

	if (*known)
		return *known;
	const struct calltree_frame *f = calltree_frame(profile_calltree(src->profile), frame);

	return *known = run_symbol(run, f, part);
}

bool memory_source_is_counted(struct source *src, uint32_t frame)
{
	struct run *run = src->session->run;
	bool *is_counted = &get_names(src, frame)->is_counted;

	if (*is_counted)
		return true;
	const struct calltree_frame *f = calltree_frame(profile_calltree(src->profile), frame);
	const char *name = run_function(run, f);

	return *is_counted = name && !filter_is_alloc_fn(run->filter, name);
}

static enum memory_kind memory_kind(const struct source *src)
{
	static const uint8_t kinds[SOURCE_COUNT] = {
		[SOURCE_HEAP] = MEMORY_HEAP, [SOURCE_BRK] = MEMORY_BRK,
		[SOURCE_MMAP] = MEMORY_MAPPED, [SOURCE_FAULTS] = MEMORY_FAULTS,
	};
	bool is_pages = src->kind == SOURCE_HEAP &&
			src->session->run->options->profile.pages_as_heap;

	return is_pages ? MEMORY_PAGES : (enum memory_kind)kinds[src->kind];
}

void memory_source_fill_report(struct source *src, struct report *out)
{
	struct session *s = src->session;
	const struct options *o = s->run->options;
	*out = (struct report){
		.profile = src->profile,
		.filter = s->run->filter,
		.symbol = find_symbol,
		.symbol_ctx = src,
		.desc = src->kind == SOURCE_HEAP ? s->process.desc : o->desc,
		.command = s->process.command,
		.threshold = o->profile.threshold,
		.pid = s->process.pid,
		.my_code = o->names.my_code.rule.count ? &o->names.my_code : NULL,
		.fullpath_after = o->names.fullpath_after.data,
		.fullpath_after_count = o->names.fullpath_after.count,
		.memory = memory_kind(src),
	};
	if (src->kind == SOURCE_FAULTS)
		out->cut_frame =
			pseudo_frame_find(profile_calltree(src->profile), PSEUDO_TRUNCATED);
}

/*
 * What other modules need from a session: frames and nodes for addresses and stacks, and its
 * process. session_life.c creates and ends sessions.
 */

#define MAX_FRAMES 16384
#define TITLE_MAX 100 /* in characters */

/* -- --verify-stacks -- */

#define SECOND_FRAMES 256u /* libunwind takes up to 0.1 ms for each */
#define DIFFERENCES_MAX 10u /* messages for each process */

bool session_verifies(struct session *s)
{
	uint32_t every = s->run->options->tracing.verify_stacks;

	return every && s->stacks.counts.seen++ % every == 0;
}

bool session_stack_differs(struct session *s)
{
	return ++s->stacks.counts.differing <= DIFFERENCES_MAX;
}

/* Compares the @count frames at @pcs with those that libunwind finds, as far as it can walk. */
static void compare_frames(struct session *s, const struct stack_view *view, const taddr_t *pcs,
			   size_t count)
{
	taddr_t second[SECOND_FRAMES];
	size_t n = unwind_walk_again(s->stacks.unwind, view, second, ARRAY_SIZE(second));
	size_t both = MIN(n, count), i = 0;

	s->stacks.counts.verified++;
	s->stacks.counts.second_frames += both;
	while (i < both && pcs[i] == second[i])
		i++;
	if (i < both && session_stack_differs(s))
		log_warn("thread %d: frame %zu of a stack is at %#lx, by libunwind at %#lx",
			 view->stopped, i, (unsigned long)pcs[i], (unsigned long)second[i]);
}

/* The frames of @view, innermost first, in @pcs (MAX_FRAMES). */
static size_t walk(struct session *s, const struct stack_view *view, taddr_t *pcs,
		   enum unwind_end *end_out)
{
	unwind_keep_fp(s->stacks.unwind, v8_stacks_are_on(s) ? s->run->fps : NULL);
	size_t n = unwind_walk(s->stacks.unwind, view, pcs, MAX_FRAMES, end_out);
	unwind_keep_fp(s->stacks.unwind, NULL);
	s->stacks.counts.taken++;
	s->stacks.counts.ends[*end_out]++;
	s->stacks.counts.complete += *end_out == UNWIND_COMPLETE;
	if (view->stopped && session_verifies(s))
		compare_frames(s, view, pcs, n);
	return n;
}

bool session_hides(const struct session *s, taddr_t pc)
{
	const struct module *m =
		s->space && s->space->heap.sampling ? space_find_module(s->space, pc) : NULL;

	return m && module_hides(m, pc);
}

uint32_t session_stack_node(struct session *s, struct profile *p, const struct stack_view *view)
{
	enum unwind_end end = UNWIND_COMPLETE;
	struct calltree *tree = profile_calltree(p);
	if (!s->run->pcs) /* too large for the stack */
		s->run->pcs = xcalloc(MAX_FRAMES, sizeof(*s->run->pcs));
	if (v8_stacks_are_on(s) && !s->run->fps)
		s->run->fps = xcalloc(MAX_FRAMES, sizeof(*s->run->fps));
	taddr_t *pcs = s->run->pcs;
	size_t n = walk(s, view, pcs, &end);
	uint32_t node = 0;
	size_t first = 0;
	while (first < n && session_hides(s, pcs[first]))
		first++;
	/* the frame where the copy ends is not an outermost one */
	if (view->is_copy && end == UNWIND_NO_MEMORY) {
		s->stacks.counts.truncated++;
		node = calltree_get_child(
			tree, 0, pseudo_frame_get(s->run->symbols, tree, PSEUDO_TRUNCATED, NULL));
	}
	const struct native_stack native = {.pc = pcs + first, .count = n - first,
					    .tid = view->stopped,
					    .moved_from = view->moved_from,
					    .moved_to = view->moved_to,
					    .fp = s->run->fps ? s->run->fps + first : NULL};

	if (s->stacks.virtual && !node)
		return virtual_stack_node(s, p, &native);
	if (v8_stacks_are_on(s) && !node)
		return v8_stack_node(s, p, &native);
	for (; n > first; n--)
		node = session_child(s, p, node, pcs[n - 1]);
	return node;
}

/* -- the process -- */

char *session_title(const struct session *s)
{
	size_t length = strlen(s->process.command);
	while (length > 0 && s->process.command[length - 1] == ' ')
		length--; /* a process pads a title that it sets itself */
	_cleanup_free_ char *clean = text_clean(s->process.command, length);
	return text_for_locale(text_cut(clean, TITLE_MAX));
}

char *session_program_name(const struct session *s)
{
	const struct module *m = run_module(s->run, s->image.program);
	const char *name = m ? text_base_name(m->path) : s->process.command;

	return text_clean(name, strlen(name));
}

static bool has_former(const struct run *run)
{
	for (size_t i = 0; i < run->processes.count; i++)
		if (run->processes.data[i].former)
			return true;
	return false;
}

bool session_is_alone(const struct session *s)
{
	const struct run *run = s->run;
	bool is_listed = false;

	for (size_t i = 0; i < run->sessions.count; i++)
		is_listed |= run->sessions.data[i] == s;
	return run->sessions.count == is_listed && !run->ended_forks.count && !has_former(run) &&
	       !run->options->attach.follow.count &&
	       !(run->target && target_is_tracing(run->target));
}

bool session_is_silent(const struct session *s)
{
	return s->run->options->children.silent_after_fork && !s->image.is_own;
}

struct report session_report(struct session *s)
{
	struct report r;
	memory_source_fill_report(&s->source[SOURCE_HEAP], &r);
	return r;
}
