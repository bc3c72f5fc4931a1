#include "tracee/control/attach.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/elf_file.h"
#include "base/log.h"
#include "base/proc.h"
#include "tracee/calls/client_request.h"
#include "tracee/control/control.h"
#include "tracee/control/install.h"
#include "tracee/control/target.h"
#include "tracee/guard/guardian.h"
#include "tracee/guard/sigtrap_handler.h"
#include "tracee/inject/seccomp.h"
#include "tracee/inject/stop_all.h"
#include "tracee/os/own_settings.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/syscalls/syscall_sites.h"

/* The state of the process that @reader is a thread of. */
static enum attach_problem problem_now(pid_t reader, struct proc_status *st)
{
	struct proc_stat stat;
	if (proc_status_read(reader, st) != 0)
		return ATTACH_NO_PROCESS;
	if (st->has_memory)
		return ATTACH_OK;
	bool is_kernel = proc_stat_read(reader, &stat) == 0 && stat.is_kernel_thread;
	return is_kernel ? ATTACH_KERNEL_THREAD : ATTACH_ZOMBIE;
}

enum attach_problem target_check_pid(pid_t pid)
{
	struct proc_status st;
	return problem_now(proc_find_reader(pid), &st);
}

static bool is_our_thread(pid_t pid)
{
	char name[96];
	snprintf(name, sizeof(name), "/proc/%d/task/%d", (int)getpid(), (int)pid);
	return access(name, F_OK) == 0;
}

/* A thread of @pid in an uninterruptible wait, or 0; *sleeps_out: its number of waits so far. */
static pid_t find_blocked(pid_t pid, uint64_t *sleeps_out)
{
	DIR *threads = proc_open_threads(pid);
	pid_t blocked = 0;
	for (pid_t tid; threads && !blocked && (tid = proc_next_thread(threads));) {
		struct proc_status st;
		if (proc_status_read(tid, &st) == 0 && st.state == 'D') {
			blocked = tid;
			*sleeps_out = st.sleeps;
		}
	}
	if (threads)
		closedir(threads);
	return blocked;
}

/* A machine that is very busy may leave what a thread waits for without a CPU for a second. */
#define BLOCKED_MS 10000u
#define VFORK_MS 1000u
#define LOOK_MS 20u

/* Whether @tid has created a process, for which it may wait in vfork. */
static bool has_child(pid_t tid)
{
	char name[64];
	snprintf(name, sizeof(name), "task/%d/children", (int)tid);
	_cleanup_fclose_ FILE *f = proc_open(tid, name);
	return f && fgetc(f) != EOF;
}

/*
 * A thread of @pid for which the others, once stopped, would have to wait; 0 if there is none.
 * Returns 0 as soon as possible: a wait for a disk, or in vfork, is mostly over at the next check.
 */
static pid_t find_stuck(pid_t pid)
{
	const struct timespec pause = {0, LOOK_MS * 1000000l};
	uint64_t first = 0, sleeps = 0;
	pid_t tid = find_blocked(pid, &first);
	unsigned most = !tid ? 0 : has_child(tid) ? VFORK_MS : BLOCKED_MS;
	for (unsigned ms = 0; ms < most; ms += LOOK_MS) {
		nanosleep(&pause, NULL);
		if (find_blocked(pid, &sleeps) != tid || sleeps != first)
			return 0;
	}
	return tid;
}

#define LEADERLESS_MS 100u

/* Whether @tid waits inside execve. */
static bool is_in_execve(pid_t tid)
{
	_cleanup_fclose_ FILE *f = proc_open(tid, "syscall");
	long number;
	return f && fscanf(f, "%ld", &number) == 1 &&
	       (number == SYS_execve || number == SYS_execveat);
}

/*
 * Whether @pid, whose first thread has ended, executes a program: the thread that does so is about
 * to take the place of the first one, usually within a millisecond.
 */
static bool is_executing(pid_t pid)
{
	const struct timespec pause = {0, LOOK_MS * 1000000l};
	for (unsigned ms = 0; ms < LEADERLESS_MS; ms += LOOK_MS) {
		pid_t reader = proc_find_reader(pid);
		if (reader == pid || is_in_execve(reader))
			return true;
		nanosleep(&pause, NULL);
	}
	return proc_find_reader(pid) == pid;
}

/* The same for only the program of @reader: ATTACH_32BIT or ATTACH_PERMISSION. */
static int attach_check_image(pid_t reader, const struct arch *arch,
			      enum attach_problem *problem_out)
{
	char name[64];
	struct elf_file *file;
	snprintf(name, sizeof(name), "/proc/%d/exe", (int)reader);
	int rc = elf_file_open(NULL, name, NULL, &file);
	if (rc == -EACCES || rc == -EPERM) {
		*problem_out = ATTACH_PERMISSION;
		return -EPERM;
	}
	if (rc != 0)
		return 0; /* install checks the maps later */
	bool fits = file->machine == arch->elf_machine && file->elf_class == arch->elf_class;
	elf_file_release(file);
	if (fits)
		return 0;
	*problem_out = ATTACH_32BIT;
	return -ENOEXEC;
}

/*
 * Returns 0, or -errno with *problem_out and *detail_out as target_attach. @reader: a living thread
 * of @pid (proc_find_reader).
 */
static int attach_check(pid_t pid, pid_t reader, const struct arch *arch,
			enum attach_problem *problem_out, long *detail_out)
{
	struct proc_status st;
	*detail_out = 0;
	if (is_our_thread(pid)) {
		*problem_out = ATTACH_SELF;
		return -EINVAL;
	}
	*problem_out = problem_now(reader, &st);
	if (*problem_out != ATTACH_OK)
		return *problem_out == ATTACH_KERNEL_THREAD ? -EPERM : -ESRCH;
	if (st.tracer) {
		*problem_out = ATTACH_TRACED;
		*detail_out = st.tracer;
		return -EPERM;
	}
	if (reader != pid && is_executing(pid)) {
		*problem_out = ATTACH_EXECUTES;
		return -EAGAIN;
	}
	*detail_out = find_stuck(pid);
	if (*detail_out) {
		*problem_out = ATTACH_STUCK;
		return -EBUSY;
	}
	return attach_check_image(reader, arch, problem_out);
}

/*
 * Attaching. The slow part, reading symbols, comes first. Then all threads are stopped (target.c),
 * and the mapped objects are read again, since the process may have executed another program
 * meanwhile. Then the SIGTRAP handler is installed (trap_handler.h), and if that succeeds,
 * breakpoints.
 *
 * A process inside execve passes through states that look like others: its first thread is dead and
 * another one is about to take its place, /proc shows no memory or refuses access, ptrace returns
 * EPERM. So a failed attach is retried for a second, unless its reason is permanent.
 */

/* Slow preparations, before any thread is stopped. */
static void find_sites_early(void *ctx, struct address_space *s, struct module *m)
{
	const struct target *t = ctx;
	(void)s;
	if (t->options.only_reads)
		return;
	if (t->options.watch.brk || t->options.watch.mappings)
		syscall_sites_prepare(t, m);
	if (m->file && !m->is_vdso)
		again_find_sites(t, m);
	requests_find_markers(ctx, m);
}

static enum attach_problem problem_of(int rc)
{
	if (rc == -ESRCH)
		return ATTACH_NO_PROCESS;
	return rc == -EAGAIN ? ATTACH_EXECUTES : ATTACH_PERMISSION;
}

static int read_modules(struct target *t, struct address_space *s, enum attach_problem *problem_out)
{
	int rc = space_update_modules(s, find_sites_early, NULL, t);
	if (rc != 0)
		*problem_out = problem_of(rc);
	return rc;
}

/* The process of @s is stopped. Checks whether it has executed another program since. */
static int read_again(struct target *t, struct address_space *s, enum attach_problem *problem_out)
{
	bool is_other = false;
	int rc = space_follow_image(s, &is_other);
	if (rc != 0) {
		*problem_out = problem_of(rc);
		return rc;
	}
	if (is_other) {
		log_debug("process %d executed a program while it was attached to",
			  (int)s->processes.pid);
		cleanup_forget(s);
		rc = attach_check_image(s->processes.reader, t->arch, problem_out);
	}
	return rc != 0 ? rc : read_modules(t, s, problem_out);
}

/* All threads of @p are stopped. The sink reads memory in before_install. */
static int show(struct target *t, struct process *p,
		void (*look)(void *ctx, struct address_space *s), enum attach_problem *problem_out)
{
	struct address_space *s = p->space;
	uint32_t id = s->id;

	look(t->sink.ctx, s);
	if (space_exists(t, id))
		return 0;
	*problem_out = ATTACH_NO_PROCESS; /* it ended meanwhile */
	return -ESRCH;
}

/* All threads of @p are stopped. Now a breakpoint or a step does not kill it, if possible. */
static int protect(struct target *t, struct process *p, enum attach_problem *problem_out)
{
	struct address_space *s = p->space;
	int rc = read_again(t, s, problem_out);

	if (rc != 0)
		return rc;
	journal_begin(t, s);
	rc = trap_handler_install(t, s, seccomp_pick_thread(t, s));
	if (rc != 0)
		*problem_out = ATTACH_NO_HANDLER;
	return rc;
}

/*
 * All threads of @p are stopped. Installs breakpoints only where the SIGTRAP handler was
 * installed.
 */
static int install(struct target *t, struct process *p, enum attach_problem *problem_out)
{
	struct address_space *s = p->space;
	int rc = protect(t, p, problem_out);

	if (rc != 0)
		return rc;
	struct thread *th = seccomp_pick_thread(t, s);
	rc = th ? install_probes(t, s, th) : -EAGAIN;
	if (rc != 0)
		*problem_out = rc == -ENOENT ? ATTACH_NO_PROBES : problem_of(rc);
	return rc;
}

/* Seizes @pid, now a process of the target, and installs everything. */
static int stop_and_install(struct target *t, pid_t pid, enum attach_problem *problem_out)
{
	process_find(t, pid)->is_attaching = true;
	t->control->fault_error = 0;
	int rc = target_seize_all(t, pid);
	if (rc != 0) {
		*problem_out = problem_of(rc);
		return rc;
	}
	if (t->control->fault_error != 0) {
		*problem_out = ATTACH_NO_FAULTS;
		return t->control->fault_error;
	}
	struct process *p = process_find(t, pid);
	if (t->sink.before_install && !t->options.only_reads) {
		rc = protect(t, p, problem_out);
		/* threads may run, so treat it as still being seized */
		if (rc == 0)
			rc = show(t, p, t->sink.before_install, problem_out);
		if (rc != 0)
			return rc;
		p = process_find(t, pid);
		if (!p)
			return -ESRCH;
	}
	p->is_attaching = false;
	t->now_ns = clock_now_ns();
	if (!t->options.only_reads)
		return install(t, p, problem_out);
	if (t->options.makes_calls)
		journal_begin(t, p->space);
	rc = read_again(t, p->space, problem_out);
	return rc == 0 ? show(t, p, t->sink.space_new, problem_out) : rc;
}

int target_attach_once(struct target *t, pid_t pid, enum attach_problem *problem_out,
		       long *detail_out)
{
	uint64_t image = 0;
	pid_t reader = proc_find_reader(pid);
	recovery_await(pid);
	int rc = attach_check(pid, reader, t->arch, problem_out, detail_out);
	if (rc != 0)
		return rc;
	recovery_run(pid, cleanup_run);
	image_read(reader, &image);
	struct address_space *s = space_new(t->registry, pid);
	if (reader != pid)
		space_set_reader(s, reader);
	s->watch.is_profiled = s->image.has_earlier_blocks = true;
	s->image.id = image;
	rc = read_modules(t, s, problem_out);
	if (rc != 0) {
		space_free(s);
		return rc;
	}
	if (t->sink.before_stop)
		t->sink.before_stop(t->sink.ctx, s);
	if (!t->options.only_reads || t->options.makes_calls)
		guardian_start(t, cleanup_run);
	process_add(t, pid, s);
	if (t->options.watch.brk || t->options.watch.mappings)
		t->syscalls.way = SYSCALLS_SITES;
	struct rt_boost boost;
	uint64_t begin = clock_now_ns();
	rt_boost_begin(&boost);
	rc = stop_and_install(t, pid, problem_out);
	if (rc != 0)
		target_undo_attach(t, pid);
	else
		resume_all(t);
	uint64_t pause = clock_now_ns() - begin;
	rt_boost_end(&boost);
	if (rc == 0) {
		s->pauses.attach_ns = t->stats.attach_ns = pause;
		space_note_stop(s, pause);
	}
	return rc;
}

/*
 * Whether @tracer no longer traces @pid, or will soon stop: it is a guardian, or a process that is
 * exiting, such as a killed ptmem.
 */
static bool tracer_leaves(pid_t pid, pid_t tracer)
{
	struct proc_status st;
	return guardian_is(tracer) || proc_is_ending(tracer) ||
	       proc_status_read(proc_find_reader(pid), &st) != 0 || st.tracer != tracer;
}

bool target_may_attach_later(pid_t pid, enum attach_problem problem, long detail)
{
	switch (problem) {
	case ATTACH_SELF:
	case ATTACH_32BIT:
	case ATTACH_STUCK:
	case ATTACH_NO_PROBES:
	case ATTACH_NO_FAULTS:
	case ATTACH_KERNEL_THREAD:
		return false;
	case ATTACH_TRACED:
		return tracer_leaves(pid, (pid_t)detail);
	case ATTACH_NO_PROCESS:
		return kill(pid, 0) == 0 || errno != ESRCH;
	default:
		return true;
	}
}

#define RETRY_NS 1000000000ull
#define RETRY_MAX_NS 5000000000ull /* a second may be too short for RETRY_MIN tries */
#define RETRY_MIN 50
#define TRACED_NS 30000000000ull /* for a tracer that is dying, and frees its memory first */
#define PAUSE_NS 2000000l

/* Whether to give up after @tries since @begin. A busy machine makes only few tries a second. */
static bool is_late(enum attach_problem problem, unsigned tries, uint64_t begin, uint64_t now)
{
	uint64_t limit = tries < RETRY_MIN ? RETRY_MAX_NS : RETRY_NS;
	return now - begin > (problem == ATTACH_TRACED ? TRACED_NS : limit);
}

int target_attach(struct target *t, pid_t pid, enum attach_problem *problem_out, long *detail_out)
{
	const struct timespec pause = {0, PAUSE_NS};
	enum attach_problem problem = ATTACH_OTHER, last;
	uint64_t now = clock_now_ns(), begin = now, since = now; /* when its current state began */
	bool differs = false; /* the reason of a try from that of the one before */
	int rc;
	if (t->first.pid == 0)
		t->first.pid = pid;
	for (unsigned tries = 1;; tries++) {
		last = problem;
		rc = target_attach_once(t, pid, &problem, detail_out);
		now = clock_now_ns();
		differs |= tries > 1 && problem != last;
		since = problem == last ? since : now;
		if (rc == 0 || !target_may_attach_later(pid, problem, *detail_out) ||
		    is_late(problem, tries, begin, now))
			break;
		log_debug("process %d: attach failed (%d, %s), once more", (int)pid, (int)problem,
			  strerror(-rc));
		nanosleep(&pause, NULL);
	}
	if (rc != 0 && differs && target_may_attach_later(pid, problem, *detail_out) &&
	    now - since < RETRY_NS / 2)
		problem = ATTACH_EXECUTES; /* the reason may differ each time */
	*problem_out = rc == 0 ? ATTACH_OK : problem;
	return rc;
}
