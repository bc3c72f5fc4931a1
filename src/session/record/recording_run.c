/*
 * The recordings of sessions: values, samples, parts, the file while the program runs and the
 * final one.
 */
#include "session/record/recording_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/files.h"
#include "base/log.h"
#include "base/proc.h"
#include "profile/history.h"
#include "recording/recording_build.h"
#include "session/record/recording_complete.h"
#include "session/record/recording_now.h"
#include "session/record/recording_values.h"
#include "session/out.h"
#include "session/session.h"
#include "session/session_output.h"
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

/* The recording of @s begins: with its first part, if it has several. */
static void recording_part_start(struct session *s)
{
	if (!period_ns(s))
		return;
	if (!s->run->fallback_directory)
		s->run->fallback_directory = out_directory_name();
	number_part(s);
	s->recording->next_part_ns = s->process.start_ns + period_ns(s);
}

/* Names the file, or the current part's. Not 0 after a message. */
static int decide_path(struct session *s)
{
	struct recording_run *rr = s->recording;

	if (rr->path)
		return 0;
	return rr->span.part ? out_numbered_path(s, OUT_RECORD, SOURCE_HEAP, 0, &rr->path) :
			       out_session_path(s, OUT_RECORD, &rr->path);
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
	int rc = decide_path(s);
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

/*
 * Ends the current part and begins the next one if that is due at @now_ns. Returns the time of the
 * next call; UINT64_MAX: there are no parts.
 */
static uint64_t recording_part_tick(struct session *s, uint64_t now_ns)
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

/*
 * The recordings of sessions: values, samples, the file while the program runs and the final
 * one.
 */

#define FLUSH_NS 1000000000ull
#define FIRST_FLUSH_NS 100000000ull /* after the first part; then twice as late each time */
#define SAMPLE_NS 20000000ull /* at most so often */
#define RENEW_SIZE (UINT64_C(512) << 10)
#define RENEW_FACTOR 4u

/*
 * The recording of a forked child begins with the fork, and its blocks are from before: otherwise
 * what its parent did would be in both.
 */
static void begin_with_fork(struct session *s)
{
	struct recording_run *rr = s->recording;
	unsigned part = rr->span.part;

	if (!pass_millisecond(s)) /* the process is gone */
		return;
	profile_restart_histories(s->heap.profile);
	releases_restart(s->heap.releases);
	uint64_t zero_ns = profile_history_begin(s->heap.profile), now_ns = clock_now_ns();
	rr->whole = (struct recording_span){
		.start_ns = MAX(zero_ns - MIN(zero_ns, s->process.start_ns), UINT64_C(1)),
		.lead_ns = now_ns - MIN(now_ns, zero_ns),
		.first_value = recording_rows(rr->known, RECORDING_META),
		.base = recording_cost_now(s),
	};
	recording_moment_set(&rr->whole.moment, zero_ns);
	rr->span = rr->whole;
	rr->span.part = part;
}

void recording_run_fork(const struct session *parent, struct session *child)
{
	child->recording = NULL;
	if (!parent->recording)
		return;
	recording_values_begin(child);
	const struct recording *from = parent->recording->known;

	for (size_t i = 0; i < recording_rows(from, RECORDING_META); i++)
		recording_set_meta(
			child->recording->known,
			from->text.data[recording_get(from, RECORDING_META, i, META_KEY)],
			from->text.data[recording_get(from, RECORDING_META, i, META_VALUE)]);
	child->recording->span = parent->recording->span;
	child->recording->next_part_ns = parent->recording->next_part_ns;
	if (parent->recording->span.part) /* its first one has what its parent's current one has */
		number_part(child);
	/* most children execute another program at once: they need no file */
	child->recording->flush_ns = clock_now_ns() + FIRST_FLUSH_NS;
	_cleanup_free_ char *text = xasprintf("of process %u", parent->process.pid);

	begin_with_fork(child);
	recording_values_set(child, "parent", "%u", parent->process.pid);
	recording_values_mark(child, clock_now_ns(), "fork", text);
}

void recording_run_free(struct session *s)
{
	struct recording_run *rr = s->recording;

	if (!rr)
		return;
	recording_journal_close(rr->file.journal);
	recording_journal_close(rr->live.journal);
	recording_free(rr->known);
	vec_deinit(&rr->thread_name);
	recording_free(rr->leaks);
	free(rr->path);
	free(rr);
	s->recording = NULL;
}

/*
 * --record-limit while the program runs: the file of a recording never becomes larger.
 *
 *	appended to, each second        until it would be too large
 *	begun anew                      then; what it has at once is at most half of the limit
 *	written anew by copies of ptmem otherwise; the copies thin it (recording/recording_reduce.h)
 *
 * Copies take at most a twentieth of a CPU. All replace the file at once, so it can always be
 * read.
 */

#define REST 20u               /* for so many times as long as a copy took, there is none */
#define LEAST_REST_NS 1000000000ull

static uint64_t limit_of(const struct session *s)
{
	return s->run->options->files.record_limit;
}

/* Whether the file of @s may not become as large as what was collected makes it. */
static bool is_too_large(const struct session *s)
{
	const struct recording_journal *j = s->recording->file.journal;

	return limit_of(s) && recording_journal_next_size(j) > limit_of(s);
}

/* Whether it is too large even if it is begun anew, which was done. */
static bool must_rewrite(const struct session *s)
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

/* Waits for a copy that is at work, which would overwrite what is written later. */
static void wait_for_copy(struct session *s)
{
	if (s->recording->is_writing)
		recording_now_poll(s->run, true);
}

/* Starts a copy that writes the file if it is time; after the end writes it: 0 or -errno. */
static int rewrite(struct session *s)
{
	struct recording_run *rr = s->recording;
	struct recording_now now = {
		.session = s, .path = rr->path, .note = note_end, .socket = -1};

	if (!s->space) { /* it has ended: nothing is kept waiting */
		wait_for_copy(s);
		return recording_unfinished_write(s, rr->path);
	}
	if (rr->is_writing || clock_now_ns() < rr->rewrite_ns)
		return 0;
	int rc = recording_now_start(&now);

	rr->is_writing = rc == 0;
	return rc;
}

/* -- while it runs -- */

static int flush_journal(struct recording_file *f)
{
	int rc = recording_journal_flush(f->journal);

	if (rc == 0)
		f->covered_ms = f->appended_ms;
	return rc;
}

/* Opens the journal if necessary, and writes everything in it to the file at @path: 0 or -errno. */
static int open_file(struct recording_file *f, const char *path, uint64_t interval)
{
	if (f->journal && recording_journal_is_removed(f->journal)) {
		recording_journal_close(f->journal);
		*f = (struct recording_file){.was_removed = true};
	}
	if (f->was_removed && !f->covered_ms && access(path, F_OK) == 0)
		return -EEXIST;
	if (!f->journal)
		f->journal = recording_journal_new(path, interval);
	return flush_journal(f);
}

static void append(struct session *s, const struct recording_span *span, struct recording_file *f)
{
	const struct report report = session_report(s);
	const struct recording_input in = session_recording_input(s, span, &report, true);
	uint64_t now_ms = recording_values_clock(s, clock_now_ns());

	recording_values_copy(s, span, recording_journal_meta(f->journal), f->values);
	f->values = recording_rows(s->recording->known, RECORDING_META);
	f->appended_ms = MAX(now_ms - MIN(now_ms, span->start_ns / 1000000), (uint64_t)1);
	profile_sync_history(s->heap.profile);
	recording_journal_append(f->journal, &in);
}

static void append_to_file(struct session *s)
{
	append(s, &s->recording->span, &s->recording->file);
}

/* All that the file had is in its contents, which take less than all changes. */
static int begin_anew(struct session *s)
{
	struct recording_run *rr = s->recording;
	struct recording_file *f = &rr->file;
	bool is_other = recording_journal_fd(f->journal) >= 0 && access(rr->path, F_OK) == 0 &&
			!recording_journal_is_at(f->journal, rr->path);

	recording_journal_close(f->journal);
	*f = (struct recording_file){.was_removed = is_other};
	if (is_other)
		return -EEXIST;
	f->journal = recording_journal_new(rr->path, s->heap.sample.interval);
	append_to_file(s);
	if (!must_rewrite(s))
		return flush_journal(f);
	recording_journal_close(f->journal);
	*f = (struct recording_file){0};
	rr->is_rewritten = true;
	return rewrite(s);
}

static int write_changes(struct session *s)
{
	struct recording_run *rr = s->recording;
	int rc = open_file(&rr->file, rr->path, s->heap.sample.interval);

	if (rc != 0)
		return rc;
	append_to_file(s);
	return is_too_large(s) ? begin_anew(s) : flush_journal(&rr->file);
}

/* Whether it is in its file while the program runs. */
static bool has_file(struct session *s)
{
	return s->run->options->files.record && decide_path(s) == 0 &&
	       !file_name_is_shared(s->recording->path);
}

static void flush(struct session *s)
{
	struct recording_run *rr = s->recording;

	if (!has_file(s))
		return;
	int rc = rr->is_rewritten ? rewrite(s) : write_changes(s);

	if (rc != 0 && !rr->has_failed)
		log_warn("cannot write %s: %s; trying again every second", rr->path,
			 strerror(-rc));
	rr->has_failed |= rc != 0;
}

/* To a journal in memory: restarted when it has become much larger than its contents. */
static int write_in_memory(struct session *s)
{
	struct recording_file *f = &s->recording->live;
	uint64_t limit = RENEW_SIZE + RENEW_FACTOR * s->recording->first_size;
	bool is_old = f->journal && recording_journal_size(f->journal) < limit;

	if (!is_old) {
		int fd = memfd_create("ptmem-recording", MFD_CLOEXEC);

		if (fd < 0)
			return -errno;
		recording_journal_close(f->journal);
		*f = (struct recording_file){
			.journal = recording_journal_to_fd(fd, s->heap.sample.interval)};
	}
	append(s, &s->recording->whole, f);
	int rc = flush_journal(f);

	if (rc != 0) {
		recording_journal_close(f->journal);
		*f = (struct recording_file){0};
	} else if (!is_old) {
		s->recording->first_size = recording_journal_size(f->journal);
	}
	return rc;
}

/* Appends everything new to the file if that has the whole run. Whether it has all of it now. */
static bool update_file(struct session *s)
{
	const struct recording_run *rr = s->recording;

	if (!has_file(s) || rr->is_rewritten || rr->span.part)
		return false;
	flush(s); /* which may fail, or find that the file becomes too large */
	return rr->file.journal && recording_journal_is_written(rr->file.journal);
}

int recording_run_update(struct session *s, uint64_t *size_out)
{
	const struct recording_run *rr = s->recording;
	char name[32];

	if (!rr)
		return -ENOENT;
	resident_sample(s, clock_now_ns());
	recording_values_name_threads(s);
	bool is_in_file = update_file(s);
	int rc = is_in_file ? 0 : write_in_memory(s);

	if (rc != 0)
		return rc;
	const struct recording_journal *j = is_in_file ? rr->file.journal : rr->live.journal;

	*size_out = recording_journal_size(j);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", recording_journal_fd(j));
	return stream_open(name, O_RDONLY, 0);
}

static void note_parent(struct session *s)
{
	struct proc_status st;

	if (s->space && proc_status_read((pid_t)s->process.pid, &st) == 0 && st.parent > 0)
		recording_values_set(s, "parent", "%d", (int)st.parent);
}

void recording_run_start(struct session *s)
{
	struct utsname system = {0};
	struct recording_moment begin;

	if (!options_record(s->run->options))
		return;
	uname(&system);
	recording_moment_set(&begin, s->process.start_ns);
	recording_values_set(s, "start", "%s", begin.start);
	recording_values_set(s, "start_monotonic", "%s", begin.monotonic);
	recording_values_set(s, "host", "%s", system.nodename);
	recording_values_set(s, "kernel", "%s %s %s", system.sysname, system.release,
			     system.machine);
	recording_values_set(s, "ptmem", "%s", PTMEM_VERSION);
	note_parent(s);
	if (s->run->options->files.free_stacks)
		recording_values_set(s, "free_stacks", "1");
	recording_values_set(s, "options", "%s", s->run->options->all ? s->run->options->all : "");
	if (s->image.was_attached) {
		recording_values_set(s, "attached", "1");
		recording_values_mark(s, clock_now_ns(), "attach", "");
	}
	recording_part_start(s);
	/* a program that runs already is not kept waiting; others have a file at once */
	if (s->image.was_attached)
		return;
	flush(s);
	s->recording->flush_ns = s->process.start_ns + FIRST_FLUSH_NS;
}

static uint64_t tick(struct session *s, uint64_t now_ns)
{
	struct recording_run *rr = s->recording;

	uint64_t next_part = recording_part_tick(s, now_ns);

	if (now_ns >= rr->sample_ns) {
		uint64_t width = 1000000ull << profile_history(s->heap.profile)->shift;

		resident_sample(s, now_ns);
		rr->sample_ns = now_ns + MAX(SAMPLE_NS, MIN(width, FLUSH_NS));
	}
	if (now_ns >= rr->flush_ns) {
		recording_values_name_threads(s);
		flush(s);
		/* soon, while the program is young: ptmem may be killed then, too */
		uint64_t flushed_ns = MAX(clock_now_ns(), now_ns);
		uint64_t age = flushed_ns - MIN(flushed_ns, s->process.start_ns);

		rr->flush_ns = flushed_ns + MIN(MAX(age, FIRST_FLUSH_NS), FLUSH_NS);
	}
	return MIN(MIN(rr->sample_ns, rr->flush_ns), next_part);
}

uint64_t recording_run_tick(struct run *run, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	if (!options_record(run->options))
		return UINT64_MAX;
	recording_now_poll(run, false);
	for (size_t i = 0; i < run->sessions.count; i++) {
		struct session *s = run->sessions.data[i];

		if (s->recording && s->space)
			next = MIN(next, tick(s, now_ns));
	}
	return MIN(next, now_ns + SAMPLE_NS);
}

/* -- the end -- */

void recording_run_leaks(struct session *s, const struct leakcheck *c, const struct leaks *l)
{
	if (!options_record(s->run->options))
		return;
	recording_values_begin(s);
	recording_free(s->recording->leaks);
	s->recording->leaks = recording_leaks_new(c, l);
}

void recording_run_end(struct session *s, const char *why)
{
	if (!s->recording)
		return;
	if (why && strcmp(why, "detached") == 0) {
		recording_values_name_threads(s);
		recording_values_mark(s, s->process.end_ns, "detach", "");
	}
	recording_complete_values(s, why);
}

static void put_recording(struct session *s)
{
	int rc = decide_path(s);

	s->run->files_failed += rc != 0;
	if (rc != 0)
		return;
	struct recording *r = recording_complete_new(s, &s->recording->span);

	wait_for_copy(s);
	rc = recording_complete_write(s, r, s->recording->path);
	if (rc != 0)
		recording_file_leave(&s->recording->file, s->recording->path);
	else
		out_announce(s, OUT_RECORD, s->recording->path);
	s->run->files_failed += rc != 0;
	recording_now_keep(s, s->recording->path, rc);
	recording_free(r);
}

void recording_run_finish(struct session *s)
{
	const struct options *o = s->run->options;

	if (!o->files.record && !o->files.html)
		return;
	recording_values_begin(s);
	if (o->files.record && s->end.is_draft)
		flush(s);
	else if (o->files.record)
		put_recording(s);
	if (!o->files.html)
		return;
	struct recording *r = recording_complete_new(s, &s->recording->whole);

	session_output_page(s, r);
	recording_free(r);
}

void recording_run_drop(struct session *s)
{
	const struct recording_run *rr = s->recording;

	if (rr && rr->span.part > 1) { /* the parts before it are there */
		put_recording(s);
		return;
	}
	if (rr && rr->span.part)
		run_process(s->run, s->process.pid)->parts--;
	if (!rr || !rr->path)
		return;
	wait_for_copy(s);
	if (recording_now_has_file(s))
		unlink(rr->path);
}
