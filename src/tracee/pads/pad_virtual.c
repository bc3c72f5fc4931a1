/*
 * What ptmem publishes of an interpreter in the memory that it shares with pads. A space keeps the
 * layout, for pads that are made later.
 */
#include <string.h>

#include "tracee/pads/pad_memory.h"
#include "tracee/pads/pad_state.h"
#include "tracee/pads/pads.h"
#include "tracee/state/space.h"

void pads_set_virtual(struct address_space *s, const struct pad_virtual_layout *layout)
{
	s->virtual = *layout;
	if (s->pads)
		pad_memory_set_virtual(&s->pads->memory, layout);
}

void pads_set_labels(struct address_space *s, const struct pad_label *label)
{
	memcpy(s->label, label, sizeof(s->label));
	if (s->pads)
		pad_memory_set_labels(&s->pads->memory, label);
}

void pads_know_function(struct address_space *s, uint64_t identity, uint64_t stamp)
{
	if (s->pads)
		pad_memory_know(&s->pads->memory, identity, stamp);
}

void pads_count_death(struct address_space *s)
{
	if (s->pads)
		pad_memory_count_death(&s->pads->memory);
}

/* Another thread has @state now, and may free it: pads of @slot are the only ones that read it. */
static void take_from_others(struct pad_memory *m, taddr_t state, uint32_t slot)
{
	for (uint32_t i = 0; state && i < m->slots.used; i++) {
		struct pad_slot *p = pad_memory_slot(m, i);

		if (i != slot && p && p->virtual_state == state)
			p->virtual_state = 0;
	}
}

void pads_set_thread_states(struct address_space *s, uint64_t thread_pointer,
			    const taddr_t *state, uint32_t count)
{
	int slot = -1;

	if (s->pads && thread_pointer)
		slot = pad_slots_find(&s->pads->memory, thread_pointer);
	if (slot < 0)
		return;
	struct pad_slot *p = pad_memory_slot(&s->pads->memory, (uint32_t)slot);

	if (count > PAD_OUTER_STATES + 1)
		count = 0;
	for (uint32_t i = 0; i < count; i++)
		take_from_others(&s->pads->memory, state[i], (uint32_t)slot);
	p->virtual_state = count ? state[0] : 0;
	for (uint32_t i = 0; i < PAD_OUTER_STATES; i++)
		p->virtual_outer[i] = i + 1 < count ? state[i + 1] : 0;
}
