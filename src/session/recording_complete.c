/* See recording_complete.h. */
#include "session/recording_complete.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "output/outfile.h"
#include "profile/history.h"
#include "recording/recording_build.h"
#include "recording/recording_limit.h"
#include "recording/recording_write.h"
#include "session/recording_calls.h"
#include "session/recording_inspect.h"
#include "session/recording_leaks.h"
#include "session/recording_names.h"
#include "session/recording_run_internal.h"
#include "session/recording_values.h"
#include "session/rescue.h"
#include "session/session.h"

struct recording_base recording_base_now(const struct session *s)
{
	return (struct recording_base){
		.pauses_ns = s->space->pauses.stopped_ns,
		.stacks = s->stacks.counts.taken,
		.complete_stacks = s->stacks.counts.complete,
		.calls = recording_calls_now(s),
	};
}

void recording_complete_values(struct session *s, const char *why)
{
	const struct recording_base *base = &s->recording->base;
	uint64_t taken = s->stacks.counts.taken - base->stacks;
	uint64_t complete = s->stacks.counts.complete - base->complete_stacks;

	if (why)
		recording_values_add(s, "exit", why);
	recording_values_set(s, "overhead", "%.1f",
			     (double)(s->end.pauses.stopped_ns - base->pauses_ns) / 1e6);
	recording_values_set(s, "stacks", "%" PRIu64, taken);
	recording_values_set(s, "complete_stacks", "%" PRIu64, complete);
	if (taken != complete)
		recording_values_set(s, "lost", "%" PRIu64 " of %" PRIu64 " stacks are incomplete",
				     taken - complete, taken);
}

static void fill_end(struct session *s, struct recording *r)
{
	uint64_t row[END_COLUMNS];
	const char *stacks = recording_meta(r, "stacks"),
		   *complete = recording_meta(r, "complete_stacks");
	char duration[32];

	recording_fill_end(s->heap.profile, row);
	row[END_STACKS] = stacks ? strtoull(stacks, NULL, 10) : s->stacks.counts.taken;
	row[END_COMPLETE_STACKS] =
		complete ? strtoull(complete, NULL, 10) : s->stacks.counts.complete;
	recording_add(r, RECORDING_END, row);
	uint64_t start_ns = s->process.start_ns + s->recording->part_start;

	snprintf(duration, sizeof(duration), "%.3f", (double)(s->process.end_ns - start_ns) / 1e6);
	recording_set_meta(r, "duration", duration);
}

/* @is_quick: with names as in the file of a program that runs. */
static struct recording *build(struct session *s, bool is_quick)
{
	struct recording_builder b;
	struct report report = session_report(s);
	const struct recording_names names = session_recording_names(s, is_quick);
	struct recording *r = recording_new();

	r->interval = s->heap.sample.interval;
	profile_sync_history(s->heap.profile);
	recording_values_copy(s, r, 0);
	recording_builder_init(&b, r, &report, &names);
	b.releases = s->heap.releases;
	recording_build_all(&b);
	recording_builder_deinit(&b);
	return r;
}

struct recording *recording_complete_new(struct session *s)
{
	struct recording *r = build(s, false);

	fill_end(s, r);
	if (s->recording->leaks)
		recording_leaks_add(s->recording->leaks, r);
	recording_inspect_add(s->end.inspection, r);
	return r;
}

static int write_file(FILE *file, const void *ctx)
{
	return recording_write(file, ctx);
}

/* @r as --record-limit allows it; NULL: as it is. */
static struct recording *thin(const struct session *s, const struct recording *r)
{
	uint64_t limit = s->run->options->files.record_limit;

	return limit ? recording_limit(r, limit) : NULL;
}

char *recording_complete_name(uint32_t pid, unsigned part)
{
	return part ? xasprintf("recording.%u.%03u", pid, part) : xasprintf("recording.%u", pid);
}

int recording_complete_write(const struct session *s, const struct recording *r, const char *path)
{
	_cleanup_free_ char *name = recording_complete_name(s->process.pid, s->recording->part);
	struct recording *thinned = thin(s, r);
	const struct result result = {"recording", name, write_file, thinned ? thinned : r};
	bool is_part = s->recording->part;
	int rc = rescue_write_in(&result, path, is_part ? s->run->rescue : NULL, is_part);

	recording_free(thinned);
	return rc;
}

int recording_unfinished_write(struct session *s, const char *path)
{
	struct recording *r = build(s, true), *thinned = thin(s, r);
	struct outfile out;
	int rc = outfile_open(path, &out);

	if (rc == 0) {
		rc = recording_write(out.file, thinned ? thinned : r);
		if (rc == 0)
			rc = outfile_commit(&out);
		else
			outfile_abort(&out);
	}
	recording_free(thinned);
	recording_free(r);
	return rc;
}
