/*
 * Installs the SIGTRAP handler in the tracee and removes it again.
 */
#include "tracee/guard/sigtrap_handler.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "base/proc.h"
#include "tracee/inject/inject.h"
#include "tracee/inject/seccomp.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/journal.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"

/* Signals that cannot be blocked, or that libc reserves. */
#define NEVER_BLOCKED (SIGNALS_UNBLOCKABLE | SIGNAL_BIT(32) | SIGNAL_BIT(33))

static bool is_default_action(const struct proc_status *st)
{
	return !((st->ignored | st->caught) & SIGTRAP_BIT);
}

/* Whether @sig of @pid has the default action. */
static bool has_default(pid_t pid, int sig)
{
	struct proc_status st;
	return proc_status_read(pid, &st) == 0 && !((st.ignored | st.caught) & SIGNAL_BIT(sig));
}

static int set_action(struct target *t, struct thread *th, taddr_t action, taddr_t old)
{
	const uint64_t args[6] = {SIGTRAP, action, old, 8};
	int64_t result = -EIO;
	int rc = inject_syscall(t, th, SYS_rt_sigaction, args, &result);
	return rc != 0 ? rc : (int)result;
}

static int map_page(struct target *t, struct address_space *s, struct thread *th, taddr_t *at_out)
{
	const uint64_t args[6] = {0,
				  HANDLER_SIZE,
				  PROT_READ | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				  (uint64_t)-1,
				  0};
	int64_t at = -EIO;
	int rc = inject_mmap(t, th, args, &at);
	if (rc != 0 || at < 0)
		return rc != 0 ? rc : (int)at;
	own_memory_add_code(&s->own, (taddr_t)at, HANDLER_SIZE)->is_trap_handler = true;
	*at_out = (taddr_t)at;
	return 0;
}

static int install_page(struct target *t, struct address_space *s, struct thread *th)
{
	uint8_t page[HANDLER_DATA];
	taddr_t at = 0;
	/*
	 * A signal that it stopped for would cost a step, and if ptmem dies no handler takes the
	 * SIGTRAP of that step yet.
	 */
	int rc = inject_drain_sigtrap(t, th);
	if (rc == 0)
		rc = map_page(t, s, th, &at);
	if (rc != 0)
		return rc;
	arch_trap_handler_page(at, page);
	rc = space_write(s, at, page, sizeof(page));
	if (rc != 0)
		return rc;
	journal_note_handler(t, s, at);
	return set_action(t, th, at + HANDLER_ACTION, 0);
}

/*
 * Nothing protects the program if ptmem is killed: a breakpoint that it hits before the guardian
 * has removed it kills it. Where each call hits one (@has_jumps: false) that is nearly certain.
 */
static void note_risk(const struct target *t, struct address_space *s, bool has_jumps,
		      const char *reason, const char *call)
{
	s->recovery.is_unguarded = true;
	if (t->options.probes.no_promotion || !has_jumps)
		log_warn("process %d dies if ptmem is killed by SIGKILL (%s%s), for %seach call "
			 "hits a breakpoint; end ptmem by SIGINT or SIGTERM",
			 s->processes.reader, reason, call,
			 has_jumps ? "with --probes=break " : "");
	else
		log_verbose("process %d: a breakpoint may kill it if ptmem is killed by SIGKILL "
			    "(%s%s)", s->processes.reader, reason, call);
}

/* Whether a thread of @s does: for that the handler is of no use. */
static bool blocks_sigtrap(struct target *t, const struct address_space *s)
{
	const struct thread *th;
	uint64_t mask;

	for_each_thread_in(t, s, th) {
		if (ptrace_get_sigmask(th->tid, &mask) == 0 && mask & SIGTRAP_BIT)
			return true;
	}
	return false;
}

int trap_handler_install(struct target *t, struct address_space *s, struct thread *th)
{
	if (!s->recovery.journal)
		return -ENOSPC;
	if (s->recovery.journal->page || s->recovery.is_unguarded)
		return 0; /* it was tried before */
	struct proc_status st;
	struct seccomp_refusal why;
	int rc = th ? proc_status_read(th->tid, &st) : -EAGAIN;
	if (rc != 0)
		return rc;
	s->recovery.had_trap_handler = st.caught & SIGTRAP_BIT;
	if (!is_default_action(&st)) {
		note_risk(t, s, true, "it has its own handler of SIGTRAP, or ignores it", "");
		return 0;
	}
	if (!seccomp_allows_injection(t, th->tid, &why)) {
		note_risk(t, s, false, why.reason, why.call);
		return 0;
	}
	rc = install_page(t, s, th);
	if (rc == 0 && blocks_sigtrap(t, s))
		note_risk(t, s, true, "a thread blocks SIGTRAP", "");
	return rc;
}

/*
 * The kernel has reset the action of SIGTRAP in @p to the default. Warns once if the program had
 * its own handler when ptmem attached. A vfork child shares the space of its parent, but not its
 * signal actions.
 */
static void warn_lost(struct process *p)
{
	if (!p->space->recovery.had_trap_handler || p->is_vfork_child ||
	    !has_default(p->pid, SIGTRAP))
		return;
	p->space->recovery.had_trap_handler = false;
	log_warn("process %d no longer handles SIGTRAP, which may end it now: the kernel removes "
		 "the handler when a thread that blocks SIGTRAP hits a breakpoint",
		 p->pid);
}

bool trap_handler_restore_blocked(struct thread *th, int sig)
{
	uint64_t mask, all = ~NEVER_BLOCKED & ~SIGNAL_BIT(sig);
	if (ptrace_get_sigmask(th->tid, &mask) != 0 || (mask & all) != all ||
	    mask & SIGNAL_BIT(sig) || !has_default(th->tid, sig))
		return false;
	ptrace_set_sigmask(th->tid, mask | SIGNAL_BIT(sig));
	return true;
}

void trap_handler_restore_mask(struct target *t, struct thread *th)
{
	if (!trap_handler_restore_blocked(th, SIGTRAP))
		return;
	/* and our handler, if there was one, is no longer the action */
	th->process->space->recovery.is_unguarded |= th->process->space->recovery.journal != NULL;
	t->stats.masks_restored++;
	warn_lost(th->process);
}

#define SCRATCH_BELOW 1024u /* below the stack pointer and its red zone */

/* Whether the process of @th still has our handler: it may have installed another meanwhile. */
static bool is_ours(struct target *t, struct thread *th, taddr_t handler)
{
	struct arch_regs regs;
	uint64_t action[HANDLER_ACTION_SIZE / 8] = {0};
	if (ptrace_get_regs(th->tid, &regs) != 0)
		return false;
	taddr_t scratch = ROUND_DOWN(regs.word[t->arch->sp] - SCRATCH_BELOW, (taddr_t)16);
	int rc = set_action(t, th, 0, scratch);
	if (rc == -EFAULT)
		return !has_default(th->process->pid, SIGTRAP);
	return rc == 0 && space_read(th->process->space, scratch, action, sizeof(action)) == 0 &&
	       action[0] == handler;
}

int trap_handler_move(struct target *t, struct address_space *s, struct thread *th,
		      const struct stub_area *old)
{
	struct journal *r = s->recovery.journal;
	uint8_t page[HANDLER_DATA];
	taddr_t at = 0;
	if (!r || !r->has_handler)
		return 0;
	bool was_ours = is_ours(t, th, old->start);
	int rc = map_page(t, s, th, &at);
	if (rc != 0)
		return rc;
	arch_trap_handler_page(at, page);
	memcpy(old->contents, page, sizeof(page));
	rc = space_write(s, at, old->contents, old->written);
	if (rc != 0)
		return rc;
	journal_note_handler(t, s, at);
	return was_ours ? set_action(t, th, at + HANDLER_ACTION, 0) : 0;
}

static struct thread *pick_thread(struct target *t, const struct process *p)
{
	struct thread *th;
	for_each_thread(t, th) {
		if (th->process == p && !th->is_exiting && th->is_held &&
		    !th->vfork.is_waiting && seccomp_allows_injection(t, th->tid, NULL))
			return th;
	}
	return NULL;
}

void trap_handler_remove(struct target *t, struct address_space *s)
{
	struct journal *r = s->recovery.journal;
	bool is_left = false;
	if (!r || !r->has_handler)
		return;
	for (size_t i = 0; i < t->processes.count; i++) {
		struct process *p = t->processes.data[i];
		if (p->space != s || has_default(p->pid, SIGTRAP))
			continue;
		struct thread *th = pick_thread(t, p);
		if (th && is_ours(t, th, r->page))
			set_action(t, th, r->page + HANDLER_DEFAULT, 0);
		is_left |= !th;
	}
	if (!is_left)
		journal_note_handler_gone(s);
}

bool trap_handler_is_page(const struct address_space *s, taddr_t page)
{
	uint8_t want[HANDLER_DATA], got[HANDLER_DATA];
	arch_trap_handler_page(page, want);
	return space_read(s, page, got, sizeof(got)) == 0 && memcmp(got, want, sizeof(got)) == 0;
}
