/*
 * Values of a recording that are not from events. Those that /proc has are read while the process
 * is there: names of threads, its labels, its resident memory.
 */
#include "session/record/recording_values.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/cgroup.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/proc.h"
#include "profile/history.h"
#include "recording/recording.h"
#include "session/heap_sample.h"
#include "session/session.h"
#include "tracee/pads/heap_sampling.h"

/*
 * The name, control group and container of a process that ptmem attached to. They were read when
 * the session began: at the end the process may be gone.
 */
static void recording_labels_fill(const struct session *s, struct recording *out)
{
	const struct my_code *my_code = &s->run->options->names.my_code;
	char container[CONTAINER_ID_SIZE] = "";

	for (size_t i = 0; i < my_code->rule.count; i++)
		recording_set_meta(out, MY_CODE_META, my_code->rule.data[i]);
	if (s->process.name)
		recording_set_meta(out, "name", s->process.name);
	if (!s->process.cgroup)
		return;
	cgroup_container(s->process.cgroup, container);
	recording_set_meta(out, "cgroup", s->process.cgroup);
	if (*container)
		recording_set_meta(out, "container", container);
}

/*
 * Pads count every call, sampled or not, so these totals are exact. While the program runs they are
 * read from the pads, afterwards from the session.
 */

struct call_totals recording_calls_now(const struct session *s)
{
	struct call_totals totals = {0};

	if (!s->space)
		return s->heap.sample.totals;
	heap_sampling_add_totals(s->space, &totals);
	return totals;
}

/* Adds both to @out, the totals of @span; nothing if the session records every event. */
static void recording_calls_fill(const struct session *s, const struct recording_span *span,
				 struct recording *out)
{
	char interval[24];

	if (!s->heap.sample.interval)
		return;
	snprintf(interval, sizeof(interval), "%" PRIu64, s->heap.sample.interval);
	recording_set_meta(out, "heap_sample", interval);
	if (s->heap.sample.shift_max) {
		snprintf(interval, sizeof(interval), "%" PRIu64, session_sampling_longest(s));
		recording_set_meta(out, "heap_sample_max", interval);
	}
	const struct call_totals totals = recording_calls_now(s);
	const struct call_totals *base = &span->base.calls;

	for (unsigned i = 0; i < HEAP_FUNCTION_COUNT; i++) {
		const struct call_total *total = &totals.function[i];

		/* if there were none there is not even its name in the recording */
		if (i == FUNCTION_RELEASE && !total->calls)
			continue;
		const char *name = heap_function_name(i);
		const uint64_t row[CALL_COLUMNS] = {recording_string(out, name),
						    total->calls - base->function[i].calls,
						    total->bytes - base->function[i].bytes};

		if (row[CALL_CALLS] && name)
			recording_add(out, RECORDING_CALLS, row);
	}
}

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

/* Whether @key is that of one of these. */
static bool recording_cost_is(const char *key)
{
	for (int i = 0; i < COSTS; i++) {
		if (strcmp(key, keys[i]) == 0)
			return true;
	}
	return false;
}

void resident_sample(struct session *s, uint64_t now_ns)
{
	/* a process that has ended would have 0 */
	struct proc_statm m;

	if (!s->space || proc_statm_read((pid_t)s->process.pid, &m) != 0)
		return;
	const struct event ev = {
		.time_ns = now_ns,
		.thread = s->process.pid,
		.kind = EVENT_RESIDENT,
		.size = m.resident,
		.align = m.size,
	};

	if (s->events.writer)
		events_writer_event(s->events.writer, profile_calltree(s->heap.profile), &ev);
	profile_event(s->heap.profile, &ev);
}

void recording_values_begin(struct session *s)
{
	if (s->recording)
		return;
	s->recording = xcalloc(1, sizeof(*s->recording));
	s->recording->known = recording_new();
	s->recording->flush_ns = s->process.start_ns;
}

void recording_values_add(struct session *s, const char *key, const char *value)
{
	if (!options_record(s->run->options))
		return;
	recording_values_begin(s);
	recording_set_meta(s->recording->known, key, value);
	if (s->events.writer)
		events_writer_value(s->events.writer, key, value);
}

void recording_values_set(struct session *s, const char *key, const char *fmt, ...)
{
	_cleanup_free_ char *value = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&value, fmt, ap) < 0)
		value = NULL;
	va_end(ap);
	recording_values_add(s, key, value ? value : "");
}

uint64_t recording_values_clock(const struct session *s, uint64_t now_ns)
{
	return now_ns > s->process.start_ns ? (now_ns - s->process.start_ns) / 1000000 : 0;
}

void recording_values_mark(struct session *s, uint64_t time_ns, const char *kind, const char *text)
{
	recording_values_set(s, "marker", "%" PRIu64 " %s %s",
			     recording_values_clock(s, time_ns), kind, text);
}

/* -- threads -- */

void recording_values_name_thread(struct session *s, uint32_t thread)
{
	struct recording_run *rr = s->recording;
	char key[32], name[64];
	_cleanup_free_ char *path = xasprintf("task/%u/comm", thread);
	_cleanup_fclose_ FILE *f = proc_open((pid_t)s->process.pid, path);

	if (!f || !fgets(name, sizeof(name), f))
		return;
	name[strcspn(name, "\n")] = '\0';
	if (!*name)
		return;
	snprintf(key, sizeof(key), "thread.%" PRIu32, thread);
	uint32_t key_text = recording_string(rr->known, key);
	uint32_t name_text = recording_string(rr->known, name);

	while (rr->thread_name.count <= key_text)
		*vec_add(&rr->thread_name) = 0;
	if (rr->thread_name.data[key_text] == name_text)
		return;
	rr->thread_name.data[key_text] = name_text;
	recording_values_add(s, key, name);
}

void recording_values_name_threads(struct session *s)
{
	const struct history *h = profile_history(s->heap.profile);

	for (; s->recording->named < h->thread.count; s->recording->named++)
		recording_values_name_thread(s, h->thread.data[s->recording->named].id);
}

/* -- in a recording -- */

static void set_number(struct recording *out, const char *key, unsigned value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	recording_set_meta(out, key, text);
}

static void add_marker(struct recording *r, const struct recording_span *span, const char *value)
{
	char *end;
	uint64_t start = span->start_ns / 1000000, time = strtoull(value, &end, 10);
	const char *kind = *end ? end + 1 : end;
	size_t size = strcspn(kind, " ");
	const uint64_t row[MARKER_COLUMNS] = {
		time - MIN(start, time), recording_text_index(r, kind, size),
		recording_string(r, kind[size] ? kind + size + 1 : "")};

	recording_add(r, RECORDING_MARKERS, row);
}

#define READINGS 4 /* of both clocks: the closest counts */

void recording_moment_set(struct recording_moment *m, uint64_t ns)
{
	uint64_t least = UINT64_MAX, offset = 0; /* from CLOCK_MONOTONIC to the wall clock */

	for (int i = 0; i < READINGS; i++) {
		struct timespec wall = {0};
		uint64_t before = clock_now_ns();
		clock_gettime(CLOCK_REALTIME, &wall);
		uint64_t took = clock_now_ns() - before;
		if (took >= least)
			continue;
		least = took;
		offset = (uint64_t)wall.tv_sec * 1000000000 + (uint64_t)wall.tv_nsec -
			 (before + took / 2);
	}
	uint64_t wall_us = (ns + offset) / 1000;

	snprintf(m->start, sizeof(m->start), "%" PRIu64 ".%06" PRIu64, wall_us / 1000000,
		 wall_us % 1000000);
	snprintf(m->monotonic, sizeof(m->monotonic), "%" PRIu64 ".%09" PRIu64, ns / 1000000000,
		 ns % 1000000000);
}

bool recording_span_is_later(const struct recording_span *span)
{
	return span->part || span->start_ns;
}

/* Values of the whole run that a part, or a forked child, has of its own. */
static void set_part(const struct recording_span *span, struct recording *out)
{
	if (span->part)
		set_number(out, "part", span->part);
	if (span->lead_ns)
		set_number(out, "lead", span->lead_ns);
	if (*span->moment.start) {
		recording_set_meta(out, "start", span->moment.start);
		recording_set_meta(out, "start_monotonic", span->moment.monotonic);
	}
}

/* Whether @span is a part, or a forked child, that a value of @key is not about. */
static bool is_of_whole_run(const struct recording_span *span, const char *key)
{
	return (recording_span_is_later(span) && recording_cost_is(key)) ||
	       (span->part && strcmp(key, WITHIN_META) == 0);
}

void recording_values_copy(struct session *s, const struct recording_span *span,
			   struct recording *out, size_t first)
{
	const struct recording *known = s->recording->known;

	if (!first) {
		set_number(out, "pid", s->process.pid);
		recording_set_meta(out, "command", s->process.command);
		recording_labels_fill(s, out);
		if (s->heap.sample.totals.is_doubtful)
			recording_set_meta(out, "corrupt", "1");
	}
	recording_calls_fill(s, span, out);
	for (size_t i = first; i < recording_rows(known, RECORDING_META); i++) {
		const char *key =
			known->text.data[recording_get(known, RECORDING_META, i, META_KEY)];
		const char *value =
			known->text.data[recording_get(known, RECORDING_META, i, META_VALUE)];

		if (strcmp(key, "marker") == 0) {
			if (i >= span->first_value)
				add_marker(out, span, value);
		} else if (!is_of_whole_run(span, key)) {
			recording_set_meta(out, key, value);
		}
	}
	if (!first && recording_span_is_later(span))
		set_part(span, out);
}
