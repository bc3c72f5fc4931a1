/*
 * The rule of --budget, what no interval changes (stops at breakpoints), and the run that measures
 * both.
 */
#include "live/budget.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/types.h"
#include "profile/estimate.h"
#include "session/observer.h"
#include "session/record/recording_values.h"
#include "session/run.h"
#include "session/session.h"
#include "tracee/control/target.h"
#include "tracee/pads/heap_sampling.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/trap_table.h"

/*
 * A window in which ptmem was busy with something else, such as symbols at the start or a file,
 * must not lengthen the interval: what few samples there were cannot have caused it. If a halved
 * interval turns out to be too short again, the next attempt is made after twice the time, so that
 * a program that needs something in between does not alternate forever.
 */

#define CALM_MIN 10u
#define CALM_MAX 600u
#define STOPS_LEAST 100u       /* in a window: fewer may be those before the jumps are placed */
#define STOP_LEAST_NS 20000.0
#define RECORD_MOST_NS 50000.0 /* of ptmem and the program, if each record wakes ptmem up */

void budget_init(struct budget *b, double share, uint64_t interval)
{
	*b = (struct budget){.share = share, .calm_needed = CALM_MIN};
	while (b->shift_max < ESTIMATE_SHIFT_MAX &&
	       interval << (b->shift_max + 1) <= ESTIMATE_INTERVAL_MAX)
		b->shift_max++;
}

/* The cost in @w as a share of one CPU. */
static double budget_cost(const struct budget_window *w)
{
	return ((double)w->cpu_ns + (double)w->records * BUDGET_RECORD_NS) / (double)w->wall_ns;
}

bool budget_is_out_of_reach(const struct budget *b, const struct budget_window *w, uint64_t stops)
{
	return stops >= STOPS_LEAST && budget_cost(w) > b->share &&
	       (double)stops * STOP_LEAST_NS > b->share * (double)w->wall_ns;
}

static bool lengthen(struct budget *b, double cost)
{
	uint32_t steps = (uint32_t)fmin(ceil(log2(cost / b->share)), ESTIMATE_SHIFT_MAX);
	uint32_t shift = MIN(b->shift + MAX(steps, 1u), b->shift_max);
	bool is_changed = shift != b->shift;

	if (is_changed && b->was_halved)
		b->calm_needed = MIN(2 * b->calm_needed, CALM_MAX);
	b->was_halved &= !is_changed;
	b->calm = 0;
	b->shift = shift;
	return is_changed;
}

bool budget_step(struct budget *b, const struct budget_window *w)
{
	double cost = w->wall_ns ? budget_cost(w) : 0;

	if (cost > b->share) {
		b->calm = 0;
		return (double)w->records * RECORD_MOST_NS > b->share * (double)w->wall_ns &&
		       lengthen(b, cost);
	}
	b->calm = cost < b->share / 4 ? b->calm + 1 : 0;
	if (b->shift == 0 || b->calm < b->calm_needed)
		return false;
	b->shift--;
	b->calm = 0;
	b->was_halved = true;
	return true;
}

/*
 * What --budget cannot change: calls that stop at breakpoints, since their functions have no jumps.
 */

struct address_space;

#define NAMES_MAX 3u

static bool is_breakpoint(const struct trap *trap)
{
	return trap->kind == TRAP_ENTRY && !trap->is_removed && !trap->pad;
}

/* The number of such calls so far; it falls when a function gets a jump. */
static uint64_t budget_stops_count(const struct address_space *s)
{
	uint64_t hits = 0;

	for (size_t i = 0; i < s->traps.count; i++)
		hits += is_breakpoint(&s->traps.data[i]) ? s->traps.data[i].hits : 0;
	return hits;
}

/* The breakpoint with most hits after @last, in their order; NULL = none is left. */
static const struct trap *next_most(const struct address_space *s, const struct trap *last)
{
	const struct trap *found = NULL;

	for (size_t i = 0; i < s->traps.count; i++) {
		const struct trap *trap = &s->traps.data[i];
		bool is_next = !last || trap->hits < last->hits ||
			       (trap->hits == last->hits && trap > last);

		if (is_next && is_breakpoint(trap) && trap->hits > (found ? found->hits : 0))
			found = trap;
	}
	return found;
}

/* The functions with most of them, and why they have no jumps. The caller frees it. */
static char *budget_stops_explain(const struct address_space *s)
{
	const char *why = s->promotion.is_impossible ? s->promotion.why : NULL;
	_cleanup_free_ char *names = xstrdup("");
	const struct trap *trap = NULL;

	for (unsigned n = 0; n < NAMES_MAX && (trap = next_most(s, trap)); n++) {
		char *longer = xasprintf("%s%s%s", names, n ? ", " : "", trap->probe->symbol);

		free(names);
		names = longer;
		why = why ? why : trap->why_cold;
	}
	return xasprintf("%s (%s)", names, why ? why : "no jumps yet");
}

/* A window is a second: long enough for hundreds of samples, and for the clock of CPU time. */

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

	recording_values_mark(s, clock_now_ns(), "interval", marker);
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
