/*
 * Attaching. The slow part, reading symbols, comes first. Then all threads are stopped (seize.c),
 * and the mapped objects are read again, since the process may have executed another program
 * meanwhile. Then the SIGTRAP handler is installed (trap_handler.h), and if that succeeds,
 * breakpoints.
 *
 * A process inside execve passes through states that look like others: its first thread is dead and
 * another one is about to take its place, /proc shows no memory or refuses access, ptrace returns
 * EPERM. So a failed attach is retried for a second, unless its reason is permanent.
 */
#include "tracee/control/again.h"
#include "tracee/control/attach.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/proc.h"
#include "tracee/calls/requests.h"
#include "tracee/control/attach_check.h"
#include "tracee/control/cleanup.h"
#include "tracee/control/control_internal.h"
#include "tracee/control/install.h"
#include "tracee/control/seize.h"
#include "tracee/control/target_leave.h"
#include "tracee/guard/guardian.h"
#include "tracee/guard/recovery.h"
#include "tracee/guard/trap_handler.h"
#include "tracee/inject/seccomp.h"
#include "tracee/inject/world.h"
#include "tracee/os/image.h"
#include "tracee/os/rt_boost.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/space_modules.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"
#include "tracee/syscalls/syscall_sites.h"

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
		again_find_sites(t->arch, m);
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
		rc = attach_check_image(s->processes.reader, t->arch, problem_out);
	}
	return rc != 0 ? rc : read_modules(t, s, problem_out);
}

/* All threads of @p are stopped. The sink reads memory in before_install. */
static int show(struct target *t, struct process *p,
		void (*look)(void *ctx, struct address_space *s), enum attach_problem *problem_out)
{
	struct address_space *s = p->space;
	int rc = read_again(t, s, problem_out);

	if (rc != 0)
		return rc;
	uint32_t id = s->id;

	look(t->sink.ctx, s);
	if (space_exists(t, id))
		return 0;
	*problem_out = ATTACH_NO_PROCESS; /* it ended meanwhile */
	return -ESRCH;
}

/*
 * All threads of @p are stopped. Installs breakpoints only where the SIGTRAP handler was
 * installed.
 */
static int install(struct target *t, struct process *p, enum attach_problem *problem_out)
{
	struct address_space *s = p->space;
	int rc = read_again(t, s, problem_out);
	if (rc != 0)
		return rc;
	journal_begin(t, s);
	rc = trap_handler_install(t, s, seccomp_pick_thread(t, s));
	if (rc != 0) {
		*problem_out = ATTACH_NO_HANDLER;
		return rc;
	}
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
		/* threads may run, so treat it as still being seized */
		rc = show(t, p, t->sink.before_install, problem_out);
		if (rc != 0)
			return rc;
		p = process_find(t, pid);
		if (!p)
			return -ESRCH;
	}
	p->is_attaching = false;
	t->now_ns = clock_now_ns();
	if (t->options.only_reads)
		return show(t, p, t->sink.space_new, problem_out);
	return install(t, p, problem_out);
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
	if (!t->options.only_reads)
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
		world_start(t);
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
	int rc;
	if (t->first.pid == 0)
		t->first.pid = pid;
	for (unsigned tries = 1;; tries++) {
		last = problem;
		rc = target_attach_once(t, pid, &problem, detail_out);
		now = clock_now_ns();
		since = problem == last ? since : now;
		if (rc == 0 || !target_may_attach_later(pid, problem, *detail_out) ||
		    is_late(problem, tries, begin, now))
			break;
		log_debug("process %d: attach failed (%d, %s), once more", (int)pid, (int)problem,
			  strerror(-rc));
		nanosleep(&pause, NULL);
	}
	if (rc != 0 && target_may_attach_later(pid, problem, *detail_out) &&
	    now - since < RETRY_NS / 2)
		problem = ATTACH_EXECUTES; /* the reason may differ each time */
	*problem_out = rc == 0 ? ATTACH_OK : problem;
	return rc;
}
