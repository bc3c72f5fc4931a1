/*
 * The recordings of sessions: values, samples, the file while the program runs and the final
 * one.
 */
#include "session/recording_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/stream.h"
#include "profile/history.h"
#include "recording/recording_build.h"
#include "recording/recording_write.h"
#include "session/file_name.h"
#include "session/html_run.h"
#include "session/recording_calls.h"
#include "session/recording_file.h"
#include "session/recording_inspect.h"
#include "session/recording_labels.h"
#include "session/recording_leaks.h"
#include "session/recording_names.h"
#include "session/recording_threads.h"
#include "session/rescue.h"
#include "session/resident_sample.h"
#include "session/session.h"
#include "session/session_files.h"

#ifndef PTMEM_VERSION
#define PTMEM_VERSION "0.1"
#endif

#define FLUSH_NS 1000000000ull
#define FIRST_FLUSH_NS 100000000ull /* after the first part; then twice as late each time */
#define SAMPLE_NS 20000000ull /* at most so often */
#define RENEW_SIZE (UINT64_C(512) << 10)
#define RENEW_FACTOR 4u

struct recording_run {
	struct recording *known;   /* META alone: the values */
	char *path;                /* NULL = not yet decided */
	struct recording_file file; /* what it has while the program runs */
	uint64_t first_size;       /* of it in memory, when it began again; bytes */
	struct recording *leaks;   /* LEAKS alone; NULL = nothing was checked */
	bool has_failed;           /* the file could not be written once, which was said */
	uint64_t flush_ns, sample_ns; /* when both are due */
	uint32_t named;            /* threads of the history whose names were read */
	struct recording_threads threads;
};

/* -- values -- */

static void ensure(struct session *s)
{
	if (s->recording)
		return;
	s->recording = xcalloc(1, sizeof(*s->recording));
	s->recording->known = recording_new();
	s->recording->threads.known = s->recording->known;
	s->recording->threads.pid = (pid_t)s->process.pid;
	s->recording->flush_ns = s->process.start_ns;
}

void recording_run_value(struct session *s, const char *key, const char *value)
{
	if (!options_record(s->run->options))
		return;
	ensure(s);
	recording_set_meta(s->recording->known, key, value);
	if (s->events.writer)
		events_writer_value(s->events.writer, key, value);
}

ATTR_PRINTF(3, 4)
static void set_value(struct session *s, const char *key, const char *fmt, ...)
{
	_cleanup_free_ char *value = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&value, fmt, ap) < 0)
		value = NULL;
	va_end(ap);
	recording_run_value(s, key, value ? value : "");
}

static uint64_t milliseconds(const struct session *s, uint64_t now_ns)
{
	return now_ns > s->process.start_ns ? (now_ns - s->process.start_ns) / 1000000 : 0;
}

static void add_marker_now(struct session *s, const char *kind, const char *text)
{
	set_value(s, "marker", "%" PRIu64 " %s %s", milliseconds(s, clock_now_ns()), kind, text);
}

void recording_run_fork(const struct session *parent, struct session *child)
{
	child->recording = NULL;
	if (!parent->recording)
		return;
	ensure(child);
	const struct recording *from = parent->recording->known;

	for (size_t i = 0; i < recording_rows(from, RECORDING_META); i++)
		recording_set_meta(
			child->recording->known,
			from->text.data[recording_get(from, RECORDING_META, i, META_KEY)],
			from->text.data[recording_get(from, RECORDING_META, i, META_VALUE)]);
	/* most children execute another program at once: they need no file */
	child->recording->flush_ns = clock_now_ns() + FIRST_FLUSH_NS;
	_cleanup_free_ char *text = xasprintf("of process %u", parent->process.pid);

	add_marker_now(child, "fork", text);
}

void recording_run_free(struct session *s)
{
	struct recording_run *rr = s->recording;

	if (!rr)
		return;
	recording_journal_close(rr->file.journal);
	recording_free(rr->known);
	recording_threads_deinit(&rr->threads);
	recording_free(rr->leaks);
	free(rr->path);
	free(rr);
	s->recording = NULL;
}

/* -- threads -- */

static void name_thread(struct session *s, uint32_t thread)
{
	struct thread_name n;

	if (recording_threads_read(&s->recording->threads, thread, &n))
		recording_run_value(s, n.key, n.name);
}

static void name_threads(struct session *s)
{
	const struct history *h = profile_history(s->heap.profile);

	for (; s->recording->named < h->thread.count; s->recording->named++)
		name_thread(s, h->thread.data[s->recording->named].id);
}

void recording_run_thread_exiting(struct session *s, uint32_t thread)
{
	if (s->recording)
		name_thread(s, thread);
}

/* -- while it runs -- */

static int decide_path(struct session *s)
{
	const struct session_file name = {.option = "--record",
					  .pattern = s->run->options->files.record};

	return s->recording->path ? 0 :
				    session_files_stream_name(s, STREAM_RECORDING, &name,
							      &s->recording->path);
}

static void add_known_values(struct session *s, struct recording *out, size_t first);

static void append(struct session *s)
{
	struct recording_file *f = &s->recording->file;
	struct report report = session_report(s);
	const struct recording_names names = session_recording_names(s, true);

	add_known_values(s, recording_journal_meta(f->journal), f->values);
	f->values = recording_rows(s->recording->known, RECORDING_META);
	f->appended_ms = MAX(milliseconds(s, clock_now_ns()), (uint64_t)1);
	profile_sync_history(s->heap.profile);
	recording_journal_append(f->journal, &report, &names, s->heap.releases);
}

static int write_changes(struct session *s)
{
	struct recording_run *rr = s->recording;
	int rc = recording_file_open(&rr->file, rr->path, s->heap.sample.interval);

	if (rc != 0)
		return rc;
	append(s);
	return recording_file_flush(&rr->file);
}

static void flush(struct session *s)
{
	struct recording_run *rr = s->recording;

	if (!s->run->options->files.record)
		return;
	if (decide_path(s) != 0 || strcmp(rr->path, "-") == 0 ||
	    file_name_is_shared(rr->path))
		return;
	int rc = write_changes(s);

	if (rc != 0 && !rr->has_failed)
		log_warn("cannot write %s: %s; trying again every second", rr->path,
			 strerror(-rc));
	rr->has_failed |= rc != 0;
}

/* For a journal in memory: restarted when it has become much larger than its contents. */
static int write_in_memory(struct session *s)
{
	struct recording_file *f = &s->recording->file;
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
	append(s);
	int rc = recording_file_flush(f);

	if (!is_old)
		s->recording->first_size = recording_journal_size(f->journal);
	return rc;
}

int recording_run_update(struct session *s, uint64_t *size_out)
{
	struct recording_run *rr = s->recording;
	char name[32];

	if (!rr)
		return -ENOENT;
	resident_sample(s, clock_now_ns());
	name_threads(s);
	flush(s); /* to the file, if there is one */
	int rc = s->run->options->files.record ? 0 : write_in_memory(s);

	if (rc != 0 || !rr->file.journal || recording_journal_fd(rr->file.journal) < 0)
		return rc != 0 ? rc : -ENOENT;
	*size_out = recording_journal_size(rr->file.journal);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", recording_journal_fd(rr->file.journal));
	return stream_open(name, O_RDONLY, 0);
}

/* What a program does at first is soon in the file: ptmem may be killed then, too. */
static uint64_t next_flush(const struct session *s, uint64_t now_ns)
{
	uint64_t age = now_ns - MIN(now_ns, s->process.start_ns);

	return now_ns + MIN(MAX(age, FIRST_FLUSH_NS), FLUSH_NS);
}

/*
 * A program that ptmem starts has a file before its first instruction. One that runs already is not
 * kept waiting for that.
 */
static void write_first_part(struct session *s)
{
	if (session_was_attached(s))
		return;
	flush(s);
	s->recording->flush_ns = s->process.start_ns + FIRST_FLUSH_NS;
}

void recording_run_start(struct session *s)
{
	struct utsname system = {0};
	struct timespec now = {0};

	if (!options_record(s->run->options))
		return;
	uname(&system);
	clock_gettime(CLOCK_REALTIME, &now);
	set_value(s, "start", "%lld.%03ld", (long long)now.tv_sec, now.tv_nsec / 1000000);
	set_value(s, "host", "%s", system.nodename);
	set_value(s, "kernel", "%s %s %s", system.sysname, system.release, system.machine);
	set_value(s, "ptmem", "%s", PTMEM_VERSION);
	if (s->run->options->files.free_stacks)
		set_value(s, "free_stacks", "1");
	set_value(s, "options", "%s", s->run->options->all ? s->run->options->all : "");
	if (session_was_attached(s)) {
		set_value(s, "attached", "1");
		add_marker_now(s, "attach", "");
	}
	write_first_part(s);
}

static uint64_t tick(struct session *s, uint64_t now_ns)
{
	struct recording_run *rr = s->recording;

	if (now_ns >= rr->sample_ns) {
		uint64_t width = 1000000ull << profile_history(s->heap.profile)->shift;

		resident_sample(s, now_ns);
		rr->sample_ns = now_ns + MAX(SAMPLE_NS, MIN(width, FLUSH_NS));
	}
	if (now_ns >= rr->flush_ns) {
		name_threads(s);
		flush(s);
		rr->flush_ns = next_flush(s, MAX(clock_now_ns(), now_ns));
	}
	return MIN(rr->sample_ns, rr->flush_ns);
}

uint64_t recording_run_tick(struct run *run, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	if (!options_record(run->options))
		return UINT64_MAX;
	for (size_t i = 0; i < run->sessions.count; i++) {
		struct session *s = run->sessions.data[i];

		if (s->recording && s->space)
			next = MIN(next, tick(s, now_ns));
	}
	return MIN(next, now_ns + SAMPLE_NS);
}

/* -- the end -- */

void recording_run_leaks(struct session *s, const struct leakcheck *c)
{
	if (!options_record(s->run->options))
		return;
	ensure(s);
	recording_free(s->recording->leaks);
	s->recording->leaks = recording_leaks_new(c);
}

void recording_run_end(struct session *s, const char *why)
{
	const struct stack_counts *c = &s->stacks.counts;
	uint64_t pauses = s->end.pauses.attach_ns + s->end.pauses.promote_ns;

	if (!s->recording)
		return;
	if (why)
		recording_run_value(s, "exit", why);
	if (why && strcmp(why, "detached") == 0) {
		name_threads(s);
		add_marker_now(s, "detach", "");
	}
	set_value(s, "overhead", "%.1f", (double)pauses / 1e6);
	set_value(s, "stacks", "%" PRIu64, c->taken);
	set_value(s, "complete_stacks", "%" PRIu64, c->complete);
	if (c->taken != c->complete)
		set_value(s, "lost", "%" PRIu64 " of %" PRIu64 " stacks are incomplete",
			  c->taken - c->complete, c->taken);
}

/* Markers and thread names are values in the list, but have their own rows in a recording. */
static void add_marker(struct recording *r, const char *value)
{
	char *end;
	uint64_t time = strtoull(value, &end, 10);
	const char *kind = *end ? end + 1 : end;
	size_t size = strcspn(kind, " ");
	const uint64_t row[MARKER_COLUMNS] = {
		time, recording_text_index(r, kind, size),
		recording_string(r, kind[size] ? kind + size + 1 : "")};

	recording_add(r, RECORDING_MARKERS, row);
}

/* From value number @first on. */
static void add_known_values(struct session *s, struct recording *out, size_t first)
{
	const struct recording *known = s->recording->known;
	char pid[16];

	snprintf(pid, sizeof(pid), "%u", s->process.pid);
	if (!first) {
		recording_set_meta(out, "pid", pid);
		recording_set_meta(out, "command", s->process.command);
		recording_labels_fill(s, out);
		if (s->heap.sample.totals.is_doubtful)
			recording_set_meta(out, "corrupt", "1");
	}
	recording_calls_fill(s, out);
	for (size_t i = first; i < recording_rows(known, RECORDING_META); i++) {
		const char *key =
			known->text.data[recording_get(known, RECORDING_META, i, META_KEY)];
		const char *value =
			known->text.data[recording_get(known, RECORDING_META, i, META_VALUE)];

		if (strcmp(key, "marker") == 0)
			add_marker(out, value);
		else
			recording_set_meta(out, key, value);
	}
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
	snprintf(duration, sizeof(duration), "%.3f",
		 (double)(s->process.end_ns - s->process.start_ns) / 1e6);
	recording_set_meta(r, "duration", duration);
}

static int write_file(FILE *file, const void *ctx)
{
	return recording_write(file, ctx);
}

/* The values known only at the end. */
static struct recording *make_complete(struct session *s)
{
	struct recording_builder b;
	struct report report = session_report(s);
	const struct recording_names names = session_recording_names(s, false);
	struct recording *r = recording_new();

	r->interval = s->heap.sample.interval;
	profile_sync_history(s->heap.profile);
	add_known_values(s, r, 0);
	recording_builder_init(&b, r, &report, &names);
	b.releases = s->heap.releases;
	recording_build_all(&b);
	fill_end(s, r);
	if (s->recording->leaks)
		recording_leaks_add(s->recording->leaks, r);
	recording_inspect_add(s->end.inspection, r);
	recording_builder_deinit(&b);
	return r;
}

static int put_recording(struct session *s, const struct recording *r)
{
	_cleanup_free_ char *name = xasprintf("recording.%u", s->process.pid);
	const struct result result = {"recording", name, write_file, r};
	int rc = decide_path(s);

	if (rc != 0)
		return rc;
	rc = rescue_write(&result, s->recording->path);
	if (rc != 0)
		recording_file_leave(&s->recording->file, s->recording->path);
	else
		session_files_announce(s, s->recording->path);
	return rc;
}

int recording_run_finish(struct session *s)
{
	const struct options *o = s->run->options;
	int rc = 0;

	if (!o->files.record && !o->files.html)
		return 0;
	ensure(s);
	struct recording *r = make_complete(s);

	if (o->files.record)
		rc = put_recording(s, r);
	if (o->files.html)
		rc = html_run_write(s, r) ? -EIO : rc;
	recording_free(r);
	return rc;
}

void recording_run_drop(struct session *s)
{
	const struct recording_run *rr = s->recording;

	if (rr && rr->path && rr->file.journal &&
	    recording_journal_is_at(rr->file.journal, rr->path))
		unlink(rr->path);
}
