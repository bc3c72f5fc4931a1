/*
 * The main loop: stops are handled, rings are read, hot probes become pads, and in between ptmem
 * sleeps.
 */
#include "tracee/control/target.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/globals.h"
#include "tracee/calls/calls.h"
#include "tracee/control/control.h"
#include "tracee/control/faults.h"
#include "tracee/control/job.h"
#include "tracee/control/timers.h"
#include "tracee/inject/seccomp.h"
#include "tracee/inject/stop_all.h"
#include "tracee/os/own_settings.h"
#include "tracee/pads/pads.h"
#include "tracee/pads/ring.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"

void target_wake(void)
{
	globals.wake = 1;
}

/* Promotes the hot probes of a space to pads, with all threads stopped. */
static void promote(struct target *t)
{
	struct address_space *s = t->loop.promote;
	struct rt_boost boost;
	t->loop.promote = NULL;
	uint32_t id = s->id;
	standby_start(t);
	promote_prepare(t, s);
	uint64_t begin = clock_now_ns();
	rt_boost_begin(&boost);
	stop_all(t);
	if (space_exists(t, id))
		stop_all_serve_traps(t, s);
	t->loop.promote = NULL;
	bool is_alive = space_exists(t, id);
	if (is_alive)
		promote_functions(t, s, seccomp_pick_thread(t, s));
	resume_all(t);
	uint64_t pause = clock_now_ns() - begin;
	t->stats.promote_ns += pause;
	if (is_alive)
		s->pauses.promote_ns += pause;
	rt_boost_end(&boost);
}

static void restart(struct target *t)
{
	t->loop.must_restart = false;
	stop_all(t);
	resume_all(t);
}

/* The number of CPUs that ptmem may run on. */
static unsigned cpu_count(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

/* Reads a batch from each ring; returns the number of records; *is_more_out: there may be more. */
static size_t drain_all(struct target *t, bool *is_more_out)
{
	*is_more_out = false;
	bool is_pressed = faults_are_pressed(t);
	if (is_pressed)
		stop_all(t);
	size_t n = faults_drain(t);
	if (is_pressed)
		resume_all(t);
	t->now_ns = clock_now_ns();
	for (size_t i = 0; i < t->processes.count; i++) {
		struct address_space *s = t->processes.data[i]->space;
		if (!s->pads)
			continue;
		size_t read = pads_drain_some(t, s);
		*is_more_out |= read >= PADS_DRAIN_BATCH;
		n += read;
	}
	return n;
}

#define WHOLE_ROUNDS 256 /* a program that allocates faster than we read must not block the loop */

/* poll() must see all events so far */
static void drain_whole(struct target *t)
{
	bool is_more = true;
	for (int i = 0; i < WHOLE_ROUNDS && is_more; i++)
		drain_all(t, &is_more);
}

/* Waits for a child's stop, a signal or the next tick, at most @ns. */
static void sleep_until_stop(struct target *t, uint64_t ns)
{
	uint64_t next = timers_next(t);
	if (next != UINT64_MAX) {
		uint64_t now = clock_now_ns();
		ns = MIN(ns, next > now ? next - now : 0);
	}
	if (globals.wake) /* a tick wants poll() to be called */
		ns = 0;
	const struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (t->control->faults)
		faults_wait(t, &ts);
	else
		sigtimedwait(&set, NULL, &ts);
	t->now_ns = clock_now_ns();
}

#define BUSY_RECORDS 64u
#define SLEEP_BUSY_US 100u
#define SLEEP_SHARED_US 1000u
#define SLEEP_MAX_US 10000u
/* of samples: so few that a ring lasts long; it may take that for a full one to be read */
#define SLEEP_SAMPLING_US 10000u
#define SLEEP_SAMPLING_MAX_US 100000u
#define SPARSE_INTERVAL (512u << 10)

/* records without stamps have the time at which they are read */
#define SLEEP_UNSTAMPED_US 50u

/* A full ring wakes us, unless it loses records: then denser samples are read more often. */
static unsigned longest_sampling_us(const struct target *t)
{
	uint64_t interval = t->options.samples.heap << t->options.samples.shift;

	if (t->options.probes.max_wait_ns || interval >= SPARSE_INTERVAL)
		return SLEEP_SAMPLING_MAX_US;
	return MAX((unsigned)(SLEEP_SAMPLING_MAX_US * interval / SPARSE_INTERVAL),
		   SLEEP_SAMPLING_US);
}

/* Whether threads that find no room wait without waking ptmem: PAD_SPINS. */
static bool any_spins(const struct target *t)
{
	for (size_t i = 0; i < t->processes.count; i++) {
		const struct address_space *s = t->processes.data[i]->space;
		if (s->pads && s->recovery.is_unguarded)
			return true;
	}
	return false;
}

/*
 * Sleeps when there is nothing to do. If ptmem has a CPU of its own, rings are read in small
 * batches, while the records are still in the cache; otherwise in large ones, since each turn takes
 * the CPU away from the program. Never spins: sleeping costs less than polling, and leaves the
 * cache line after the head alone.
 */
static void idle(struct target *t, size_t records)
{
	unsigned cpus = cpu_count(),
		 least = cpus > thread_count(t) || any_spins(t) ? SLEEP_BUSY_US : SLEEP_SHARED_US,
		 most = SLEEP_MAX_US;
	if (t->options.samples.heap) {
		least = SLEEP_SAMPLING_US;
		most = longest_sampling_us(t);
	}
	if (pads_lack_stamps(t))
		most = least = SLEEP_UNSTAMPED_US;
	if (records >= BUSY_RECORDS)
		t->loop.idle_us = least;
	else
		t->loop.idle_us = MIN(MAX(2 * t->loop.idle_us, least), most);
	sleep_until_stop(t, (cpus == 1 ? most : t->loop.idle_us) * 1000ull);
}

static bool has_rings(const struct target *t)
{
	if (t->control->faults)
		return true;
	for (size_t i = 0; i < t->processes.count; i++) {
		if (t->processes.data[i]->space->pads)
			return true;
	}
	return false;
}

#define STOPS_IN_A_ROW 32

/* Handles pending stops. 0 if there were some, -EAGAIN, or -ECHILD. */
static int serve_stops(struct target *t)
{
	int rc = 0, stops = 0;
	while (stops < STOPS_IN_A_ROW && !t->loop.promote && (rc = stops_serve_next(t, true)) == 0)
		stops++;
	return rc == -EAGAIN && stops > 0 ? 0 : rc;
}

/* One turn with rings: handles pending stops, reads records, sleeps. */
static int step_with_rings(struct target *t)
{
	int rc = serve_stops(t);
	bool is_more;
	size_t records = drain_all(t, &is_more);
	if (rc == -EAGAIN && !is_more)
		idle(t, records);
	return rc == -ECHILD ? rc : 0;
}

/*
 * Handles one stop, or returns at the time of the next timer: SIGCHLD is blocked, so none is
 * missed.
 */
static int step_without_rings(struct target *t)
{
	if (timers_next(t) == UINT64_MAX)
		return stops_serve_next(t, false);
	int rc = stops_serve_next(t, true);
	if (rc == -EAGAIN)
		sleep_until_stop(t, UINT64_MAX);
	return rc;
}

static int step(struct target *t)
{
	if (t->processes.count > 0)
		return has_rings(t) ? step_with_rings(t) : step_without_rings(t);
	sleep_until_stop(t, UINT64_MAX);
	return 0;
}

/* What stops and records have led to. */
static void follow_up(struct target *t)
{
	if (t->loop.promote)
		promote(t);
	target_leave_corrupt(t);
	if (t->loop.must_restart)
		restart(t);
}

#define UNTIL_NS 1000000u /* how long it may take to notice that it is done */

void target_run_until(struct target *t, bool (*is_done)(void *ctx), void *ctx)
{
	const struct timespec pause = {0, UNTIL_NS};
	sigset_t set;
	int rc = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	while (t->processes.count > 0 && !is_done(ctx) && rc != -ECHILD) {
		bool is_more = false;

		job_follow(t);
		standby_follow(t);
		rc = serve_stops(t);
		if (has_rings(t))
			drain_all(t, &is_more);
		if (rc == -EAGAIN && !is_more)
			sigtimedwait(&set, NULL, &pause);
		follow_up(t);
	}
}

void target_run(struct target *t)
{
	while (t->processes.count > 0 || t->options.follow.awaits_more) {
		if (t->now_ns >= timers_next(t))
			timers_run(t);
		job_follow(t);
		standby_follow(t);
		int rc = step(t);
		if (rc == -ECHILD && t->processes.count > 0)
			break;
		follow_up(t);
		if (globals.wake) {
			globals.wake = 0;
			drain_whole(t);
			if (t->sink.poll && t->sink.poll(t->sink.ctx))
				break;
		}
	}
}
