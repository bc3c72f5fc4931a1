/* See recording_part.h. */
#include "session/recording_part.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "profile/history.h"
#include "session/recording_complete.h"
#include "session/recording_now.h"
#include "session/recording_run_internal.h"
#include "session/recording_values.h"
#include "session/rescue.h"
#include "session/resident_sample.h"
#include "session/session.h"
#include "session/session_files.h"
#include "tracee/state/space.h"

#define MOST_WRITERS 8u            /* more are not started before one has ended */
#define LATER_NS 1000000000ull     /* when to try again */

static uint64_t period_ns(const struct session *s)
{
	return (uint64_t)(s->run->options->files.record_every * 1e9);
}

/* Values of a part are not in event files: a replay has only one. */
static void number_part(struct session *s)
{
	s->recording->span.part = ++run_process(s->run, s->process.pid)->parts;
}

void recording_part_start(struct session *s)
{
	if (!period_ns(s))
		return;
	if (!s->run->rescue)
		s->run->rescue = rescue_directory_name();
	number_part(s);
	s->recording->next_part_ns = s->process.start_ns + period_ns(s);
}

void recording_part_fork(const struct session *parent, struct session *child)
{
	struct recording_run *rr = child->recording;
	const struct recording_run *from = parent->recording;

	rr->span = from->span;
	rr->next_part_ns = from->next_part_ns;
	if (from->span.part)
		number_part(child);
}

int recording_part_path(struct session *s, char **path_out)
{
	const struct session_file file = {.option = "--record",
					  .pattern = s->run->options->files.record,
					  .part = s->recording->span.part};

	return session_files_numbered_name(s, &file, 0, NULL, path_out);
}

/* Whether the clock has passed the millisecond of the last block; takes up to one. */
static bool pass_millisecond(struct session *s)
{
	const struct profile *p = s->heap.profile;
	uint64_t next = profile_next_ms(p);
	const struct timespec until = {(time_t)(next / 1000000000), (long)(next % 1000000000)};

	while (clock_now_ns() < next)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	resident_sample(s, clock_now_ns());
	return profile_next_ms(p) > next;
}

/* The copy that writes the part has begun: all that follows belongs to the next one. */
static void begin_next(struct session *s, const struct recording_now *ended)
{
	struct recording_run *rr = s->recording;
	profile_restart_history(s->heap.profile);
	releases_restart(s->heap.releases);
	recording_journal_close(rr->file.journal);
	rr->file = (struct recording_file){0};
	free(rr->path);
	rr->path = NULL;
	rr->has_failed = rr->is_rewritten = false;
	rr->rewrite_ns = 0;
	rr->span = (struct recording_span){
		.start_ns = ended->end_ns - s->process.start_ns,
		.first_value = recording_rows(rr->known, RECORDING_META),
		.base = ended->counted,
	};
	recording_moment_set(&rr->span.moment, profile_history_begin(s->heap.profile));
	number_part(s);
	rr->flush_ns = ended->end_ns;
}

static int end_current(struct session *s)
{
	struct recording_run *rr = s->recording;
	int rc = rr->path ? 0 : recording_part_path(s, &rr->path);
	struct recording_now now = {
		.session = s, .path = rr->path, .is_part = true, .socket = -1};

	if (rc == 0 && !pass_millisecond(s))
		rc = -EAGAIN;
	if (rc == 0)
		rc = recording_now_start(&now);
	if (rc == 0)
		begin_next(s, &now);
	return rc;
}

uint64_t recording_part_tick(struct session *s, uint64_t now_ns)
{
	struct recording_run *rr = s->recording;
	uint64_t period = period_ns(s);

	if (!rr->span.part || !rr->next_part_ns)
		return UINT64_MAX;
	if (now_ns < rr->next_part_ns)
		return rr->next_part_ns;
	if (s->run->writers.count >= MOST_WRITERS || rr->is_writing || end_current(s) != 0)
		return rr->next_part_ns = now_ns + LATER_NS;
	rr->next_part_ns += ((now_ns - rr->next_part_ns) / period + 1) * period;
	return rr->next_part_ns;
}
