/* See pad_clock.h. */
#include "tracee/pads/pad_clock.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/parallel.h"

#define LATE_NS (PAD_CLOCK_NS + PAD_CLOCK_NS / 2)
#define LATE_TURNS 1024u /* so many are remembered: at least 0.15 s */

/* The thread writes here, the reader of rings reads. */
struct late_turn {
	uint64_t before, at; /* the old word, and when the next one had replaced it */
};

struct pad_clock {
	pthread_mutex_t lock; /* for control, and while words are written */
	VEC(struct pad_control *) control;
	pthread_t thread;
	pid_t pid;            /* where the thread runs: 0 = nowhere */
	bool must_end;
	uint64_t now;         /* the last word that was written everywhere */
	struct late_turn late[LATE_TURNS];
	uint64_t late_count;  /* those that ever were */
};

static void note_late(struct pad_clock *c, uint64_t before, uint64_t now)
{
	struct late_turn *late = &c->late[c->late_count % LATE_TURNS];

	/* after the count of the last one: is_forgotten */
	__atomic_store_n(&late->before, before, __ATOMIC_RELEASE);
	__atomic_store_n(&late->at, now, __ATOMIC_RELEASE);
	__atomic_store_n(&c->late_count, c->late_count + 1, __ATOMIC_RELEASE);
}

/* The thread may lose its CPU anywhere: the old word is in force until the new one is written. */
static void turn(struct pad_clock *c)
{
	uint64_t now, end, before = c->now;

	pthread_mutex_lock(&c->lock);
	now = clock_now_ns();
	for (size_t i = 0; i < c->control.count; i++)
		__atomic_store_n(&c->control.data[i]->clock, now, __ATOMIC_SEQ_CST);
	end = clock_now_ns();
	if (end - before > LATE_NS)
		note_late(c, before, end);
	__atomic_store_n(&c->now, now, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&c->lock);
}

static void *run(void *ctx)
{
	const struct timespec pause = {.tv_nsec = PAD_CLOCK_NS};
	struct pad_clock *c = ctx;

	prctl(PR_SET_TIMERSLACK, 1ul);
	while (!__atomic_load_n(&c->must_end, __ATOMIC_RELAXED)) {
		turn(c);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	return NULL;
}

struct pad_clock *pad_clock_new(void)
{
	struct pad_clock *c = xcalloc(1, sizeof(*c));

	pthread_mutex_init(&c->lock, NULL);
	return c;
}

/* In a child that was forked there is no thread, and the lock may be held for ever. */
static bool is_running(const struct pad_clock *c)
{
	return c->pid != 0 && c->pid == getpid();
}

void pad_clock_delete(struct pad_clock *c)
{
	if (!c)
		return;
	if (is_running(c)) {
		__atomic_store_n(&c->must_end, true, __ATOMIC_RELAXED);
		pthread_join(c->thread, NULL);
	}
	vec_deinit(&c->control);
	free(c);
}

static bool start(struct pad_clock *c)
{
	const struct sched_param priority = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};

	c->now = clock_now_ns(); /* the first turn may be late, too */
	if (!parallel_start(&c->thread, run, c))
		return false;
	pthread_setschedparam(c->thread, SCHED_FIFO, &priority); /* if permitted */
	c->pid = getpid();
	return true;
}

bool pad_clock_add(struct pad_clock *c, struct pad_control *control)
{
	if (c->pid == 0 && !start(c))
		return false;
	if (!is_running(c))
		return false;
	pthread_mutex_lock(&c->lock);
	*vec_add(&c->control) = control;
	__atomic_store_n(&control->clock, c->now, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&c->lock);
	return true;
}

void pad_clock_remove(struct pad_clock *c, const struct pad_control *control)
{
	if (!is_running(c))
		return;
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->control.count; i++) {
		if (c->control.data[i] == control) {
			c->control.data[i] = c->control.data[--c->control.count];
			break;
		}
	}
	pthread_mutex_unlock(&c->lock);
}

/* Whether the @i-th late turn, from 1 on, is not or soon will not be in the list any more. */
static bool is_forgotten(const struct pad_clock *c, uint64_t i)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&c->late_count, __ATOMIC_RELAXED) - i >= LATE_TURNS - 1;
}

uint64_t pad_clock_end(const struct pad_clock *c, uint64_t now)
{
	uint64_t last = __atomic_load_n(&c->now, __ATOMIC_ACQUIRE);
	uint64_t count = __atomic_load_n(&c->late_count, __ATOMIC_ACQUIRE);

	if (now >= last)
		return UINT64_MAX;
	for (uint64_t i = count; i > 0; i--) {
		const struct late_turn *late = &c->late[(i - 1) % LATE_TURNS];
		uint64_t before = __atomic_load_n(&late->before, __ATOMIC_RELAXED);
		uint64_t at = __atomic_load_n(&late->at, __ATOMIC_RELAXED);

		if (is_forgotten(c, i))
			return UINT64_MAX;
		if (at <= now)
			break;
		if (before == now)
			return at;
	}
	return now + LATE_NS;
}
