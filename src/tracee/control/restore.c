/*
 * A program may unmap mappings that it does not know, or take the rights to them away. The next
 * thread that gets there receives SIGSEGV: everything that is gone is mapped again, with all
 * threads stopped, and the thread repeats its instruction.
 */
#include "tracee/control/restore.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/log.h"
#include "tracee/control/replaced.h"
#include "tracee/guard/trap_handler.h"
#include "tracee/inject/lost_code.h"
#include "tracee/inject/seccomp.h"
#include "tracee/inject/world.h"
#include "tracee/os/maps.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pad_restore.h"
#include "tracee/state/space.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

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
	world_stop(t);
	th = thread_find(t, tid);
	is_served = !th || th->is_exiting || serve(t, th, &f);
	th = thread_find(t, tid);
	if (!is_served && th && th->is_held)
		th->held_signal = SIGSEGV;
	world_start(t);
	return true;
}
