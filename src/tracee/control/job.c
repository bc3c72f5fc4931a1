/*
 * Job control. The shell waits for ptmem, not for the program that ptmem started, so ptmem must
 * stop when the program does.
 *
 *	the program                      ptmem
 *	all its threads enter a          stops itself with the same signal
 *	group stop
 *	gets SIGCONT with its process    gets it, too, and handles the program's stop
 *	group (fg, bg, kill %1)
 *	gets only SIGCONT, is killed,    is continued by the watcher: a child of ptmem that runs
 *	or another process needs ptmem   while ptmem is stopped, and sees in /proc that ptmem has
 *	                                 a signal to handle
 *	is still in its group stop, and  sends SIGCONT to the program: a user who sends it to
 *	ptmem was continued              ptmem, the process that the shell knows, means this
 *	is still in its group stop, and  handles events, and stops again after a while
 *	the watcher continued ptmem
 *
 * SIGTSTP and SIGTTIN from the terminal reach ptmem, too, which ignores them: the program may catch
 * them to restore the terminal's modes before it stops, and a stopped ptmem could not deliver the
 * signal. SIGTTOU keeps its action, since ptmem itself writes to the terminal.
 */
#include "tracee/control/job.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/proc.h"
#include "tracee/control/control_internal.h"
#include "tracee/control/self_stop.h"
#include "tracee/control/standby.h"
#include "tracee/control/timers.h"
#include "tracee/inject/stops.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

#define WATCH_NS 20000000l /* the watcher's interval */
#define AWAKE_MIN_NS 50000000ull
#define AWAKE_MAX_NS 5000000000ull
#define SIGNAL_BIT(sig) (1ull << ((sig) - 1))
/*
 * Tracees stop; a client of --monitor connects; a report is requested; a timer of ptmem's
 * expires.
 */
#define WAKING (SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGIO) | SIGNAL_BIT(SIGUSR1) | SIGNAL_BIT(SIGALRM))

#define CAUGHT 2
struct job {
	int signal;             /* of the group stop that a thread reported; 0 = none */
	uint64_t again_ns;      /* ptmem does not stop again before then; 0 = at once */
	uint64_t awake_ns;      /* how long it stayed awake the last time */
	bool is_caught[CAUGHT]; /* terminal signals that ptmem catches */
};

struct job *job_new(void)
{
	return xcalloc(1, sizeof(struct job));
}

void job_free(struct job *job)
{
	free(job);
}

/* -- stopping -- */

static void block(int how, int sig, sigset_t *old)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(how, &set, old);
}

ATTR_NORETURN static void watch(pid_t ptmem)
{
	const struct timespec pause = {0, WATCH_NS};
	struct proc_status st;
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setpgid(0, 0); /* a SIGSTOP for the group must not stop the watcher */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == ptmem && proc_status_read(ptmem, &st) == 0) {
		if (st.state == 'T' && (st.pending | st.pending_shared) & WAKING) {
			kill(ptmem, SIGCONT);
			_exit(0);
		}
		nanosleep(&pause, NULL);
	}
	_exit(1);
}

/*
 * Takes the default action of @sig. Returns the process that continued us; 0 if we were not
 * stopped, since our process group is orphaned.
 */
static pid_t raise_stop(int sig)
{
	const struct sigaction standard = {.sa_handler = SIG_DFL};
	struct sigaction action;
	sigset_t mask;
	if (sigaction(sig, sig == SIGSTOP ? NULL : &standard, &action) != 0)
		return 0;
	block(SIG_UNBLOCK, sig, &mask);
	raise(sig);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (sig != SIGSTOP)
		sigaction(sig, &action, NULL);
	return self_stop_continued_by();
}

bool job_stop_self(int sig)
{
	pid_t self = getpid(), watcher, by;
	self_stop_discard(SIGCONT);
	watcher = fork();
	if (watcher == 0)
		watch(self);
	by = raise_stop(sig);
	if (!by)
		by = raise_stop(SIGSTOP);
	if (watcher > 0) {
		kill(watcher, SIGKILL);
		waitpid(watcher, NULL, 0);
	}
	return by != watcher;
}

/* -- the program -- */

/* Whether all threads of @p are in a group stop. */
static bool is_stopped(const struct target *t, const struct process *p)
{
	bool has_threads = false;
	const struct thread *th;
	for_each_thread(t, th) {
		if (th->process != p || th->is_exiting)
			continue;
		if (th->state != THREAD_LISTENING || th->is_held)
			return false;
		has_threads = true;
	}
	return has_threads;
}

/* As if the signal had been sent to ptmem's group, with the program in it. */
static void continue_program(pid_t pid)
{
	siginfo_t info = {0};
	pid_t group = getpgid(pid);
	/* a pending stop is that of a SIGCONT which the program received itself */
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL) == 0 &&
	    info.si_pid == pid)
		return;
	kill(group > 0 && group != getpgrp() ? -group : pid, SIGCONT);
}

void job_note_stop(struct target *t, const struct process *p, int sig)
{
	if (!p->is_started || t->control->job->signal == sig)
		return;
	t->control->job->signal = sig;
	t->control->job->again_ns = t->control->job->awake_ns = 0;
	self_stop_discard(SIGCONT);
}

/* The started program; NULL if it is not stopped. */
static struct process *find_stopped(struct target *t)
{
	struct process *p = process_find(t, t->first.pid);
	return p && p->is_started && is_stopped(t, p) ? p : NULL;
}

/* The watcher has continued us. */
static void stay_awake(struct target *t)
{
	struct job *job = t->control->job;
	job->awake_ns = MIN(MAX(2 * job->awake_ns, AWAKE_MIN_NS), AWAKE_MAX_NS);
	job->again_ns = clock_now_ns() + job->awake_ns;
	timers_wake_by(t, job->again_ns);
}

/* Whether ptmem alone received a SIGCONT while the watcher kept it awake. */
static bool was_continued(const struct job *job)
{
	return job->again_ns && self_stop_continued_by() != 0;
}

/* True: ptmem was continued from outside. */
static bool stop_with_program(struct target *t)
{
	standby_set_paused(t, true);
	bool was_continued = job_stop_self(t->control->job->signal);
	standby_set_paused(t, false);
	return was_continued;
}

void job_follow(struct target *t)
{
	struct job *job = t->control->job;
	if (!job->signal || clock_now_ns() < job->again_ns || !self_stop_serve_pending(t))
		return;
	struct process *p = find_stopped(t);
	if (!p) {
		job->signal = 0;
	} else if (was_continued(job) || stop_with_program(t)) {
		job->signal = 0; /* its next stop, if any, will be reported */
		continue_program(p->pid);
	} else {
		stay_awake(t);
	}
	t->now_ns = clock_now_ns();
}

/* -- signals from the terminal -- */

static const int caught[CAUGHT] = {SIGTSTP, SIGTTIN};

static void on_stop(int sig)
{
	(void)sig;
}

void job_begin(struct target *t)
{
	const struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
	self_stop_hold_continue();
	for (size_t i = 0; i < CAUGHT; i++) {
		struct sigaction old;
		if (sigaction(caught[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			t->control->job->is_caught[i] = sigaction(caught[i], &action, NULL) == 0;
	}
}

void job_end(struct target *t)
{
	for (size_t i = 0; i < CAUGHT; i++) {
		if (t->control->job->is_caught[i])
			signal(caught[i], SIG_DFL);
		t->control->job->is_caught[i] = false;
	}
}
