/*
 * A program may unmap shared mappings that it does not know: sandboxes and checkpointers go through
 * /proc/self/maps. The next pad then gets SIGSEGV at its first access to the memory. Nothing is
 * lost, since ptmem has mapped that memory, too: it is mapped again at the same address, and the
 * instruction is retried.
 *
 * The target has no descriptor of the file any more and cannot be given one. So it creates a new
 * file, which gets the old one's contents and replaces it here, too, at the same address.
 *
 * One case cannot be repaired: if the program maps something else there before the next call of a
 * watched function, pads write to that (ptmem(1), CAVEATS).
 */
#include "tracee/pads/pad_restore.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "tracee/inject/seccomp.h"
#include "tracee/inject/world.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pad_mapping.h"
#include "tracee/pads/pads_internal.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

/* The part of the memory that contains @addr: 0 = the first, 1... = a chunk of slots, -1 = none. */
static int find_part(const struct pad_memory *m, taddr_t addr)
{
	if (addr - m->target < m->layout.file_size)
		return 0;
	for (uint32_t i = 1; i < m->slots.chunk_count; i++) {
		if (addr - m->slots.chunk[i].target < m->slots.chunk[i].size)
			return (int)i;
	}
	return -1;
}

/*
 * The part of the pads' memory that @th, stopped for SIGSEGV in a pad, could not access; -1 =
 * none.
 */
static int find_lost_part(struct target *t, const struct thread *th)
{
	const struct address_space *s = th->process->space;
	struct arch_regs regs;
	siginfo_t info;
	if (!s->pads || ptrace_get_siginfo(th->tid, &info) != 0 || info.si_code <= 0 ||
	    info.si_code == SI_KERNEL || ptrace_get_regs(th->tid, &regs) != 0)
		return -1;
	const struct stub_area *area = space_find_area(s, regs.word[t->arch->pc]);
	return area && area->is_pads ? find_part(&s->pads->memory, (uintptr_t)info.si_addr) : -1;
}

static int restore_part(struct target *t, struct thread *th, int part)
{
	struct pad_memory *m = &th->process->space->pads->memory;
	if (!seccomp_allows_injection(t, th->tid, NULL))
		return -EPERM;
	int own, fd = pads_open_file(t, th, &own);
	if (fd < 0)
		return fd;
	int rc = pad_memory_replace(m, (uint32_t)part, own);
	if (rc != 0)
		close(own);
	else if (part == 0)
		rc = pads_map_over(t, th, fd, m, m->target);
	else
		rc = pads_map_chunk_over(t, th, fd, &m->slots.chunk[part]);
	pads_close_file(t, th, fd);
	return rc;
}

/* All threads are stopped, including @tid if it still exists. 0 or -errno. */
static int restore(struct target *t, pid_t tid, int part)
{
	struct thread *th = thread_find(t, tid);
	if (!th || th->is_exiting || !th->process->space->pads)
		return -ESRCH;
	int rc = restore_part(t, th, part);
	if (rc == 0)
		log_verbose("process %d has unmapped memory of the profile: it is mapped again",
			    th->process->pid);
	else if (rc != -ESRCH)
		log_warn("process %d has unmapped memory of the profile, which cannot be mapped "
			 "again: %s", th->process->pid, strerror(-rc));
	return rc;
}

bool pads_restore_memory(struct target *t, struct thread *th)
{
	pid_t tid = th->tid;
	int part = find_lost_part(t, th), rc = 0;
	if (part < 0)
		return false;
	bool is_alone = !t->is_stopping;
	th->state = THREAD_STOPPED;
	th->is_held = true;
	th->held_signal = 0;
	thread_consume_stop(t, th);
	if (!is_alone)
		return true; /* it faults again when all threads continue */
	world_stop(t);
	rc = restore(t, tid, part);
	th = thread_find(t, tid);
	if (rc != 0 && th && th->is_held)
		th->held_signal = SIGSEGV;
	world_start(t);
	return true;
}
