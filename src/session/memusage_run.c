/* Starts and ends counting, and writes the results. */
#include "session/memusage_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/files.h"
#include "base/heap_calls.h"
#include "base/log.h"
#include "base/proc.h"
#include "output/memusage_output.h"
#include "profile/memusage.h"
#include "session/out.h"
#include "session/session.h"

struct memusage_run {
	const struct options *options;
	FILE *report;                /* a FIFO or device for all reports; NULL = none */
	int report_fd;               /* name of that */
	int report_error;            /* of the stream of all reports */
	unsigned failed;             /* files of single processes that could not be written */
};

/* -- files -- */

static int cannot_write(const char *path, int err)
{
	log_error("cannot write %s: %s", path, strerror(-err));
	return err;
}

/* A FIFO or device is opened once, before the program starts: opening may wait for a reader. */
static int open_shared_report(struct memusage_run *m)
{
	const char *path = m->options->memusage.out;
	if (!path || strcmp(path, "-") == 0 || !file_name_is_shared(path))
		return 0;
	m->report_fd = stream_open(path, O_WRONLY | O_TRUNC, 0);
	if (m->report_fd < 0)
		return cannot_write(path, m->report_fd);
	m->report = stream_new(m->report_fd, true);
	CHECK(m->report);
	return 0;
}

/* The header is rewritten at the end, which a pipe does not allow. */
static int check_shared_data(const char *path)
{
	struct memusage_data *data;
	if (!path || !file_name_is_shared(path))
		return 0;
	int rc = memusage_data_open(path, 1, false, &data);
	if (rc == 0)
		memusage_data_close(data);
	return rc == 0 ? 0 : cannot_write(path, rc);
}

int memusage_run_open(struct run *run)
{
	if (!options_count_calls(run->options))
		return 0;
	struct memusage_run *m = xcalloc(1, sizeof(*m));

	m->options = run->options;
	int rc = open_shared_report(m);

	if (rc == 0)
		rc = check_shared_data(m->options->memusage.data_file);
	if (rc != 0) {
		memusage_run_close(m);
		return rc;
	}
	run->memusage_run = m;
	return 0;
}

unsigned memusage_run_close(struct memusage_run *m)
{
	if (!m)
		return 0;
	const struct options *o = m->options;
	unsigned failed = m->failed;
	if (m->report && fclose(m->report) != 0 && !m->report_error)
		m->report_error = -errno;
	if (m->report && m->report_error) /* errors of standard error cannot be reported */
		failed += cannot_write(o->memusage.out, m->report_error) != 0;
	free(m);
	return failed;
}

/* -- sessions -- */

static bool has_base_name(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	return strcmp(slash ? slash + 1 : path, name) == 0;
}

/* Whether the program of process @pid, or its argv[0], has this base name. */
static bool is_program(uint32_t pid, const char *name)
{
	char called[4096];
	pid_t reader = proc_find_reader((pid_t)pid);
	_cleanup_fclose_ FILE *f = proc_open(reader, "cmdline");
	if (f && fgets(called, sizeof(called), f) && has_base_name(called, name))
		return true;
	_cleanup_free_ char *path = proc_read_link(reader, "exe");
	return path && has_base_name(path, name);
}

static void open_data(struct memusage_run *m, struct session *s)
{
	int rc = out_session_path(s, OUT_DATA, &s->memusage.data_path);
	if (rc == 0)
		rc = memusage_data_open(s->memusage.data_path, m->options->memusage.data_buffer,
					!m->options->files.replay,
					&s->memusage.data);
	if (rc == 0)
		memusage_data_start(s->memusage.data, s->process.start_ns);
	else if (s->memusage.data_path)
		cannot_write(s->memusage.data_path, rc);
	m->failed += rc != 0;
}

static void start_counting(struct memusage_run *m, struct session *s)
{
	if (!s->run->first_counted)
		s->run->first_counted = s->process.pid;
	if (m->options->memusage.data_file)
		open_data(m, s);
	const struct memusage_sink sink = {memusage_data_add, s->memusage.data};
	s->memusage.counts = memusage_new(s->memusage.data ? &sink : NULL);
	memusage_set_sample_interval(s->memusage.counts, s->heap.sample.interval);
}

void memusage_run_start(struct session *s)
{
	struct memusage_run *m = s->run->memusage_run;
	if (!m)
		return;
	const char *name = m->options->memusage.progname;
	if (!name || is_program(s->process.pid, name))
		start_counting(m, s);
}

void memusage_run_fork(const struct session *parent, struct session *child)
{
	const struct memusage *counts = parent->memusage.counts;

	child->memusage.counts = counts ? memusage_clone(counts) : NULL;
	child->memusage.data = NULL;
	child->memusage.data_path = NULL;
}

void memusage_run_event(struct session *s, const struct event *ev)
{
	/* with --stacks=yes threads are sampled anyway */
	bool is_unasked = ev->kind == EVENT_SAMPLE && s->run->options->memusage.no_timer;
	if (s->memusage.counts && !is_unasked && ev->function < FUNCTION_REQUEST)
		memusage_event(s->memusage.counts, ev);
}

void memusage_run_thread_exit(struct session *s, uint32_t thread)
{
	if (s->memusage.counts)
		memusage_thread_exit(s->memusage.counts, thread);
}

static int print_estimates(const struct session *s, FILE *file, int fd)
{
	struct memusage_numbers *n = xcalloc(1, sizeof(*n)); /* large */
	char distance[AMOUNT_SIZE], error[AMOUNT_SIZE];

	memusage_estimate(s->memusage.counts, &s->heap.sample.totals, n);
	int rc = memusage_print(file, n, s->run->options->memusage.mmap, log_use_color(fd));
	amount_error((double)n->peak, estimate_error(s->heap.sample.interval, n->peak_variance),
		     error);
	fprintf(file,
		"Estimates from samples, one every %s: the heap peak (%s%sthe highest of all), "
		"the memory of free, and the histogram.\nThe calls of free are %s; those for "
		"blocks of memalign are among them.\n",
		amount_bytes((double)s->heap.sample.interval, distance), *error ? error + 1 : "",
		*error ? ", " : "", call_totals_trust(s->heap.sample.totals.is_doubtful));
	free(n);
	return rc == 0 && fflush(file) != 0 ? -errno : rc;
}

static int print_report(const struct session *s, FILE *file, int fd)
{
	if (s->heap.sample.interval)
		return print_estimates(s, file, fd);
	return memusage_print(file, memusage_numbers(s->memusage.counts),
			      s->run->options->memusage.mmap, log_use_color(fd));
}

static int report_to_stderr(const struct session *s)
{
	FILE *file = stream_new(STDERR_FILENO, false);
	CHECK(file);
	log_before_line();
	int rc = print_report(s, file, STDERR_FILENO);
	fclose(file);
	return rc;
}

struct memusage_report {
	const struct session *session;
	int fd;                   /* what it goes to, for colours; -1: a file */
};

static int put_report(FILE *file, const void *ctx)
{
	const struct memusage_report *r = ctx;

	return print_report(r->session, file, r->fd);
}

static void report_to_file(struct session *s)
{
	const char *path;

	if (out_name(s, OUT_MEMUSAGE, SOURCE_HEAP, &path) != 0)
		return;
	const struct memusage_report r = {s, strcmp(path, "-") == 0 ? STDOUT_FILENO : -1};

	out_write(s, OUT_MEMUSAGE, SOURCE_HEAP,
		  &(struct out_content){.put = put_report, .ctx = &r}, NULL);
}

static void report(struct memusage_run *m, struct session *s)
{
	int rc = 0;
	if (m->report)
		rc = print_report(s, m->report, m->report_fd);
	else if (m->options->memusage.out)
		report_to_file(s);
	else
		report_to_stderr(s); /* its errors cannot be reported */
	if (rc != 0 && !m->report_error)
		m->report_error = rc;
}

static void end_data(struct memusage_run *m, struct session *s)
{
	const struct memusage_numbers *n = memusage_numbers(s->memusage.counts);
	const struct memusage_data_peaks peaks = {
		.heap = n->peak,
		.stack = n->stack_peak,
		.sum = n->sum_peak,
		.start_ns = s->process.start_ns,
		.end_ns = s->process.end_ns,
	};
	memusage_data_finish(s->memusage.data, &peaks);
	int rc = memusage_data_close(s->memusage.data);
	if (rc != 0)
		log_error("cannot write %s: %s; the later calls are missing in it",
			  s->memusage.data_path, strerror(-rc));
	else if (!s->image.is_superseded && !file_name_is_shared(s->memusage.data_path))
		log_info("written to %s; draw it with: ptmem-report --png=OUT.png %s",
			 s->memusage.data_path, s->memusage.data_path);
	m->failed += rc != 0;
	s->memusage.data = NULL;
	free(s->memusage.data_path);
	s->memusage.data_path = NULL;
}

void memusage_run_end(struct session *s, bool is_replaced)
{
	struct memusage_run *m = s->run->memusage_run;
	if (!m || !s->memusage.counts)
		return;
	if (s->memusage.data)
		end_data(m, s);
	if (m->options->memusage.count && !is_replaced)
		report(m, s);
	memusage_free(s->memusage.counts);
	s->memusage.counts = NULL;
}
