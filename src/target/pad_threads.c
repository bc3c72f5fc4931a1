/*
 * The slots of threads: who has one, and the bounds of its stack. See pads.h.
 */
#include <errno.h>

#include "base/log.h"
#include "target/pads_internal.h"
#include "target/ptrace.h"

#define MAIN_STACK_ROOM (1ull << 30)

struct pad_slot *pads_slot(const struct thread *th)
{
	struct pads *p = th->process->space->pads;
	return p && th->thread_pointer ? pad_memory_slot(&p->memory, th->slot) : NULL;
}

/* The map that holds @addr; -EFAULT if none does. */
static int find_map(const struct space *s, taddr_t addr, struct map_bounds *out)
{
	struct maps maps;
	int rc = s->maps_fd >= 0 ? maps_query_bounds(s->maps_fd, addr, out) : -ENOTTY;
	if (rc >= 0)
		return rc == 1 ? 0 : -EFAULT;
	rc = maps_read(s->reader, &maps);
	if (rc != 0)
		return rc;
	const struct map *m = maps_find(&maps, addr);
	if (m)
		*out = (struct map_bounds){m->start, m->end, map_is_main_stack(m)};
	maps_deinit(&maps);
	return m ? 0 : -EFAULT;
}

int pads_stack_bounds(struct thread *th, taddr_t sp, taddr_t *low, taddr_t *high)
{
	struct map_bounds map;
	int rc = find_map(th->process->space, sp, &map);
	if (rc != 0)
		return rc;
	*low = map.is_main_stack && map.start > MAIN_STACK_ROOM ? map.start - MAIN_STACK_ROOM :
								  map.start;
	*high = map.end;
	if (th->thread_pointer > sp && th->thread_pointer < *high)
		*high = th->thread_pointer; /* the thread's control block ends its stack */
	return 0;
}

static void own_slot(struct pads *p, struct thread *th, uint32_t slot)
{
	while (p->owner.count <= slot)
		*vec_add(&p->owner) = 0;
	p->owner.data[slot] = th->tid;
	th->slot = slot;
	ring_reset_slot(&p->ring, slot);
}

int pads_give_slot(struct target *t, struct thread *th, uint64_t thread_pointer, taddr_t sp)
{
	struct pads *p = th->process->space->pads;
	taddr_t low, high;
	th->thread_pointer = thread_pointer;
	bool has_room = pad_memory_has_room(&p->memory, thread_pointer) || pads_grow(t, th);
	int rc = has_room ? pads_stack_bounds(th, sp, &low, &high) : -ENOSPC;
	if (rc == 0) {
		pads_catch_up(t,
			      th->process->space); /* a slot used before: its records come first */
		rc = pad_memory_add_thread(&p->memory, thread_pointer, low, high);
	}
	if (rc < 0) {
		th->thread_pointer = 0;
		return rc;
	}
	own_slot(p, th, (uint32_t)rc);
	return 0;
}

bool pads_slot_is_taken(const struct thread *th, uint64_t thread_pointer)
{
	struct pads *p = th->process->space->pads;
	int slot = pad_memory_find_thread(&p->memory, thread_pointer);
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
		return; /* shares its parent's: breakpoints serve it where the pads cannot */
	pads_give_slot(t, th, pointer, regs.word[t->arch->sp]);
}

void pads_thread_exit(struct target *t, struct thread *th)
{
	struct space *s = th->process->space;
	struct pads *p = s->pads;
	if (!p || !th->thread_pointer)
		return;
	pads_catch_up(t, s);
	if (p->owner.data[th->slot] != th->tid)
		return; /* its thread pointer is in use again */
	p->owner.data[th->slot] = 0;
	pad_memory_remove_thread(&p->memory, th->thread_pointer);
	th->thread_pointer = 0;
}
