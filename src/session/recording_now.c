/* See recording_now.h. */
#include "session/recording_now.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/background.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "recording/recording.h"
#include "session/recording_complete.h"
#include "session/recording_run_internal.h"
#include "session/recording_values.h"
#include "session/resident_sample.h"
#include "session/session.h"
#include "session/session_files.h"

/* -- in the copy -- */

static int work(void *ctx)
{
	const struct recording_now *n = ctx;
	struct session *s = n->session;

	s->events.writer = NULL; /* its file is the original's */
	s->end.pauses = s->space->pauses;
	s->process.end_ns = clock_now_ns();
	s->recording->leaks = NULL; /* of an earlier moment, as the inspection */
	s->end.inspection = NULL;
	recording_complete_values(s, "still running");
	int rc = recording_complete_write(s, recording_complete_new(s), n->path);

	if (n->answer)
		n->answer(n->ctx, rc);
	else if (rc == 0)
		log_info("recording so far written to %s", n->path);
	return rc;
}

/* -- in the original -- */

int recording_now_start(const struct recording_now *n)
{
	const struct background_job job = {
		.work = work, .ctx = (void *)(uintptr_t)n, .socket = n->socket};
	struct session *s = n->session;

	resident_sample(s, clock_now_ns());
	recording_values_name_threads(s);
	int fd = background_start(&job);

	if (fd < 0)
		return fd;
	*vec_add(&s->run->writers) = (struct run_writer){
		.fd = fd, .path = xstrdup(n->path), .counts = !n->answer};
	return 0;
}

void recording_now_write(struct session *s, unsigned number)
{
	_cleanup_free_ char *path = NULL;
	const struct session_file file = {.option = "--record",
					  .pattern = s->run->options->files.record};

	if (!file.pattern || !s->recording || !s->space ||
	    session_files_numbered_name(s, &file, number, "recording.%p", &path) != 0)
		return;
	const struct recording_now now = {.session = s, .path = path, .socket = -1};
	int rc = recording_now_start(&now);

	if (rc != 0)
		log_warn("cannot write %s: %s", path, strerror(-rc));
}

/* The copy has said why it could not write; a killed one could not. */
static void note_result(struct run *run, const struct run_writer *w, int result)
{
	if (result == 0 || !w->counts)
		return;
	if (result == -ECHILD)
		log_error("cannot write %s: the process that wrote it was killed", w->path);
	run->files_failed++;
}

void recording_now_poll(struct run *run, bool wait)
{
	int result;

	for (size_t i = run->writers.count; i-- > 0;) {
		struct run_writer *w = &run->writers.data[i];

		if (background_result(w->fd, wait, &result) != 0)
			continue;
		note_result(run, w, result);
		free(w->path);
		vec_take_swap(&run->writers, i);
	}
}
