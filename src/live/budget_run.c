/* A window is a second: long enough for hundreds of samples, and for the clock of CPU time. */
#include "live/budget_run.h"

#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "live/budget_step.h"
#include "live/budget_stops.h"
#include "session/observer.h"
#include "session/recording_values.h"
#include "session/run.h"
#include "session/session.h"
#include "tracee/control/target.h"
#include "tracee/control/target_run.h"
#include "tracee/state/heap_sampling.h"

#define WINDOW_NS UINT64_C(1000000000)
/* Windows in a row in which stops at breakpoints cost more than the budget. */
#define WARN_AFTER 2u
#define LEAVE_AFTER 6u

struct budget_run {
	struct run *run;
	struct budget budget;
	struct observer observer;
	uint64_t begin_ns, cpu_ns, records; /* when the window began */
};

/* CPU time of all threads of ptmem. */
static uint64_t own_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void begin_window(struct budget_run *b, uint64_t now_ns)
{
	b->begin_ns = now_ns;
	b->cpu_ns = own_cpu_ns();
	b->records = target_records(b->run->target);
}

static void note_change(struct session *s, uint64_t interval)
{
	char text[AMOUNT_SIZE];

	s->heap.sample.now = interval;
	_cleanup_free_ char *marker =
		xasprintf("samples every %s", amount_bytes((double)interval, text));

	recording_values_mark(s, "interval", marker);
}

static void change(struct budget_run *b, double cost)
{
	struct run *run = b->run;
	uint64_t interval = run->options->tracing.heap_sample << b->budget.shift;
	char text[AMOUNT_SIZE];

	heap_sampling_set_shift(run->target, b->budget.shift);
	for (size_t i = 0; i < run->sessions.count; i++)
		note_change(run->sessions.data[i], interval);
	log_verbose("sampling costs %.2f %% of a CPU: from now on every %s", cost * 100,
		    amount_bytes((double)interval, text));
}

static void warn(const struct budget_run *b, const struct session *s, uint64_t stops)
{
	_cleanup_free_ char *why = budget_stops_explain(s->space);
	char n[AMOUNT_SIZE];

	log_warn("process %u: --budget=%g%% cannot be kept: %s calls a second stop at breakpoints, "
		 "whatever the interval: %s; if that goes on, ptmem detaches in %u s",
		 s->process.pid, b->run->options->tracing.budget, amount_commas(stops, n), why,
		 LEAVE_AFTER - WARN_AFTER);
}

static void check_stops(const struct budget_run *b, struct session *s,
			const struct budget_window *w)
{
	struct heap_sample *h = &s->heap.sample;
	uint64_t all = budget_stops_count(s->space), stops = all - MIN(all, h->stops);

	h->stops = all;
	h->over = budget_is_out_of_reach(&b->budget, w, stops) ? h->over + 1 : 0;
	if (h->over == WARN_AFTER)
		warn(b, s, stops * WINDOW_NS / w->wall_ns);
	if (h->over >= LEAVE_AFTER)
		target_wake();
}

/* Leaves processes with which the budget cannot be kept; --follow goes on with others. */
static bool leave(void *ctx)
{
	const struct budget_run *b = ctx;
	bool is_follow = b->run->options->attach.follow.count > 0, wants_detach = false;

	for (size_t i = 0; i < b->run->sessions.count; i++) {
		struct session *s = b->run->sessions.data[i];

		if (!s->space || s->heap.sample.over < LEAVE_AFTER ||
		    !target_traces(b->run->target, (pid_t)s->process.pid))
			continue;
		log_warn("process %u: detached, since --budget=%g%% could not be kept; it runs on",
			 s->process.pid, b->run->options->tracing.budget);
		s->heap.sample.over = 0;
		wants_detach |= !is_follow;
		if (!is_follow)
			continue;
		target_detach_process(b->run->target, (pid_t)s->process.pid);
		i = (size_t)-1; /* its session has ended */
	}
	return wants_detach;
}

static uint64_t tick(void *ctx, uint64_t now_ns)
{
	struct budget_run *b = ctx;

	if (now_ns < b->begin_ns + WINDOW_NS)
		return b->begin_ns + WINDOW_NS;
	const struct budget_window w = {
		.wall_ns = now_ns - b->begin_ns,
		.cpu_ns = own_cpu_ns() - b->cpu_ns,
		.records = target_records(b->run->target) - b->records,
	};

	if (budget_step(&b->budget, &w))
		change(b, budget_cost(&w));
	for (size_t i = 0; i < b->run->sessions.count; i++) {
		if (b->run->sessions.data[i]->space)
			check_stops(b, b->run->sessions.data[i], &w);
	}
	begin_window(b, now_ns);
	return now_ns + WINDOW_NS;
}

struct budget_run *budget_start(struct run *run)
{
	const struct options *o = run->options;

	if (o->tracing.budget <= 0)
		return NULL;
	struct budget_run *b = xcalloc(1, sizeof(*b));

	b->run = run;
	budget_init(&b->budget, o->tracing.budget / 100, o->tracing.heap_sample);
	begin_window(b, clock_now_ns());
	b->observer = (struct observer){.ctx = b, .tick = tick, .poll = leave};
	observers_add(run, &b->observer);
	return b;
}

void budget_stop(struct budget_run *b)
{
	if (!b)
		return;
	observers_remove(b->run, &b->observer);
	free(b);
}
