/* Frames of code addresses in the call trees of a session. */
#include "session/session.h"

#include "tracee/control/target.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"

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
