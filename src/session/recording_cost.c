/* See recording_cost.h. */
#include "session/recording_cost.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "session/lost_events.h"
#include "session/recording_calls.h"
#include "session/session.h"

enum { OVERHEAD, STACKS, COMPLETE_STACKS, LOST, TIMES, COSTS };

static const char *const keys[COSTS] = {
	[OVERHEAD] = "overhead",
	[STACKS] = "stacks",
	[COMPLETE_STACKS] = "complete_stacks",
	[LOST] = "lost",
	[TIMES] = "times",
};

struct recording_base recording_cost_now(const struct session *s)
{
	return (struct recording_base){
		.pauses_ns = s->space->pauses.stopped_ns,
		.stacks = s->stacks.counts.taken,
		.complete_stacks = s->stacks.counts.complete,
		.calls = recording_calls_now(s),
	};
}

ATTR_PRINTF(3, 4)
static void add(struct recording_cost *cost, int key, const char *fmt, ...)
{
	va_list ap;

	cost->value[cost->count].key = keys[key];
	va_start(ap, fmt);
	vsnprintf(cost->value[cost->count].text, sizeof(cost->value->text), fmt, ap);
	va_end(ap);
	cost->count++;
}

static void add_lost(const struct session *s, const struct recording_base *base,
		     struct recording_cost *out)
{
	struct lost_events lost = recording_calls_now(s).lost;

	lost.allocations -= base->calls.lost.allocations;
	lost.bytes -= base->calls.lost.bytes;
	lost.releases -= base->calls.lost.releases;
	_cleanup_free_ char *text = lost_events_text(&lost, s->heap.sample.interval);

	if (text)
		add(out, LOST, "%s: rings were full", text);
}

void recording_cost_since(const struct session *s, const struct recording_base *base,
			  struct recording_cost *out)
{
	uint64_t taken = s->stacks.counts.taken - base->stacks;
	uint64_t complete = s->stacks.counts.complete - base->complete_stacks;

	out->count = 0;
	add(out, OVERHEAD, "%.1f", (double)(s->end.pauses.stopped_ns - base->pauses_ns) / 1e6);
	add(out, STACKS, "%" PRIu64, taken);
	add(out, COMPLETE_STACKS, "%" PRIu64, complete);
	if (taken != complete)
		add(out, LOST, "%" PRIu64 " of %" PRIu64 " stacks are incomplete",
		    taken - complete, taken);
	add_lost(s, base, out);
	if (s->end.time_error_ns)
		add(out, TIMES, TIMES_TEXT, (double)s->end.time_error_ns / 1e6);
}

bool recording_cost_is(const char *key)
{
	for (int i = 0; i < COSTS; i++) {
		if (strcmp(key, keys[i]) == 0)
			return true;
	}
	return false;
}
