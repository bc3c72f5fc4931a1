/*
 * The lifetime of pads.
 */
#include "tracee/pads/pads.h"

#include <stdlib.h>

#include "tracee/pads/own_code.h"
#include "tracee/pads/pad_delivery.h"
#include "tracee/pads/pad_exceptions.h"
#include "tracee/pads/pad_fork.h"
#include "tracee/pads/pad_owner.h"
#include "tracee/pads/pad_sampling.h"
#include "tracee/pads/pad_service.h"
#include "tracee/pads/pad_threads.h"
#include "tracee/pads/pads_internal.h"
#include "tracee/state/pad_hooks.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

static void answer_blocks(struct address_space *s)
{
	if (s->pads)
		pad_memory_set_flags(&s->pads->memory,
				     s->pads->memory.written.flags | PAD_ANSWER_BLOCKS);
}

void pads_init(struct target *t)
{
	static const struct pad_hooks hooks = {
		.catch_up = pads_catch_up,
		.slot = pads_slot,
		.outer_kind = pads_outer_kind,
		.take_deleted = pads_take_deleted,
		.answer_blocks = answer_blocks,
		.filter = pads_filter,
		.add_totals = pads_add_totals,
		.set_sample_shift = pads_set_sample_shift,
		.suspend = pads_suspend,
		.raise = pads_raise,
		.resume = pads_resume,
	};
	t->hooks.pads = &hooks;
	t->pads = xcalloc(1, sizeof(*t->pads));
	pad_owner_init(&t->pads->owner);
}

void pads_deinit(struct target *t)
{
	own_code_free(t);
	pad_owner_deinit(&t->pads->owner);
	free(t->pads->distances);
	free(t->pads);
}

void pads_share(struct address_space *s)
{
	if (s->pads)
		pad_memory_set_shared(&s->pads->memory, true);
}

void pads_set_losing(struct target *t, bool is_losing)
{
	t->pads->is_losing = is_losing;
	for (size_t i = 0; i < t->processes.count; i++) {
		struct address_space *s = t->processes.data[i]->space;
		if (s->pads)
			pads_follow_losing(t, s->pads);
	}
}

taddr_t pads_mapped_at(const struct address_space *s, uint64_t *size_out)
{
	*size_out = s->own.shared_size;
	return s->own.shared;
}

void pads_free(struct target *t, struct address_space *s)
{
	pads_drop_fork_snapshot(s);
	struct pads *p = s->pads;
	if (!p)
		return;
	pad_owner_remove(&t->pads->owner, &p->memory);
	pad_memory_deinit(&p->memory);
	pads_delete(p);
	s->pads = NULL;
}
