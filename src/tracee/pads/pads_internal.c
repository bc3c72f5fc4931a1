/* Functions shared by all files of the pads. */
#include "tracee/pads/pads_internal.h"
#include "tracee/state/probe.h"
#include "tracee/state/space_memory.h"

#include <stdlib.h>

void pads_delete(struct pads *p)
{
	ring_deinit(&p->ring);
	vec_deinit(&p->list);
	vec_deinit(&p->trap);
	vec_deinit(&p->owner);
	vec_deinit(&p->deleted);
	free(p);
}

const struct trap *pads_find_entry(const struct pads *p, const struct address_space *s,
				   taddr_t after)
{
	for (size_t i = 0; i < p->list.count; i++) {
		if (after && p->list.data[i].after == after)
			return &s->traps.data[p->trap.data[i]];
	}
	return NULL;
}

void pads_exchange_return(const struct pads *p, struct address_space *s, taddr_t at, taddr_t after)
{
	const struct trap *trap = pads_find_entry(p, s, after);
	if (!trap)
		return;
	/* the pad saves the register that the code there restores (promote_trap) */
	bool may_throw = trap->probe->may_throw && s->unwind_through.pc;
	taddr_t to = may_throw ? s->unwind_through.pc : trap->stub.trap;
	space_write(s, at, &to, sizeof(to));
}

void pads_follow_losing(const struct target *t, struct pads *p)
{
	pad_memory_set_flags(&p->memory, (p->memory.written.flags & ~PAD_LOSES) |
						 (pads_lose(t) ? PAD_LOSES : 0));
}
