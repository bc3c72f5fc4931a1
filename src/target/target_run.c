/*
 * The loop of a traced program's life: stops are served, rings are read, hot probes become pads, and
 * between them ptmem sleeps.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "target/faults.h"
#include "target/hurry.h"
#include "target/pads.h"
#include "target/thread.h"

static volatile sig_atomic_t wake_flag;

void target_wake(void)
{
	wake_flag = 1;
}

/* Hot probes of a space become pads: everybody stands still for it. */
static void promote(struct target *t)
{
	struct space *s = t->promote;
	struct hurry hurry;
	uint64_t begin = target_clock();
	t->promote = NULL;
	uint32_t id = s->id;
	hurry_begin(&hurry);
	loop_stop_world(t);
	if (target_has_space(t, id))
		loop_take_traps(t, s);
	t->promote = NULL;
	bool is_alive = target_has_space(t, id);
	if (is_alive)
		pads_promote(t, s, thread_pick(t, s));
	loop_start_world(t);
	uint64_t pause = target_clock() - begin;
	t->stats.promote_ns += pause;
	if (is_alive)
		s->pauses.promote_ns += pause;
	hurry_end(&hurry);
}

static void restart(struct target *t)
{
	t->must_restart = false;
	loop_stop_world(t);
	loop_start_world(t);
}

unsigned target_cpu_count(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

/* Reads some of all rings; returns the records read; *is_more_out: there may be more. */
static size_t drain_all(struct target *t, bool *is_more_out)
{
	*is_more_out = false;
	bool is_pressed = faults_are_pressed(t);
	if (is_pressed)
		loop_stop_world(t);
	size_t n = faults_drain(t);
	if (is_pressed)
		loop_start_world(t);
	t->now_ns = target_clock();
	for (size_t i = 0; i < t->processes.count; i++) {
		struct space *s = t->processes.data[i]->space;
		if (!s->pads)
			continue;
		size_t read = pads_drain_some(t, s);
		*is_more_out |= read >= PADS_DRAIN_BATCH;
		n += read;
		if (t->waiters > 0) {
			ring_publish(&s->pads->ring);
			pads_wake_waiters(t, s);
			if (t->waiters > 0)
				pads_unblock(t, s);
		}
	}
	return n;
}

/* Until a child stops, a signal comes, the next tick is due, or @ns have passed. */
static void sleep_until_stop(struct target *t, uint64_t ns)
{
	if (t->next_tick_ns != UINT64_MAX) {
		uint64_t now = target_clock();
		ns = MIN(ns, t->next_tick_ns > now ? t->next_tick_ns - now : 0);
	}
	const struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (t->faults)
		faults_wait(t, &ts);
	else
		sigtimedwait(&set, NULL, &ts);
	t->now_ns = target_clock();
}

#define BUSY_RECORDS 64u
#define SLEEP_BUSY_US 100u
#define SLEEP_SHARED_US 1000u
#define SLEEP_MAX_US 10000u

/*
 * Nothing to do just now. Where a CPU is ours, what a ring holds is read in small helpings, so
 * that it is still near; where it is the program's, in large ones, for each turn takes it away.
 * Never spins: a sleep costs less than the reader's time, and the line behind the head is left alone.
 */
static void idle(struct target *t, size_t records)
{
	unsigned cpus = target_cpu_count(),
		 least = cpus > t->thread_count ? SLEEP_BUSY_US : SLEEP_SHARED_US;
	if (records >= BUSY_RECORDS)
		t->idle_us = least;
	else
		t->idle_us = MIN(MAX(2 * t->idle_us, least), SLEEP_MAX_US);
	sleep_until_stop(t, (cpus == 1 ? SLEEP_MAX_US : t->idle_us) * 1000ull);
}

static bool has_rings(const struct target *t)
{
	if (t->faults)
		return true;
	for (size_t i = 0; i < t->processes.count; i++) {
		if (t->processes.data[i]->space->pads)
			return true;
	}
	return false;
}

#define STOPS_IN_A_ROW 32

/* One round with rings: the stops that wait, then the records, then rest. */
static int step_with_rings(struct target *t)
{
	int rc = 0, stops = 0;
	while (stops < STOPS_IN_A_ROW && !t->promote && (rc = loop_step(t, true)) == 0)
		stops++;
	bool is_more;
	size_t records = drain_all(t, &is_more);
	if (rc == -EAGAIN && stops == 0 && !is_more)
		idle(t, records);
	return rc == -ECHILD ? rc : 0;
}

/* One stop. With something due at a time the wait ends then: SIGCHLD is blocked, so none is missed. */
static int step_without_rings(struct target *t)
{
	if (t->next_tick_ns == UINT64_MAX)
		return loop_step(t, false);
	int rc = loop_step(t, true);
	if (rc == -EAGAIN)
		sleep_until_stop(t, UINT64_MAX);
	return rc;
}

#define WHOLE_ROUNDS 256 /* a program that allocates faster than we read must not keep us */

/* Who looks now sees all that happened until now. */
static void drain_whole(struct target *t)
{
	bool is_more = true;
	for (int i = 0; i < WHOLE_ROUNDS && is_more; i++)
		drain_all(t, &is_more);
}

void target_run(struct target *t)
{
	while (t->processes.count > 0) {
		if (t->now_ns >= t->next_tick_ns)
			sample_run_timers(t);
		int rc = has_rings(t) ? step_with_rings(t) : step_without_rings(t);
		if (rc == -ECHILD)
			break;
		if (t->promote)
			promote(t);
		if (t->must_restart)
			restart(t);
		if (wake_flag) {
			wake_flag = 0;
			drain_whole(t);
			if (t->sink.poll && t->sink.poll(t->sink.ctx))
				break;
		}
	}
}
