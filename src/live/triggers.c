/* See triggers.h. An observer of the run; conditions were checked with the options. */
#include "live/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cgroup.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/proc.h"
#include "session/condition.h"
#include "session/inspect/inspect_session.h"
#include "session/observer.h"
#include "session/record/recording_now.h"
#include "session/session.h"
#include "tracee/control/target.h"

#define TICK_NS 250000000ull
#define SAMPLES 64u /* of a period */

/* Values of the last period of a condition, oldest first. */
struct window {
	struct {
		uint64_t ns, value;
	} at[SAMPLES];
	unsigned count;
};

struct state {
	struct condition_state condition;
	struct window window;      /* of growth and limit */
};

/* A process, with the state of each condition. */
struct watched {
	const struct session *session;
	struct memory_cgroup cgroup;
	struct state *state;
	bool wants_detach;         /* from this process alone */
};

struct trigger {
	struct condition condition;
	const char *text;
};

struct triggers {
	struct run *run;
	struct observer observer;
	VEC(struct trigger) list;
	VEC(struct watched) watched;
	uint64_t next_ns;
	bool wants_detach;
};

/* -- values -- */

/* By how much @value has risen within @period_ns, or since the first value. */
static uint64_t rise(struct window *w, uint64_t now_ns, uint64_t value, uint64_t period_ns)
{
	uint64_t start = now_ns - MIN(now_ns, period_ns);
	unsigned drop = 0;

	while (drop + 1 < w->count && w->at[drop + 1].ns <= start)
		drop++;
	w->count -= drop;
	memmove(w->at, w->at + drop, w->count * sizeof(*w->at));
	bool is_due = !w->count ||
		      now_ns - w->at[w->count - 1].ns >= period_ns / (SAMPLES - 4);

	if (is_due && w->count < SAMPLES) {
		w->at[w->count].ns = now_ns;
		w->at[w->count++].value = value;
	}
	return value - MIN(value, w->at[0].value);
}

/* The limit of its cgroup, or else physical memory. */
static double memory_for(const struct watched *w)
{
	struct sysinfo info;
	uint64_t limit = memory_cgroup_limit(&w->cgroup);

	if (sysinfo(&info) == 0)
		limit = MIN(limit, (uint64_t)info.totalram * info.mem_unit);
	return (double)limit;
}

/* The value that @c compares, and its text; false if it is unknown. */
static bool measure(struct watched *w, const struct condition *c, struct window *window,
		    double *out)
{
	uint64_t now_ns = clock_now_ns(), n = 0;
	const struct profile_totals *totals = profile_totals(w->session->heap.profile);
	struct proc_statm m;

	switch (c->kind) {
	case CONDITION_HEAP:
		*out = (double)totals->live_bytes;
		return true;
	case CONDITION_GROWTH:
		*out = (double)rise(window, now_ns, totals->live_bytes, c->period_ns);
		return true;
	case CONDITION_RSS:
		if (proc_statm_read((pid_t)w->session->process.pid, &m) != 0)
			return false;
		*out = c->is_percent ? 100 * (double)m.resident / memory_for(w) :
				       (double)m.resident;
		return true;
	case CONDITION_PRESSURE:
		return memory_cgroup_pressure(&w->cgroup, out);
	default:
		if (!memory_cgroup_limit_hits(&w->cgroup, &n))
			return false;
		*out = (double)rise(window, now_ns, n, c->period_ns);
		return true;
	}
}

static void value_text(const struct condition *c, double value, char out[static AMOUNT_SIZE])
{
	if (c->is_percent)
		snprintf(out, AMOUNT_SIZE, "%.2f %%", value);
	else if (c->kind == CONDITION_LIMIT)
		snprintf(out, AMOUNT_SIZE, "%.0f", value);
	else
		amount_bytes(value, out);
}

/* -- actions -- */

static void act(struct triggers *t, struct watched *w, const struct condition *c)
{
	struct session *s = (struct session *)(uintptr_t)w->session;

	switch (c->action) {
	case ACTION_RECORD:
		recording_now_write(s, ++run_process(t->run, s->process.pid)->numbers);
		break;
	case ACTION_INSPECT:
		inspect_session_save(s, ++run_process(t->run, s->process.pid)->numbers);
		break;
	case ACTION_END:
		t->run->must_end = true;
		t->wants_detach = true;
		target_wake();
		break;
	default: /* --follow goes on with other processes */
		w->wants_detach = t->run->options->attach.follow.count > 0;
		t->wants_detach |= !w->wants_detach;
		target_wake();
	}
}

static void check(struct triggers *t, struct watched *w, size_t i)
{
	const struct trigger *trigger = &t->list.data[i];
	const struct condition *c = &trigger->condition;
	static const char *const does[] = {
		[ACTION_RECORD] = "writing the recording so far",
		[ACTION_INSPECT] = "inspecting its memory", [ACTION_DETACH] = "detaching",
		[ACTION_END] = "the profile ends",
	};
	struct state *state = &w->state[i];
	char text[AMOUNT_SIZE];
	double value;

	if (!measure(w, c, &state->window, &value))
		return;
	if (!condition_note(&state->condition, value > c->threshold, clock_now_ns()))
		return;
	bool holds = state->condition.holds;

	value_text(c, value, text);
	if (holds)
		log_info("process %u: %.*s: it is %s; %s", w->session->process.pid,
			 (int)c->text_size, trigger->text, text, does[c->action]);
	else
		log_verbose("process %u: %.*s no longer: it is %s", w->session->process.pid,
			    (int)c->text_size, trigger->text, text);
	if (holds)
		act(t, w, c);
}

/* -- what the run reports -- */

static void on_start(void *ctx, const struct session *s)
{
	struct triggers *t = ctx;
	struct watched *w = vec_add(&t->watched);
	double value;

	*w = (struct watched){
		.session = s, .state = xcalloc(t->list.count, sizeof(*w->state))};
	memory_cgroup_find_of((pid_t)s->process.pid, &w->cgroup);
	/* growth begins here */
	for (size_t i = 0; i < t->list.count; i++)
		measure(w, &t->list.data[i].condition, &w->state[i].window, &value);
}

static void drop(struct triggers *t, size_t i)
{
	memory_cgroup_deinit(&t->watched.data[i].cgroup);
	free(t->watched.data[i].state);
	vec_take_swap(&t->watched, i);
}

static void on_end(void *ctx, const struct session *s, bool is_exec)
{
	struct triggers *t = ctx;

	for (size_t i = t->watched.count; i-- > 0;)
		if (t->watched.data[i].session == s)
			drop(t, i);
}

static uint64_t on_tick(void *ctx, uint64_t now_ns)
{
	struct triggers *t = ctx;

	if (now_ns < t->next_ns)
		return t->next_ns;
	for (size_t k = 0; k < t->watched.count; k++)
		for (size_t i = 0; i < t->list.count && t->watched.data[k].session->space; i++)
			check(t, &t->watched.data[k], i);
	return t->next_ns = now_ns + TICK_NS;
}

static bool on_poll(void *ctx)
{
	const struct triggers *t = ctx;

	for (size_t i = 0; i < t->watched.count;) {
		pid_t pid = (pid_t)t->watched.data[i].session->process.pid;

		if (!t->watched.data[i].wants_detach || !target_traces(t->run->target, pid)) {
			i++;
			continue;
		}
		target_detach_process(t->run->target, pid);
		log_info("process %d: detached; it runs on", (int)pid);
		i = 0; /* on_end has removed it */
	}
	return t->wants_detach;
}

/* -- life -- */

/* Whether the cgroup of process @pid has what @trigger needs; a message if not. */
static int check_cgroup(const struct trigger *trigger, pid_t pid)
{
	struct memory_cgroup c;
	double pressure;
	uint64_t hits;
	const char *what = NULL;

	memory_cgroup_find_of(pid, &c);
	if (trigger->condition.kind == CONDITION_PRESSURE && !memory_cgroup_pressure(&c, &pressure))
		what = "no readable memory.pressure (cgroup version 2 with PSI)";
	if (trigger->condition.kind == CONDITION_LIMIT && !memory_cgroup_limit_hits(&c, &hits))
		what = "neither a readable memory.events (cgroup version 2) nor memory.failcnt "
		       "(version 1)";
	memory_cgroup_deinit(&c);
	if (!what)
		return 0;
	log_error("--when=%s: the cgroup of process %d has %s", trigger->text, (int)pid, what);
	return -ENOENT;
}

/* A program that is started begins in ptmem's cgroup; those of --follow are not known yet. */
static int check_cgroups(const struct triggers *t)
{
	const struct options *o = t->run->options;
	pid_t own = getpid();
	const pid_t *pid = o->attach.pid_count ? o->attach.pid : &own;
	int rc = 0;

	for (size_t i = 0; i < t->list.count && !o->attach.follow.count; i++)
		for (uint32_t k = 0; k < MAX(o->attach.pid_count, 1u) && rc == 0; k++)
			rc = check_cgroup(&t->list.data[i], pid[k]);
	return rc;
}

int triggers_open(struct run *run, struct triggers **out)
{
	const struct option_strings *when = &run->options->when;

	if (!when->count)
		return 0;
	struct triggers *t = xcalloc(1, sizeof(*t));

	t->run = run;
	for (size_t i = 0; i < when->count; i++) {
		struct trigger *trigger = vec_add(&t->list);

		trigger->text = when->data[i];
		CHECK(!condition_parse(trigger->text, &trigger->condition));
	}
	t->observer = (struct observer){
		.ctx = t, .session_started = on_start, .session_forked = on_start,
		.session_ended = on_end, .tick = on_tick, .poll = on_poll};
	observers_add(run, &t->observer);
	int rc = check_cgroups(t);

	if (rc != 0)
		triggers_close(t);
	else
		*out = t;
	return rc;
}

void triggers_close(struct triggers *t)
{
	if (!t)
		return;
	observers_remove(t->run, &t->observer);
	while (t->watched.count > 0)
		drop(t, 0);
	vec_deinit(&t->watched);
	vec_deinit(&t->list);
	free(t);
}
