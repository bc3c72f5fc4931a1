/* See session_sampling.h. */
#include "session/session_sampling.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "recording/sampling_note.h"
#include "session/lost_events.h"
#include "session/session.h"

uint64_t session_sampling_longest(const struct session *s)
{
	return s->heap.sample.interval << s->heap.sample.shift_max;
}

char *session_sampling_range(const struct session *s)
{
	return sampling_range(s->heap.sample.interval, session_sampling_longest(s));
}

void session_describe(struct session *s, uint64_t interval)
{
	const char *desc = s->run->options->desc;
	/* bounds of errors depend on the longest one */
	_cleanup_free_ char *sampling =
		interval ? heap_sample_text(interval << s->heap.sample.shift_max) : NULL;
	_cleanup_free_ char *range = session_sampling_range(s);
	_cleanup_free_ char *changes = s->heap.sample.shift_max ?
					       xasprintf(", sampled every %s", range) :
					       xstrdup("");
	_cleanup_free_ char *lost =
		lost_events_text(&s->heap.sample.totals.lost, s->heap.sample.interval);
	bool has_desc = strcmp(desc, "(none)") != 0 || !sampling;

	free(s->process.desc);
	/* readers leave out what is after '#' */
	s->process.desc = xasprintf("%s%s%s%s%s%s%s", has_desc ? desc : "",
				    has_desc && sampling ? " " : "", sampling ? sampling : "",
				    interval > 1 ? " # the numbers of the heap are estimates" : "",
				    changes, lost ? interval > 1 ? ", " : " # " : "",
				    lost ? lost : "");
}

void session_sampling_note_sample(struct session *s, uint8_t shift)
{
	if (shift <= s->heap.sample.shift_max)
		return;
	s->heap.sample.shift_max = shift;
	session_describe(s, s->heap.sample.interval);
}
