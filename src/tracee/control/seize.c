/*
 * Seizes a running process: its threads are seized and interrupted, in passes over /proc/PID/task
 * until one finds no new thread. Then all are stopped.
 *
 * The process may execute a program meanwhile. A thread that was already seized reports that, and
 * stops at the first instruction of the new image (loop.c). A thread that was not takes over the
 * first thread's id unnoticed: the known first thread is gone then, and the id is seized again.
 */
#include "tracee/control/seize.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>

#include "base/log.h"
#include "base/proc.h"
#include "tracee/control/control_internal.h"
#include "tracee/control/faults.h"
#include "tracee/inject/stops.h"
#include "tracee/inject/world.h"
#include "tracee/os/instructions.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

/* If no function is watched, threads and (unless followed) children are not traced. */
#define FEW_OPTIONS (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT)
#define TRACE_OPTIONS \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | \
	 PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_TRACEVFORKDONE)

unsigned long seize_options(const struct target *t)
{
	const struct target_options *o = &t->options;
	bool is_watched = !o->probes.none || o->watch.brk || o->watch.mappings || o->watch.faults;
	if (o->only_reads) /* threads may run for a moment, and create others */
		return FEW_OPTIONS | PTRACE_O_TRACECLONE;
	return is_watched || o->follow.exec ? TRACE_OPTIONS : FEW_OPTIONS;
}

static void count_instructions(struct target *t, pid_t tid)
{
	int rc = instructions_add(&t->control->counters, tid, false);
	if (rc != 0 && rc != -ESRCH)
		log_warn("the instructions of thread %d are not counted: %s", tid, strerror(-rc));
}

/*
 * Whether @tid, for which ptrace failed, needs no seizing. Dying threads and a dead leader also
 * give EPERM, but they do not allocate any more; so does a thread that the kernel has just attached
 * to us because its creator is traced, and whose event is still to come.
 */
static bool is_gone_or_ours(pid_t tid, int seize_error)
{
	return seize_error == -ESRCH || ptrace_is_tracee(tid) || proc_is_dead(tid);
}

/* While a thread takes the place of a dead leader, the id belongs to one and then to the other. */
#define SEIZE_TRIES 3

/* 0, -ENOENT if there is nothing to seize, -ETIMEDOUT during execve, or -errno. */
static int seize(struct target *t, pid_t tid)
{
	int rc = -EPERM;
	for (int i = 0; i < SEIZE_TRIES && rc == -EPERM; i++) {
		rc = ptrace_seize(tid, seize_options(t));
		if (rc == -ETIMEDOUT && ptrace_is_tracee(tid))
			return 0;
		if (rc != 0 && rc != -ETIMEDOUT && is_gone_or_ours(tid, rc))
			return -ENOENT;
	}
	return rc;
}

static void watch_faults(struct target *t, pid_t tid)
{
	int rc = t->options.watch.faults ? faults_add(t, tid, false) : 0;
	if (rc != 0 && rc != -ESRCH && t->control->fault_error == 0)
		t->control->fault_error = rc;
}

static void add_seized(struct target *t, struct process *p, pid_t tid)
{
	struct thread *th = thread_add(t, tid, p);
	th->state = THREAD_RUNNING;
	if (t->options.events.count_instructions)
		count_instructions(t, tid);
	watch_faults(t, tid);
	if (ptrace_interrupt(tid) == 0)
		th->was_interrupted = true;
}

/* Whether @tid is known. Forgets a first thread whose id was taken over by an untraced one. */
static bool is_known(struct target *t, const struct process *p, pid_t tid)
{
	struct thread *th = thread_find(t, tid);
	if (!th || tid != p->pid || ptrace_is_tracee(tid))
		return th;
	thread_remove(t, th);
	return false;
}

/*
 * Whether a thread that was not seized has executed a program: it has the id of the first thread
 * then, and the one of that id that was known, perhaps as dead, does not exist any more.
 */
static bool has_executed(pid_t pid)
{
	return !ptrace_is_tracee(pid) && !proc_is_dead(pid);
}

/*
 * Seizes and interrupts the new threads of @p. Returns their number, or -errno for the first that
 * cannot be seized, and stops there: all tracers go through the threads in the same order, so of
 * two guardians the one that gets the first thread gets all of them.
 */
static int seize_pass(struct target *t, struct process *p)
{
	DIR *dir = proc_open_threads(p->pid);
	if (!dir)
		return -ESRCH;
	int found = 0, rc = 0;
	for (pid_t tid; rc == 0 && (tid = proc_next_thread(dir));) {
		if (is_known(t, p, tid))
			continue;
		int err = seize(t, tid);
		if (err == -ENOENT)
			continue;
		if (err != 0 && err != -ETIMEDOUT) {
			rc = err;
			continue;
		}
		found++;
		if (err == -ETIMEDOUT)
			break; /* again after the stopped threads were served */
		add_seized(t, p, tid);
	}
	closedir(dir);
	return rc != 0 ? rc : found;
}

int target_seize_all(struct target *t, pid_t pid)
{
	struct process *p;
	int found = 0;
	t->is_stopping = true;
	ptrace_limit_seize(true);
	do {
		p = process_find(t, pid); /* it may end while it is stopped */
		found = p ? seize_pass(t, p) : -ESRCH;
		if (p)
			world_stop(t);
		while (p && stops_serve_next(t, true) == 0)
			; /* the ends of threads that count as halted, for which an execve waits */
		p = process_find(t, pid);
	} while (found > 0 || (found == 0 && p && has_executed(pid)));
	ptrace_limit_seize(false);
	if (found < 0 || !p || p->threads == 0)
		return found < 0 ? found : -ESRCH;
	return thread_pick(t, p->space) ? 0 : -EAGAIN;
}
