/*
 * Pads count every call, sampled or not, so these totals are exact. While the program runs they are
 * read from the pads, afterwards from the session.
 */
#include "session/recording_calls.h"

#include <inttypes.h>
#include <stdio.h>

#include "recording/recording.h"
#include "session/recording_run_internal.h"
#include "session/session.h"
#include "session/session_sampling.h"
#include "tracee/pads/pad_sampling.h"

struct call_totals recording_calls_now(const struct session *s)
{
	struct call_totals totals = {0};

	if (!s->space)
		return s->heap.sample.totals;
	pads_add_totals(s->space, &totals);
	return totals;
}

void recording_calls_fill(const struct session *s, const struct recording_span *span,
			  struct recording *out)
{
	static const char *const names[HEAP_FUNCTION_COUNT] = {
		[FUNCTION_MALLOC] = "malloc",
		[FUNCTION_CALLOC] = "calloc",
		[FUNCTION_REALLOC] = "realloc",
		[FUNCTION_MEMALIGN] = "memalign",
		[FUNCTION_NEW] = "operator new",
		[FUNCTION_FREE] = "free",
		[FUNCTION_DELETE] = "operator delete",
		[FUNCTION_REQUEST] = "client request",
	};
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
		const uint64_t row[CALL_COLUMNS] = {recording_string(out, names[i]),
						    total->calls - base->function[i].calls,
						    total->bytes - base->function[i].bytes};

		if (row[CALL_CALLS] && names[i])
			recording_add(out, RECORDING_CALLS, row);
	}
}
