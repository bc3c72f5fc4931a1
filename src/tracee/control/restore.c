/* Areas of ptmem's code in whose place the program has mapped memory of its own. */
#include "tracee/control/control.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "arch/pad.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "tracee/calls/calls.h"
#include "tracee/guard/sigtrap_handler.h"
#include "tracee/inject/seccomp.h"
#include "tracee/inject/stop_all.h"
#include "tracee/inject/stub_area.h"
#include "tracee/os/maps.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pads.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"

struct maps;
struct target;
struct thread;

/*
 * Memory of the program in the place of ptmem's code is neither written nor unmapped. Stubs are
 * made again in another area, and threads that are in one, or return to one, are sent to the new
 * one. Pads are not made again: their functions get breakpoints.
 */

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

struct replaced_range {
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
	struct pad_slot *slot = pads_slot(th);
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

static bool is_in(const struct replaced_range *r, taddr_t addr)
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

static void move_stubs(struct target *t, struct thread *th, const struct replaced_range *lost)
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

/*
 * Makes what the program of @s has replaced, according to @maps, anew at other addresses, and moves
 * threads there; pads become breakpoints. All threads are stopped; @th makes the calls. Whether
 * anything was replaced.
 */
static bool replaced_move(struct target *t, struct thread *th, const struct maps *maps)
{
	struct address_space *s = th->process->space;
	bool lost_memory = pads_memory_state(s, maps) == LOST_REPLACED;
	/* threads still run out of pads before a detach: pad_leave.c */
	bool lost_pads = lost_memory && !t->is_leaving, lost_any = lost_memory;
	const size_t count = s->own.areas.count; /* new ones follow */
	for (size_t i = 0; i < count; i++) {
		struct stub_area *a = &s->own.areas.data[i], was = *a;
		const struct replaced_range lost = {a->start, a->size};
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

/*
 * A program may unmap mappings that it does not know, or take the rights to them away. The next
 * thread that gets there receives SIGSEGV: everything that is gone is mapped again, with all
 * threads stopped, and the thread repeats its instruction.
 */

/* A fault of a thread. */
struct fault {
	taddr_t addr, pc;
	bool was_unmapped;
};

static bool is_code(const struct stub_area *a)
{
	return a && a->contents;
}

static bool get_fault(const struct target *t, const struct thread *th, struct fault *out)
{
	struct arch_regs regs;
	siginfo_t info;
	if (ptrace_get_siginfo(th->tid, &info) != 0 || info.si_code <= 0 ||
	    info.si_code == SI_KERNEL || ptrace_get_regs(th->tid, &regs) != 0)
		return false;
	*out = (struct fault){(uintptr_t)info.si_addr, regs.word[t->arch->pc],
			      info.si_code == SEGV_MAPERR};
	return true;
}

static bool is_in_code(const struct address_space *s, taddr_t addr)
{
	return is_code(space_find_area(s, addr));
}

/* Whether @f is at memory of ours. A program that accesses pads' memory itself is left alone. */
static bool is_at_own(const struct address_space *s, const struct fault *f)
{
	return is_in_code(s, f->addr) ||
	       (is_in_code(s, f->pc) && pads_share_memory_at(s, f->addr));
}

/* Restores the code of @th's space. 0 or -errno. */
static int restore_code(struct target *t, struct thread *th, const struct maps *maps, bool *any_out)
{
	struct address_space *s = th->process->space;
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < s->own.areas.count; i++) {
		const struct stub_area *a = &s->own.areas.data[i];
		if (!is_code(a) || lost_code_state(s, maps, a) != LOST_GONE)
			continue;
		rc = lost_code_restore(t, th, maps, a);
		*any_out |= rc == 0;
	}
	return rc;
}

static int restore(struct target *t, struct address_space *s, const struct maps *maps)
{
	struct thread *th = seccomp_pick_thread(t, s);
	bool has_restored = false;
	int rc = th ? restore_code(t, th, maps, &has_restored) : -EPERM;
	if (rc == 0 && !replaced_move(t, th, maps))
		rc = pads_restore_memory(t, th, maps, &has_restored);
	if (has_restored)
		log_verbose("process %d has unmapped memory of the profile: it is mapped again",
			    s->processes.pid);
	if (rc != 0 && rc != -ESRCH)
		log_warn("process %d has unmapped memory of the profile, which cannot be mapped "
			 "again: %s", s->processes.pid, strerror(-rc));
	return rc;
}

static bool lacks_code(const struct address_space *s, const struct maps *maps)
{
	bool lacks = false;
	for (size_t i = 0; i < s->own.areas.count && !lacks; i++) {
		const struct stub_area *a = &s->own.areas.data[i];
		lacks = is_code(a) && lost_code_state(s, maps, a) != LOST_NOT;
	}
	return lacks;
}

/* 1: something was lost and is restored; 0: nothing is; or -errno. */
static int check_and_restore(struct target *t, struct address_space *s)
{
	struct maps maps;
	int rc = maps_read(s->processes.reader, &maps);
	if (rc != 0)
		return rc;
	if (lacks_code(s, &maps) || pads_memory_state(s, &maps) != LOST_NOT) {
		rc = restore(t, s, &maps);
		rc = rc == 0 ? 1 : rc;
	}
	maps_deinit(&maps);
	return rc;
}

void restore_space(struct target *t, struct address_space *s)
{
	if (s->own.areas.count > 0)
		check_and_restore(t, s);
}

/*
 * Whether @th, which stopped at @f, can repeat its instruction. If nothing is lost any more,
 * another thread's fault was served first; but a write to code is a fault of the program.
 */
static bool serve(struct target *t, const struct thread *th, const struct fault *f)
{
	struct address_space *s = th->process->space;
	int rc = check_and_restore(t, s);
	return rc > 0 || (rc == 0 && (f->was_unmapped || is_in_code(s, f->pc)));
}

bool restore_serve_fault(struct target *t, struct thread *th)
{
	pid_t tid = th->tid;
	struct fault f;
	if (!get_fault(t, th, &f) || !is_at_own(th->process->space, &f))
		return false;
	trap_handler_restore_blocked(th, SIGSEGV);
	bool is_alone = !t->is_stopping, is_served;
	th->state = THREAD_STOPPED;
	th->is_held = true;
	th->held_signal = 0;
	thread_consume_stop(t, th);
	if (!is_alone)
		return true; /* it faults again when all threads continue */
	stop_all(t);
	th = thread_find(t, tid);
	is_served = !th || th->is_exiting || serve(t, th, &f);
	th = thread_find(t, tid);
	if (!is_served && th && th->is_held)
		th->held_signal = SIGSEGV;
	resume_all(t);
	return true;
}
