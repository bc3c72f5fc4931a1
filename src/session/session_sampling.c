/* See session_sampling.h. */
#include "session/session_sampling.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "recording/sampling_note.h"
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
	free(s->process.desc);
	/* readers leave out what is after '#' */
	if (sampling)
		s->process.desc = xasprintf("%s%s%s%s%s", strcmp(desc, "(none)") == 0 ? "" : desc,
				    strcmp(desc, "(none)") == 0 ? "" : " ", sampling,
				    interval > 1 ? " # the numbers of the heap are estimates" : "",
				    changes);
	else
		s->process.desc = xstrdup(desc);
}

void session_sampling_note_sample(struct session *s, uint8_t shift)
{
	if (shift <= s->heap.sample.shift_max)
		return;
	s->heap.sample.shift_max = shift;
	session_describe(s, s->heap.sample.interval);
}
