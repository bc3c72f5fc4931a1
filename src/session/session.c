/*
 * What other modules need from a session: frames and nodes for addresses and stacks, and its
 * process. session_life.c creates and ends sessions.
 */
#include "session/session.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "session/pseudo_frame.h"
#include "tracee/control/target.h"
#include "tracee/state/space_modules.h"

#define MAX_FRAMES 16384
#define TITLE_MAX 100 /* in characters */

/* -- stacks -- */

const struct module *session_module(struct session *s, taddr_t pc)
{
	const struct module *m = space_find_module(s->space, pc);

	return m ? m : target_refresh_module(s->run->target, s->space, pc);
}

uint32_t session_frame(struct session *s, struct profile *p, taddr_t pc)
{
	struct calltree *tree = profile_calltree(p);
	uint32_t frame = calltree_find_frame(tree, pc);
	if (frame)
		return frame;
	const struct module *m = session_module(s, pc);
	return calltree_get_frame(tree, pc, m ? m->id : 0);
}

/* The frames of @view, innermost first, in @pcs (MAX_FRAMES). */
static size_t walk(struct session *s, const struct stack_view *view, taddr_t *pcs,
		   enum unwind_end *end_out)
{
	size_t n = unwind_walk(s->stacks.unwind, view, pcs, MAX_FRAMES, end_out);
	s->stacks.counts.taken++;
	s->stacks.counts.ends[*end_out]++;
	s->stacks.counts.complete += *end_out == UNWIND_COMPLETE;
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
	for (; n > first; n--)
		node = calltree_get_child(tree, node, session_frame(s, p, pcs[n - 1]));
	return node;
}

/* -- the process -- */

bool session_was_attached(const struct session *s)
{
	return s->image.was_attached;
}

char *session_title(const struct session *s)
{
	size_t length = strlen(s->process.command);
	while (length > 0 && s->process.command[length - 1] == ' ')
		length--; /* a process pads a title that it sets itself */
	_cleanup_free_ char *clean = text_clean(s->process.command, length);
	return text_for_locale(text_cut(clean, TITLE_MAX));
}

bool session_is_silent(const struct session *s)
{
	return s->run->options->children.silent_after_fork && !s->image.is_own;
}

struct report session_report(struct session *s)
{
	struct report r;
	source_fill_report(&s->source[SOURCE_HEAP], &r);
	return r;
}
