/* See recording_values.h. */
#include "session/recording_values.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "profile/history.h"
#include "session/recording_calls.h"
#include "session/recording_cost.h"
#include "session/recording_labels.h"
#include "session/recording_run_internal.h"
#include "session/session.h"

void recording_values_begin(struct session *s)
{
	if (s->recording)
		return;
	s->recording = xcalloc(1, sizeof(*s->recording));
	s->recording->known = recording_new();
	s->recording->threads.known = s->recording->known;
	s->recording->threads.pid = (pid_t)s->process.pid;
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

void recording_values_mark(struct session *s, const char *kind, const char *text)
{
	recording_values_set(s, "marker", "%" PRIu64 " %s %s",
			     recording_values_clock(s, clock_now_ns()), kind, text);
}

/* -- threads -- */

void recording_values_name_thread(struct session *s, uint32_t thread)
{
	struct thread_name n;

	if (recording_threads_read(&s->recording->threads, thread, &n))
		recording_values_add(s, n.key, n.name);
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

/* Values of the whole run that a part has of its own. */
static void set_part(const struct recording_span *span, struct recording *out)
{
	set_number(out, "part", span->part);
	if (*span->moment.start) {
		recording_set_meta(out, "start", span->moment.start);
		recording_set_meta(out, "start_monotonic", span->moment.monotonic);
	}
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
		} else if (!span->part || !recording_cost_is(key)) {
			recording_set_meta(out, key, value);
		}
	}
	if (!first && span->part)
		set_part(span, out);
}
