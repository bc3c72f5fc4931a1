/*
 * What ptmem publishes of an interpreter, and of labels, in the memory that it shares with pads. A
 * space keeps it, for pads that are made later.
 */
#include <string.h>

#include "tracee/pads/pad_memory.h"
#include "tracee/pads/pad_state.h"
#include "tracee/pads/pads.h"
#include "tracee/state/space.h"
#include "tracee/state/trap_table.h"

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

bool pads_label_function(const struct address_space *s, taddr_t entry)
{
	for (size_t i = 0; i < PAD_LABELS; i++)
		if (s->label[i].kind != PAD_LABEL_NONE && s->label[i].base == PAD_LABEL_CALL &&
		    s->label[i].function == entry)
			return true;
	return false;
}

bool pads_is_at_entry(const struct address_space *s, const struct trap *trap, taddr_t pc)
{
	return s->pads && trap->pad && s->pads->list.data[trap->pad - 1].entry_trap == pc;
}

void pads_trap_calls(struct address_space *s)
{
	s->traps_calls = true;
	if (s->pads)
		pad_memory_set_traps_calls(&s->pads->memory, true);
}

bool pads_add_call_site(struct address_space *s, taddr_t pc)
{
	return s->pads && !s->traps_calls && pad_memory_add_call_site(&s->pads->memory, pc);
}

bool pads_has_call_site(const struct address_space *s, taddr_t pc)
{
	return s->pads && !s->traps_calls && pad_memory_has_call_site(&s->pads->memory, pc);
}

void pads_clear_call_sites(struct address_space *s)
{
	if (s->pads)
		pad_memory_clear_call_sites(&s->pads->memory);
}

static struct pad_slot *find_slot(const struct address_space *s, uint64_t thread_pointer)
{
	int slot = s->pads && thread_pointer ?
			   pad_slots_find(&s->pads->memory, thread_pointer) : -1;

	return slot < 0 ? NULL : pad_memory_slot(&s->pads->memory, (uint32_t)slot);
}

void pads_read_call(const struct address_space *s, uint64_t thread_pointer, uint32_t number,
		    struct pad_label_value *out)
{
	const struct pad_slot *slot = find_slot(s, thread_pointer);
	uint64_t word;

	*out = (struct pad_label_value){0};
	if (!slot)
		return;
	struct pad_label_value v = slot->call[number];

	if (v.sp && v.size <= PAD_LABEL_BYTES && v.state < PAD_LABEL_STATES &&
	    space_read(s, v.sp, &word, sizeof(word)) == 0 && word == v.return_pc)
		*out = v;
}

void pads_forget_calls(struct address_space *s, uint64_t thread_pointer, taddr_t entry)
{
	struct pad_slot *slot = find_slot(s, thread_pointer);

	for (size_t i = 0; slot && i < PAD_LABELS; i++)
		if (s->label[i].base == PAD_LABEL_CALL && s->label[i].function == entry)
			slot->call[i].sp = slot->label_epoch = 0;
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
