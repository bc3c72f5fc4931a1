/* Assigns slots to threads, and sets the bounds of their stacks. */
#include "tracee/pads/pad_threads.h"

#include <errno.h>

#include "base/log.h"
#include "tracee/calls/stack_scan.h"
#include "tracee/os/maps.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pad_delivery.h"
#include "tracee/pads/pad_mapping.h"
#include "tracee/pads/pad_slots.h"
#include "tracee/pads/pad_thread.h"
#include "tracee/pads/pads_internal.h"
#include "tracee/pads/ring_stack.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

struct pad_slot *pads_slot(const struct thread *th)
{
	struct pads *p = th->process->space->pads;
	int index = pad_thread_slot(th);
	return p && index >= 0 ? pad_memory_slot(&p->memory, (uint32_t)index) : NULL;
}

static void own_slot(struct pads *p, struct thread *th, uint32_t slot)
{
	while (p->owner.count <= slot)
		*vec_add(&p->owner) = 0;
	p->owner.data[slot] = th->tid;
	struct pad_thread *own = pad_thread(th);
	own->slot = slot;
	own->waited_slot = own->waited_end = 0;
	own->misses = 0;
	ring_reset_slot(&p->ring, slot);
}

int pads_give_slot(struct target *t, struct thread *th, uint64_t thread_pointer, taddr_t sp)
{
	struct pads *p = th->process->space->pads;
	taddr_t low, high;
	pad_thread(th)->pointer = thread_pointer;
	bool has_room = pad_slots_have_room(&p->memory, thread_pointer) || pads_grow(t, th);
	int rc = has_room ? stack_scan_bounds(th, thread_pointer, sp, &low, &high) : -ENOSPC;
	if (rc == 0) {
		pads_catch_up(t,
			      th->process->space); /* a reused slot: its old records come first */
		rc = pad_slots_add(&p->memory, thread_pointer, low, high);
	}
	if (rc < 0) {
		pad_thread(th)->pointer = 0;
		return rc;
	}
	own_slot(p, th, (uint32_t)rc);
	return 0;
}

bool pads_slot_is_taken(const struct thread *th, uint64_t thread_pointer)
{
	struct pads *p = th->process->space->pads;
	int slot = pad_slots_find(&p->memory, thread_pointer);
	return slot >= 0 && (size_t)slot < p->owner.count && p->owner.data[slot] &&
	       p->owner.data[slot] != th->tid;
}

void pads_add_thread(struct target *t, struct thread *th)
{
	struct arch_regs regs;
	if (!th->process->space->pads || ptrace_get_regs(th->tid, &regs) != 0)
		return;
	uint64_t pointer = regs.word[t->arch->thread_pointer];
	if (pointer == 0 || (pads_slot_is_taken(th, pointer) && th->process->is_vfork_child))
		return; /* shares its parent's: breakpoints handle its calls where pads cannot */
	pads_give_slot(t, th, pointer, regs.word[t->arch->sp]);
}

void pads_thread_exit(struct target *t, struct thread *th)
{
	struct address_space *s = th->process->space;
	struct pads *p = s->pads;
	struct pad_thread *own = pad_thread(th);
	if (!p || !own->pointer)
		return;
	pads_catch_up(t, s);
	if (p->owner.data[own->slot] != th->tid)
		return; /* its thread pointer is reused */
	p->owner.data[own->slot] = 0;
	pad_slots_remove(&p->memory, own->pointer);
	own->pointer = 0;
}
