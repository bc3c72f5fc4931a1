/* See recording_bound.h. */
#include "session/recording_bound.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "session/recording_complete.h"
#include "session/recording_now.h"
#include "session/recording_run_internal.h"
#include "session/session.h"

#define REST 20u               /* for so many times as long as a copy took, there is none */
#define LEAST_REST_NS 1000000000ull

static uint64_t limit_of(const struct session *s)
{
	return s->run->options->files.record_limit;
}

bool recording_bound_is_reached(const struct session *s)
{
	const struct recording_journal *j = s->recording->file.journal;

	return limit_of(s) && recording_journal_next_size(j) > limit_of(s);
}

bool recording_bound_must_rewrite(const struct session *s)
{
	return recording_journal_next_size(s->recording->file.journal) > limit_of(s) / 2;
}

static struct session *find_session(struct run *run, const char *path)
{
	for (size_t i = 0; i < run->sessions.count; i++) {
		struct session *s = run->sessions.data[i];

		if (s->recording && s->recording->is_writing &&
		    strcmp(s->recording->path, path) == 0)
			return s;
	}
	return NULL;
}

/* Copy @w has ended with @result. */
static void note_end(struct run *run, const struct run_writer *w, int result)
{
	struct session *s = find_session(run, w->path);

	if (!s)
		return;
	uint64_t now = clock_now_ns(), rest = (now - w->begin_ns) * REST;

	s->recording->is_writing = false;
	s->recording->rewrite_ns = now + MAX(rest, (uint64_t)LEAST_REST_NS);
	if (result != 0 && !s->recording->has_failed)
		log_warn("cannot write %s: %s; trying again later", w->path,
			 result == -ECHILD ? "the process that wrote it was killed" :
					     strerror(-result));
	s->recording->has_failed |= result != 0;
}

int recording_bound_rewrite(struct session *s)
{
	struct recording_run *rr = s->recording;
	struct recording_now now = {
		.session = s, .path = rr->path, .note = note_end, .socket = -1};

	if (!s->space) { /* it has ended: nothing is kept waiting */
		recording_bound_wait(s);
		return recording_unfinished_write(s, rr->path);
	}
	if (rr->is_writing || clock_now_ns() < rr->rewrite_ns)
		return 0;
	int rc = recording_now_start(&now);

	rr->is_writing = rc == 0;
	return rc;
}

void recording_bound_wait(struct session *s)
{
	if (s->recording->is_writing)
		recording_now_poll(s->run, true);
}
