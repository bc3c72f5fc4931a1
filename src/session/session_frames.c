/* Frames of code addresses in the call trees of a session. */
#include "session/runtimes/code_names.h"
#include "session/runtimes/java_frames.h"
#include "session/session.h"
#include "tracee/control/target.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"

const struct module *session_module(struct session *s, taddr_t pc)
{
	const struct module *m = space_find_module(s->space, pc);

	return m ? m : target_refresh_module(s->run->target, s->space, pc);
}

/* Frame of @pc in @p's call tree. */
static uint32_t get_frame(struct session *s, struct profile *p, taddr_t pc)
{
	struct calltree *tree = profile_calltree(p);
	uint32_t frame = calltree_find_frame(tree, pc);
	if (frame)
		return frame;
	const struct module *m = session_module(s, pc);
	uint64_t key = code_names_may_cover(m) ? code_names_find(s, pc) : 0;

	return key ? calltree_get_frame(tree, key, 0) : calltree_get_frame(tree, pc, m ? m->id : 0);
}

uint32_t session_named_frame(struct session *s, struct profile *p, uint64_t key)
{
	struct calltree *tree = profile_calltree(p);
	uint32_t frame = calltree_find_frame(tree, key);

	if (frame)
		return frame;
	if (s->events.writer) {
		const struct symbol_frame *f = symbols_named(s->run->symbols, key)->frame;
		const struct events_name name = {.pc = key, .name = f->name, .file = f->file,
						 .dir = f->dir, .line = f->line};

		events_writer_name(s->events.writer, &name);
	}
	return calltree_get_frame(tree, key, 0);
}

uint32_t session_child(struct session *s, struct profile *p, uint32_t parent, taddr_t pc)
{
	struct calltree *tree = profile_calltree(p);
	uint32_t frame = calltree_find_frame(tree, pc);
	const uint64_t *keys;
	size_t n = 0;

	/* addresses of generated code are no frames while they can be explained */
	if (!frame && s->stacks.java && code_names_may_cover(session_module(s, pc)))
		n = java_frames_of(s->stacks.java, pc, &keys);
	if (!n)
		return calltree_get_child(tree, parent, frame ? frame : get_frame(s, p, pc));
	for (size_t i = 0; i < n; i++)
		parent = calltree_get_child(tree, parent, calltree_get_frame(tree, keys[i], 0));
	return parent;
}
