/*
 * A copy of ptmem writes what a session has so far. Whether it could decides which parts of a
 * recording stay.
 */
#include "session/record/recording_now.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/own_process.h"
#include "recording/recording.h"
#include "session/record/recording_complete.h"
#include "session/record/recording_values.h"
#include "session/out.h"
#include "session/session.h"
#include "tracee/pads/pads.h"

void recording_file_leave(const struct recording_file *f, const char *path)
{
	if (f->journal && recording_journal_is_at(f->journal, path))
		log_warn("%s has the first %.1f s and can be read", path,
			 (double)(f->covered_ms / 100) / 10);
}

/* -- in the copy -- */

static int work(void *ctx)
{
	const struct recording_now *n = ctx;
	struct session *s = n->session;

	s->events.writer = NULL; /* its file is the original's */
	s->end.pauses = s->space->pauses;
	s->end.time_error_ns = pads_time_error(s->space);
	s->process.end_ns = n->end_ns;
	s->heap.sample.totals = n->counted.calls;
	s->space = NULL; /* the program changes what it shares */
	if (n->note)
		return recording_unfinished_write(s, n->path);
	s->recording->leaks = NULL; /* of an earlier moment, as the inspection */
	s->end.inspection = (struct last_inspection){0};
	recording_complete_values(s, "still running");
	struct recording *r = recording_complete_new(s, &s->recording->span);
	int rc = recording_complete_write(s, r, n->path);

	if (n->answer)
		n->answer(n->ctx, rc);
	else if (rc == 0)
		log_info("recording %swritten to %s", n->is_part ? "" : "so far ", n->path);
	else if (n->is_part)
		recording_file_leave(&s->recording->file, n->path);
	return rc;
}

/* -- in the original -- */

bool recording_now_has_file(const struct session *s)
{
	const struct recording_run *rr = s->recording;

	return rr->is_rewritten ||
	       (rr->file.journal && recording_journal_is_at(rr->file.journal, rr->path));
}

int recording_now_start(struct recording_now *n)
{
	const struct background_job job = {
		.work = work, .ctx = n, .socket = n->socket};
	struct session *s = n->session;

	n->counted = recording_cost_now(s);
	recording_values_name_threads(s);
	n->end_ns = clock_now_ns();
	resident_sample(s, n->end_ns);
	int fd = background_start(&job);

	if (fd < 0)
		return fd;
	*vec_add(&s->run->writers) = (struct run_writer){
		.fd = fd, .path = xstrdup(n->path), .counts = !n->answer && !n->note,
		.begin_ns = n->end_ns, .note = n->note, .part_of = n->is_part ? s->process.pid : 0,
		.part = s->recording->span.part,
		.has_file = n->is_part && recording_now_has_file(s)};
	return 0;
}

void recording_now_write(struct session *s, unsigned number)
{
	_cleanup_free_ char *path = NULL;

	if (!s->run->options->files.record || !s->recording || !s->space ||
	    out_numbered_path(s, OUT_RECORD, SOURCE_HEAP, number, &path) != 0)
		return;
	struct recording_now now = {.session = s, .path = path, .socket = -1};
	int rc = recording_now_start(&now);

	if (rc != 0)
		log_warn("cannot write %s: %s", path, strerror(-rc));
}

static void drop(struct run_part *part)
{
	if (part->elsewhere)
		out_remove(part->elsewhere);
	if (part->path && unlink(part->path) != 0 && errno != ENOENT)
		log_warn("cannot remove %s: %s", part->path, strerror(errno));
	free(part->elsewhere);
	free(part->path);
}

/* Parts may be completed in another order than they began. */
static void keep(struct run *run, struct run_part part)
{
	size_t count = 0, oldest = run->parts.count;

	*vec_add(&run->parts) = part;
	if (!run->options->files.record_keep)
		return;
	for (size_t i = 0; i < run->parts.count; i++) {
		if (run->parts.data[i].pid != part.pid)
			continue;
		if (run->parts.data[i].number < run->parts.data[oldest].number)
			oldest = i;
		count++;
	}
	if (count <= run->options->files.record_keep)
		return;
	struct run_part *old = &run->parts.data[oldest];

	drop(old);
	memmove(old, old + 1, (--run->parts.count - oldest) * sizeof(*old));
}

/* Says where parts go now, once; those that began to be written earlier may end later. */
static void note_place(struct run *run, const struct run_part *part, const struct run_writer *w)
{
	if (w->begin_ns < run->place_ns)
		return;
	run->place_ns = w->begin_ns;
	if (run->is_elsewhere && !part->elsewhere)
		log_info("%s could be written to its place again", w->path);
	else if (!run->is_elsewhere && part->elsewhere)
		log_error("cannot write %s; the recording is in %s, where later ones go as long as "
			  "they cannot be written either", w->path, part->elsewhere);
	run->is_elsewhere = part->elsewhere != NULL;
}

/*
 * A part that could not be written to its place may be elsewhere, or only what its file had before.
 */
static void keep_written(struct run *run, const struct run_writer *w, int result)
{
	struct run_part part = {.pid = w->part_of, .number = w->part};
	_cleanup_free_ char *end = recording_part_end(part.number);
	const struct out_content content = {.end = end, .directory = run->fallback_directory};

	if (result == 0 || w->has_file)
		part.path = xstrdup(w->path);
	if (result != 0)
		part.elsewhere = out_find(OUT_RECORD, part.pid, &content);
	if (result == 0 || part.elsewhere)
		note_place(run, &part, w);
	if (part.path || part.elsewhere)
		keep(run, part);
}

void recording_now_keep(struct session *s, const char *path, int result)
{
	const struct run_writer w = {.path = (char *)(uintptr_t)path, .part_of = s->process.pid,
				     .part = s->recording->span.part,
				     .begin_ns = clock_now_ns(),
				     .has_file = recording_now_has_file(s)};

	if (w.part)
		keep_written(s->run, &w, result);
}

/* The copy has said why it could not write; a killed one could not. */
static void note_result(struct run *run, const struct run_writer *w, int result)
{
	if (w->note)
		w->note(run, w, result);
	if (w->part_of)
		keep_written(run, w, result);
	if (result == 0 || !w->counts)
		return;
	if (result == -ECHILD)
		log_error("cannot write %s: the process that wrote it was killed", w->path);
	run->files_failed++;
}

void recording_now_poll(struct run *run, bool wait)
{
	int result;

	for (size_t i = 0; i < run->writers.count;) {
		struct run_writer w = run->writers.data[i];

		if (background_result(w.fd, wait, &result) != 0) {
			i++;
			continue;
		}
		run->writers.count--;
		memmove(&run->writers.data[i], &run->writers.data[i + 1],
			(run->writers.count - i) * sizeof(w));
		note_result(run, &w, result);
		free(w.path);
	}
}
