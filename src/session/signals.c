/* The handlers. Their variables are in base/globals.h. */
#include "session/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "base/globals.h"
#include "tracee/control/target.h"

#define WAKE_NS 20000000L
#define WAKE_US 20000

static struct signal_globals *const g = &globals.signals;

/* -- leaving -- */

/* A second signal while ptmem leaves must not restart the timer, or it would never stop. */
static void keep_waking(void)
{
	const struct itimerval again = {{0, WAKE_US}, {0, WAKE_US}};

	if (g->is_leaving)
		return;
	setitimer(ITIMER_REAL, &again, NULL);
	target_wake();
}

static void on_leave(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (sig != SIGALRM)
		g->leave_count = g->leave_count + 1;
	if (sig == SIGALRM) {
		if (!g->leave_signal)
			g->leave_signal = SIGALRM; /* the duration is over */
	} else if (!g->is_attached && info->si_code == SI_KERNEL) {
		return; /* typed at the terminal: the program received it, too */
	} else {
		g->leave_signal = sig;
	}
	keep_waking();
}

void signals_catch_leave(bool attached)
{
	static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM};
	struct sigaction sa = {.sa_sigaction = on_leave, .sa_flags = SA_SIGINFO}, old;

	g->is_attached = attached;
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < ARRAY_SIZE(caught); i++) {
		sigaction(caught[i], NULL, &old);
		if (old.sa_handler != SIG_IGN || caught[i] == SIGALRM)
			sigaction(caught[i], &sa, NULL);
	}
}

void signals_start_duration(double seconds)
{
	struct itimerval t = {{0, WAKE_US}, {0, 0}};

	if (seconds <= 0)
		return;
	t.it_value.tv_sec = (time_t)seconds;
	t.it_value.tv_usec = (suseconds_t)((seconds - (double)t.it_value.tv_sec) * 1e6);
	if (t.it_value.tv_sec == 0 && t.it_value.tv_usec == 0)
		t.it_value.tv_usec = 1;
	setitimer(ITIMER_REAL, &t, NULL);
}

int signals_leave_request(void)
{
	return g->leave_signal;
}

unsigned signals_leave_count(void)
{
	return (unsigned)g->leave_count;
}

void signals_stop_waking(void)
{
	const struct itimerval off = {{0, 0}, {0, 0}};

	g->is_leaving = 1;
	setitimer(ITIMER_REAL, &off, NULL);
}

/* -- requests -- */

static void on_report(int sig)
{
	(void)sig;
	g->wants_report = 1;
	target_wake();
}

void signals_catch_report(void)
{
	struct sigaction sa = {.sa_handler = on_report};

	sigemptyset(&sa.sa_mask);
	sigaction(SIGUSR1, &sa, NULL);
}

static bool take(volatile sig_atomic_t *flag)
{
	bool was_set = *flag;

	*flag = 0;
	return was_set;
}

bool signals_take_report(void)
{
	return take(&g->wants_report);
}

bool signals_take_snapshots(void)
{
	return take(&g->wants_snapshots);
}

void signals_raise_io(void)
{
	const struct itimerspec again = {{0, WAKE_NS}, {0, WAKE_NS}};

	g->has_io = 1;
	if (g->has_io_timer)
		timer_settime(g->io_timer, 0, &again, NULL);
	else
		target_wake();
}

static void on_io(int sig)
{
	int saved = errno;

	if (sig == SIGUSR1)
		g->wants_snapshots = g->wants_report = 1;
	signals_raise_io();
	target_wake();
	errno = saved;
}

void signals_catch_io(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGIO};
	struct sigaction sa = {.sa_handler = on_io};

	g->has_io_timer = timer_create(CLOCK_MONOTONIC, &event, &g->io_timer) == 0;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGIO, &sa, NULL);
	sigaction(SIGUSR1, &sa, NULL);
}

bool signals_take_io(void)
{
	const struct itimerspec off = {{0, 0}, {0, 0}};

	if (!g->has_io)
		return false;
	if (g->has_io_timer)
		timer_settime(g->io_timer, 0, &off, NULL);
	g->has_io = 0;
	return true;
}

void signals_ignore_io(void)
{
	bool had_timer = g->has_io_timer;

	signal(SIGUSR1, SIG_IGN); /* too late, but must not kill ptmem */
	signal(SIGIO, SIG_IGN);
	g->has_io_timer = 0;
	if (had_timer)
		timer_delete(g->io_timer);
}
