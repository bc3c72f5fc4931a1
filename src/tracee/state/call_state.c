/* The calls that a thread is in. See call_state.h. */
#include "tracee/state/call_state.h"

void call_state_deinit(struct call_state *c)
{
	vec_deinit(&c->list);
	vec_deinit(&c->thrown);
}

void call_state_clear(struct call_state *c)
{
	c->list.count = c->thrown.count = 0;
	c->has_deleted = c->had_signal = false;
}

void call_state_copy(struct call_state *to, const struct call_state *from)
{
	for (size_t i = 0; i < from->list.count; i++)
		*vec_add(&to->list) = from->list.data[i];
}

bool call_state_reaches(const struct call_state *c, taddr_t sp)
{
	for (size_t i = 0; i < c->list.count; i++)
		if (c->list.data[i].sp >= sp)
			return true;
	return false;
}

const struct call *call_state_innermost(const struct call_state *c)
{
	return c->list.count ? &c->list.data[c->list.count - 1] : NULL;
}

void call_state_note_signal(struct call_state *c)
{
	if (c->list.count > 0)
		c->had_signal = true;
}

struct thrown *call_state_find_thrown(const struct call_state *c, taddr_t sp)
{
	for (size_t i = c->thrown.count; i-- > 0;) {
		struct thrown *thrown = &c->thrown.data[i];
		if (thrown->return_to && thrown->sp == sp)
			return thrown;
	}
	return NULL;
}

void call_state_add_thrown(struct call_state *c, const struct thrown *thrown)
{
	if (c->thrown.count > 0 && !c->thrown.data[c->thrown.count - 1].raised)
		c->thrown.count--;
	*vec_add(&c->thrown) = *thrown;
}

bool call_state_has_raised(const struct call_state *c, taddr_t caught)
{
	for (size_t i = 0; i < c->list.count; i++)
		if (c->list.data[i].raised)
			return true;
	for (size_t i = 0; i < c->thrown.count; i++)
		if (c->thrown.data[i].raised && c->thrown.data[i].raised != caught)
			return true;
	return false;
}
