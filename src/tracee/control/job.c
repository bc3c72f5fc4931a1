/* For a ptmem that stops itself, and is continued by another process. */
#include "tracee/control/job.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/own_process.h"
#include "base/proc.h"
#include "base/types.h"
#include "tracee/control/control.h"
#include "tracee/control/timers.h"
#include "tracee/inject/stop_all.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pads.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"

struct target;

/* From now on a SIGCONT stays pending, so that its sender can be asked for. */
static void self_stop_hold_continue(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCONT);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Takes the blocked signal @sig from the pending ones. *info_out: zeros if it was not pending. */
static void take_pending(int sig, siginfo_t *info_out)
{
	const struct timespec now = {0, 0};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	if (sigtimedwait(&set, info_out, &now) != sig)
		*info_out = (siginfo_t){0};
}

/* The process whose SIGCONT is pending, which is taken; 0: none is. */
static pid_t self_stop_continued_by(void)
{
	siginfo_t info;

	take_pending(SIGCONT, &info);
	return info.si_signo ? MAX(info.si_pid, 1) : 0;
}

/* Removes the blocked signal @sig from the pending ones. */
static void self_stop_discard(int sig)
{
	siginfo_t info;

	take_pending(sig, &info);
}

#define STOPS_IN_A_ROW 32

/*
 * Handles all pending stops, so that afterwards SIGCHLD is pending only if there is a new one, for
 * which a watcher wakes ptmem. False: there may be more, or there is other work to do before ptmem
 * stops.
 */
static bool self_stop_serve_pending(struct target *t)
{
	bool is_clean = false;
	for (int n = 0; n < STOPS_IN_A_ROW && !t->loop.promote && !t->loop.must_restart; n++) {
		bool has_served = stops_serve_next(t, true) == 0;
		if (!has_served && is_clean)
			return true;
		is_clean = !has_served;
		if (is_clean)
			self_stop_discard(SIGCHLD);
	}
	return false;
}

/*
 * What happens while ptmem is stopped: a thread that needs it stays stopped, too, for only its
 * tracer can resume it.
 *
 *	the watcher, a process that      sees in /proc that ptmem is stopped, and continues it after
 *	runs as long as there are pads   --max-wait
 *	ptmem                            from now on full rings lose records: no thread waits for
 *	                                 room; handles all pending stops, and stops again
 *	a thread waits again: then       is continued at once, so that signals, new threads and what
 *	SIGCHLD is pending               else needs a tracer pass; it stays awake for longer if this
 *	                                 happens often
 *	ptmem is continued by another    rings are waited for again
 *	process
 *
 * The sender of a SIGCONT tells who it was. (Of two that arrive before ptmem runs the kernel keeps
 * the first. A user's SIGCONT within the microseconds after the watcher's is lost: ptmem stops
 * again, and the user has to repeat it.)
 */

#define WATCHER_NAME "heap-watcher"
#define WATCH_MIN_NS 20000000ull  /* the watcher's interval */
#define WATCH_MAX_NS 250000000ull
#define AWAKE_MIN_NS 50000000ull
#define STANDBY_AWAKE_MAX_NS 1000000000ull

/* Of both processes. */
struct watch {
	uint64_t wait_ns;   /* threads wait for a stopped ptmem for so long */
	bool is_paused;
	bool is_idle;       /* ptmem stopped itself when no thread waited for it */
	bool has_continued; /* by the watcher; ptmem clears it */
};

struct standby {
	struct watch *watch;
	int fd;             /* the watcher ends when it is closed */
	pid_t watcher;
	bool is_on;         /* ptmem was stopped, and continued by the watcher */
	uint64_t again_ns;  /* ptmem does not stop again before then */
	uint64_t awake_ns;  /* how long it stays awake */
	uint64_t stopped_ns; /* when it stopped itself the last time */
};

/* -- the watcher -- */

struct watcher_inherited {
	struct watch *watch;
	pid_t ptmem;
};

static bool is_waited_for(const struct watch *w, pid_t ptmem)
{
	struct proc_status st;

	if (proc_status_read(ptmem, &st) != 0)
		_exit(0);
	if (st.state != 'T' || __atomic_load_n(&w->is_paused, __ATOMIC_ACQUIRE))
		return false;
	/* else it may have been stopped while it handled a stop, which is not pending any more */
	return (st.pending | st.pending_shared) & SIGNAL_BIT(SIGCHLD) ||
	       !__atomic_load_n(&w->is_idle, __ATOMIC_ACQUIRE);
}

/* How long the watcher sleeps; @waited_ns: how long a thread has waited, 0 = none does. */
static uint64_t interval(uint64_t wait_ns, uint64_t waited_ns)
{
	if (waited_ns)
		return MIN(wait_ns - waited_ns, WATCH_MIN_NS);
	return MIN(MAX(wait_ns / 4, WATCH_MIN_NS), WATCH_MAX_NS);
}

static void run_watcher(void *ctx)
{
	const struct watcher_inherited *i = ctx;
	struct watch *w = i->watch;
	uint64_t since = 0, waited = 0;
	pid_t ptmem = i->ptmem;

	for (;;) {
		struct pollfd end = {.fd = STDIN_FILENO, .events = POLLIN};
		uint64_t wait_ns = __atomic_load_n(&w->wait_ns, __ATOMIC_ACQUIRE);
		const uint64_t ns = interval(MAX(wait_ns, waited), waited);

		if (poll(&end, 1, (int)(ns / 1000000)) != 0)
			_exit(0);
		if (!is_waited_for(w, ptmem)) {
			since = waited = 0;
			continue;
		}
		since = since ? since : clock_now_ns();
		waited = MAX(clock_now_ns() - since, 1ull);
		if (waited < wait_ns)
			continue;
		__atomic_store_n(&w->has_continued, true, __ATOMIC_RELEASE);
		kill(ptmem, SIGCONT);
		since = waited = 0;
	}
}

/* -- ptmem -- */

void standby_start(struct target *t)
{
	struct standby *b;
	struct watch *w;

	if (t->control->standby || t->recovery.is_guardian)
		return;
	w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w == MAP_FAILED)
		return;
	w->wait_ns = t->options.probes.max_wait_ns;
	t->control->standby = b = xcalloc(1, sizeof(*b));
	b->watch = w;
	self_stop_hold_continue();
	b->fd = daemon_start_connected(WATCHER_NAME, run_watcher,
				       &(struct watcher_inherited){w, getpid()}, &b->watcher);
	if (b->fd < 0)
		log_warn("no process could be started that continues a stopped ptmem: %s",
			 strerror(-b->fd));
}

void standby_free(struct target *t)
{
	struct standby *b = t->control->standby;

	if (!b)
		return;
	if (b->fd >= 0)
		close(b->fd);
	munmap(b->watch, sizeof(*b->watch));
	free(b);
	t->control->standby = NULL;
}

/* ptmem stops itself, because the program is stopped: it is not to be continued for that one. */
static void standby_set_paused(struct target *t, bool is_paused)
{
	if (t->control->standby)
		__atomic_store_n(&t->control->standby->watch->is_paused, is_paused,
				 __ATOMIC_RELEASE);
}

static void set_wait(struct standby *b, uint64_t ns)
{
	__atomic_store_n(&b->watch->wait_ns, ns, __ATOMIC_RELEASE);
}

static void end(struct target *t)
{
	struct standby *b = t->control->standby;

	log_debug("continued: rings are waited for again");
	b->is_on = false;
	b->awake_ns = 0;
	set_wait(b, t->options.probes.max_wait_ns);
	pads_set_losing(t, false);
}

static void standby_stay_awake(struct target *t)
{
	struct standby *b = t->control->standby;
	uint64_t now = clock_now_ns();
	bool is_often = now - b->stopped_ns < STANDBY_AWAKE_MAX_NS;

	b->awake_ns = is_often ? MIN(MAX(2 * b->awake_ns, AWAKE_MIN_NS), STANDBY_AWAKE_MAX_NS) :
				 AWAKE_MIN_NS;
	b->again_ns = now + b->awake_ns;
	timers_wake_by(t, b->again_ns);
}

/* The watcher has continued ptmem, unless another process did so before. */
static void begin(struct target *t)
{
	struct standby *b = t->control->standby;
	pid_t by = self_stop_continued_by();

	if (by && by != b->watcher) {
		if (b->is_on)
			end(t);
		return;
	}
	if (!b->is_on) {
		log_debug("stopped: full rings lose records");
		b->is_on = true;
		set_wait(b, 0);
		pads_set_losing(t, true);
	}
	standby_stay_awake(t);
}

void standby_follow(struct target *t)
{
	struct standby *b = t->control->standby;

	if (!b)
		return;
	if (__atomic_exchange_n(&b->watch->has_continued, false, __ATOMIC_ACQ_REL))
		begin(t);
	if (!b->is_on || clock_now_ns() < b->again_ns || !self_stop_serve_pending(t))
		return;
	if (!self_stop_continued_by()) {
		b->stopped_ns = clock_now_ns();
		__atomic_store_n(&b->watch->is_idle, true, __ATOMIC_RELEASE);
		raise(SIGSTOP);
		__atomic_store_n(&b->watch->is_idle, false, __ATOMIC_RELEASE);
		t->now_ns = clock_now_ns();
		if (__atomic_load_n(&b->watch->has_continued, __ATOMIC_ACQUIRE))
			return; /* the next turn */
	}
	end(t);
}

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

#define WATCH_NS 20000000l /* the watcher's interval */
#define AWAKE_MIN_NS 50000000ull
#define JOB_AWAKE_MAX_NS 5000000000ull
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

/* -- stopping -- */

static void block(int how, int sig, sigset_t *old)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(how, &set, old);
}

ATTR_NORETURN static void watch_stopped(pid_t ptmem)
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
		watch_stopped(self);
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
static void job_stay_awake(struct target *t)
{
	struct job *job = t->control->job;
	job->awake_ns = MIN(MAX(2 * job->awake_ns, AWAKE_MIN_NS), JOB_AWAKE_MAX_NS);
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
		job_stay_awake(t);
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
