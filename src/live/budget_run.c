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
#include "session/observer.h"
#include "session/recording_values.h"
#include "session/run.h"
#include "session/session.h"
#include "tracee/control/target.h"
#include "tracee/state/heap_sampling.h"

#define WINDOW_NS UINT64_C(1000000000)

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
	b->observer = (struct observer){.ctx = b, .tick = tick};
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
