/*
 * Memory of the program in the place of ptmem's code is neither written nor unmapped. Stubs are
 * made again in another area, and threads that are in one, or return to one, are sent to the new
 * one. Pads are not made again: their functions get breakpoints.
 */
#include "tracee/control/replaced.h"

#include <errno.h>
#include <string.h>

#include "arch/pad.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "tracee/calls/entry.h"
#include "tracee/guard/trap_handler.h"
#include "tracee/inject/lost_code.h"
#include "tracee/inject/stub_area.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pad_restore.h"
#include "tracee/pads/pad_retreat.h"
#include "tracee/state/journal.h"
#include "tracee/state/pad_hooks.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/space_memory.h"
#include "tracee/state/space_modules.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap.h"
#include "tracee/state/trap_table.h"

#define SYSCALL_STUB_MAX 32u

/* A stub and its successor, which have the same layout. */
struct move {
	taddr_t from, to;
	uint32_t size;
	taddr_t old_return, new_return; /* 0 = none */
};
struct moves {
	VEC(struct move) list;
};

struct range {
	taddr_t start;
	uint32_t size;
};

/* -- one stub -- */

/* The new stub of the function at @trap; -ENOTSUP if it has another size than the old one. */
static int write_stub(const struct stub_place *place, const struct trap *trap,
		      struct arch_stub *stub_out)
{
	struct address_space *s = place->space;
	_cleanup_free_ uint8_t *code = xmalloc(trap->code_size);
	uint8_t out[STUB_MAX];
	struct stub_area *area;
	struct arch_move move = {.code = code, .code_size = trap->code_size, .from = trap->entry,
				 .out = out, .out_size = sizeof(out)};
	int rc = space_read_text(s, trap->entry, code, trap->code_size);
	if (rc == 0)
		rc = stub_area_get(place, trap->entry, &area);
	if (rc != 0)
		return rc;
	size_t at = trap->addr - trap->entry;
	if (at + trap->patch_size <= trap->code_size)
		memcpy(code + at, trap->original, trap->patch_size);
	move.to = area->start + area->used;
	rc = place->target->arch->make_stub(&move, stub_out);
	if (rc == 0 && stub_out->size != trap->stub.size)
		rc = -ENOTSUP;
	if (rc == 0)
		rc = space_write(s, move.to, out, stub_out->size);
	if (rc == 0)
		stub_area_use(area, stub_out->size);
	return rc;
}

static int move_function(const struct stub_place *place, uint32_t index, struct moves *moves)
{
	struct address_space *s = place->space;
	const struct arch *arch = place->target->arch;
	struct trap trap = s->traps.data[index], *old = space_trap_find(s, trap.stub.trap);
	struct arch_stub stub;
	int rc = write_stub(place, &trap, &stub);
	if (rc != 0)
		return rc;
	*vec_add(&moves->list) = (struct move){trap.stub.call, stub.call, stub.size,
					       trap.stub.trap, stub.trap};
	if (old)
		old->is_removed = true;
	journal_remove_trap(s, trap.stub.trap);
	trap.stub = s->traps.data[index].stub = stub;
	journal_add_trap(s, arch, &trap);
	trap.kind = TRAP_RETURN;
	trap.serve = entry_serve_return;
	trap.addr = stub.trap;
	trap.pad = 0;
	space_trap_note(s, arch, &trap);
	return 0;
}

static int move_syscall(const struct stub_place *place, uint32_t index, struct moves *moves)
{
	struct address_space *s = place->space;
	struct trap *trap = &s->traps.data[index];
	uint8_t stub[SYSCALL_STUB_MAX];
	taddr_t to;
	int rc = stub_area_take(place, trap->addr, sizeof(stub), &to);
	if (rc != 0)
		return rc;
	size_t size = place->target->arch->make_syscall_stub(trap->addr, to, stub, sizeof(stub));
	rc = size == trap->stub.size ? space_write(s, to, stub, size) : -ERANGE;
	if (rc != 0)
		return rc;
	*vec_add(&moves->list) = (struct move){trap->stub.jump, to, trap->stub.size, 0, 0};
	trap->stub.jump = to;
	journal_add_trap(s, place->target->arch, trap);
	return 0;
}

/* -- threads -- */

static void move_pc(struct target *t, struct thread *th, const struct move *m)
{
	struct arch_regs regs;
	if (ptrace_get_regs(th->tid, &regs) != 0)
		return;
	taddr_t pc = regs.word[t->arch->pc];
	if (pc - m->from < m->size)
		ptrace_set_word(th->tid, t->arch->pc, m->to + (pc - m->from));
}

static void move_calls(struct target *t, struct thread *th, const struct move *m)
{
	const struct address_space *s = th->process->space;
	struct pad_slot *slot = t->hooks.pads->slot(th);
	for (size_t i = 0; i < th->calls.list.count; i++) {
		struct call *call = &th->calls.list.data[i];
		uint64_t word = 0;
		if (call->stub_return != m->old_return)
			continue;
		if (space_read(s, call->return_at, &word, sizeof(word)) == 0 &&
		    word == m->old_return)
			space_write(s, call->return_at, &m->new_return, sizeof(word));
		call->stub_return = m->new_return;
		if (slot && slot->return_to == m->old_return)
			slot->return_to = m->new_return;
	}
}

static void move_threads(struct target *t, struct address_space *s, const struct moves *moves)
{
	struct thread *th;
	for_each_thread_in(t, s, th) {
		for (size_t i = 0; i < moves->list.count && !th->is_exiting; i++) {
			move_pc(t, th, &moves->list.data[i]);
			if (moves->list.data[i].old_return)
				move_calls(t, th, &moves->list.data[i]);
		}
	}
}

/* -- an area -- */

static bool is_in(const struct range *r, taddr_t addr)
{
	return addr - r->start < r->size;
}

/* A function whose stub cannot be made again is not watched any more. */
static void give_up(struct target *t, struct address_space *s, uint32_t index, int rc)
{
	struct trap *trap = &s->traps.data[index];
	log_warn("process %d: %s at %#lx is not watched any more: its stub was unmapped, and "
		 "there is no other place for it (%s)", s->processes.pid,
		 trap->probe ? trap->probe->symbol : "a system call", (unsigned long)trap->addr,
		 strerror(-rc));
	space_trap_take(s, t->arch, trap);
}

static void move_stubs(struct target *t, struct thread *th, const struct range *lost)
{
	struct address_space *s = th->process->space;
	struct moves moves = {0};
	const uint32_t count = (uint32_t)s->traps.count;
	for (uint32_t i = 0; i < count; i++) {
		const struct trap *trap = &s->traps.data[i];
		bool is_call = trap->kind == TRAP_ENTRY && is_in(lost, trap->stub.call);
		if (trap->is_removed ||
		    (!is_call && !(trap->kind == TRAP_SYSCALL && is_in(lost, trap->stub.jump))))
			continue;
		const struct stub_place place = {t, th, s, space_find_module(s, trap->addr)};
		int rc = !place.module ? -ENOENT :
			 is_call       ? move_function(&place, i, &moves) :
					 move_syscall(&place, i, &moves);
		if (rc != 0)
			give_up(t, s, i, rc);
	}
	stub_area_write_headers(s);
	move_threads(t, s, &moves);
	vec_deinit(&moves.list);
}

static bool is_lost(const struct address_space *s, const struct maps *maps,
		    const struct stub_area *a)
{
	return a->contents && a->size && lost_code_state(s, maps, a) == LOST_REPLACED;
}

bool replaced_move(struct target *t, struct thread *th, const struct maps *maps)
{
	struct address_space *s = th->process->space;
	bool lost_memory = pads_memory_state(s, maps) == LOST_REPLACED;
	/* threads still run out of pads before a detach: pad_leave.c */
	bool lost_pads = lost_memory && !t->is_leaving, lost_any = lost_memory;
	const size_t count = s->own.areas.count; /* new ones follow */
	for (size_t i = 0; i < count; i++) {
		struct stub_area *a = &s->own.areas.data[i], was = *a;
		const struct range lost = {a->start, a->size};
		if (!is_lost(s, maps, a))
			continue;
		lost_any = true;
		lost_pads |= a->is_pads;
		/* from now on the memory there is the program's */
		journal_remove_area(s, a->start);
		a->size = a->used = 0;
		if (was.is_trap_handler)
			trap_handler_move(t, s, th, &was);
		else if (!was.is_pads)
			move_stubs(t, th, &lost);
		own_memory_give_up(&s->own.areas.data[i]);
	}
	if (lost_memory)
		pads_forget_memory(s);
	if (lost_pads)
		pads_retreat(t, s);
	return lost_any;
}
