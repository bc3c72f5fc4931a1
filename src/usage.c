/*
 * See usage.h.
 */
#include "usage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/heap_function.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/stream.h"
#include "output/memusage.h"
#include "sampler.h"
#include "session.h"

struct usage {
	const struct options *options;
	FILE *report;                /* NULL = standard error */
	int report_fd;
	struct memusage_data *data;  /* NULL = none */
	uint32_t data_pid;           /* whose data they are; 0 = nobody's yet */
	struct sampler *sampler;     /* NULL = none */
	int report_error;
};

bool usage_counts(const struct options *o)
{
	return o->memusage || o->data_file;
}

bool usage_is_wanted(const struct options *o)
{
	return usage_counts(o) || o->sample_ms;
}

/* -- files -- */

static int cannot_write(const char *path, int err)
{
	log_error("cannot write %s: %s", path, strerror(-err));
	return err;
}

static uint64_t mapped_bytes(void *ctx, pid_t pid)
{
	struct run *run = ctx;
	return run->target ? target_mapped_bytes(run->target, pid) : 0;
}

static int open_sampler(struct usage *u, struct run *run)
{
	const struct options *o = u->options;
	_cleanup_free_ char *why = NULL;
	const struct sampler_options so = {
		.period_ns = o->sample_ms * 1000000ull,
		.fields = o->sample_fields,
		.path = o->sample_out,
		.with_pids = o->trace_children || o->pid_count > 1,
		.foreign = mapped_bytes,
		.ctx = run,
	};
	int rc = sampler_new(&so, &u->sampler, &why);
	if (rc != 0 && why)
		log_error("--sample-fields: /proc/PID/status has no '%s' that can be sampled", why);
	else if (rc != 0)
		cannot_write(o->sample_out, rc);
	return rc;
}

static int open_all(struct usage *u, struct run *run)
{
	const struct options *o = u->options;
	if (o->memusage_out) {
		u->report_fd = stream_open(o->memusage_out, O_WRONLY | O_CREAT | O_TRUNC, 0666);
		if (u->report_fd < 0)
			return cannot_write(o->memusage_out, u->report_fd);
		u->report = stream_new(u->report_fd, true);
		CHECK(u->report);
	}
	int rc = o->data_file ? memusage_data_open(o->data_file, o->data_buffer, &u->data) : 0;
	if (rc != 0)
		return cannot_write(o->data_file, rc);
	return o->sample_ms ? open_sampler(u, run) : 0;
}

int usage_open(struct run *run)
{
	struct usage *u = xcalloc(1, sizeof(*u));
	u->options = run->options;
	int rc = open_all(u, run);
	if (rc != 0) {
		usage_close(u);
		return rc;
	}
	run->usage = u;
	return 0;
}

static unsigned end_file(const char *path, int rc, bool has_picture)
{
	if (!path || (rc == 0 && !has_picture))
		return 0;
	if (rc != 0)
		return cannot_write(path, rc) != 0;
	log_info("written to %s; draw it with: ptmem-report --png=OUT.png %s", path, path);
	return 0;
}

unsigned usage_close(struct usage *u)
{
	unsigned failed = 0;
	if (!u)
		return 0;
	const struct options *o = u->options;
	if (u->report && fclose(u->report) != 0 && !u->report_error)
		u->report_error = -errno;
	/* nobody hears of a closed standard error */
	failed += end_file(o->memusage_out, u->report_error, false);
	if (u->data)
		failed += end_file(o->data_file, memusage_data_close(u->data), u->data_pid != 0);
	if (u->sampler)
		failed += end_file(o->sample_out, sampler_free(u->sampler), true);
	free(u);
	return failed;
}

/* -- the target -- */

bool usage_samples_alone(const struct options *o)
{
	return o->sample_ms && !o->heap && !usage_counts(o) && !o->events_file &&
	       !o->trace_children && !o->pages_as_heap && !(o->trace & ~(1u << SOURCE_HEAP));
}

void usage_fill_target(const struct options *o, struct target_options *to)
{
	bool is_counting = usage_counts(o);
	bool is_traced = o->trace & 1u << SOURCE_HEAP;
	bool is_wanted = o->heap || o->events_file || o->trace_malloc ||
			 o->xtree_memory != XTREE_NONE;
	to->no_probes = o->pages_as_heap || (!is_counting && (!is_traced || !is_wanted));
	to->no_stacks = !o->heap && o->xtree_memory == XTREE_NONE;
	to->stack_pointers = is_counting;
	to->mapping_calls = is_counting && o->mmap;
	to->program_end = is_counting;
	to->follow_own_exec = usage_samples_alone(o);
	to->sample_ns = is_counting && !o->no_timer ? o->stack_sample_ms * 1000000ull : 0;
}

static uint64_t on_tick(void *ctx, uint64_t now_ns)
{
	struct run *run = ctx;
	return sampler_tick(run->usage->sampler, now_ns);
}

static void on_will_map(void *ctx, struct space *space)
{
	struct run *run = ctx;
	sampler_note_peaks(run->usage->sampler, space->reader);
}

static void on_process_exit(void *ctx, struct space *space, pid_t pid, pid_t tid)
{
	struct run *run = ctx;
	(void)space;
	sampler_sample(run->usage->sampler, pid, tid);
}

void usage_fill_sink(const struct options *o, struct target_sink *sink)
{
	if (!o->sample_ms)
		return;
	sink->tick = on_tick;
	sink->process_exit = on_process_exit;
	sink->will_map = on_will_map;
}

bool usage_needs_no_tracing(const struct options *o)
{
	return o->pid_count > 0 && usage_samples_alone(o);
}

void usage_watch(struct usage *u, const pid_t *pids, size_t count, bool (*leave)(void *ctx),
		 void *ctx)
{
	if (u && u->sampler)
		sampler_watch(u->sampler, pids, count, leave, ctx);
}

/* -- sessions -- */

static bool has_base_name(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	return strcmp(slash ? slash + 1 : path, name) == 0;
}

/* Whether process @pid was called, or is, a program of this name. */
static bool is_program(uint32_t pid, const char *name)
{
	char called[4096];
	_cleanup_fclose_ FILE *f = proc_open((pid_t)pid, "cmdline");
	if (f && fgets(called, sizeof(called), f) && has_base_name(called, name))
		return true;
	_cleanup_free_ char *path = proc_read_link((pid_t)pid, "exe");
	return path && has_base_name(path, name);
}

static void start_counting(struct usage *u, struct session *s)
{
	bool is_first = !u->data_pid || u->data_pid == s->pid;
	if (u->data && is_first) {
		u->data_pid = s->pid;
		memusage_data_start(u->data, s->start_ns);
	}
	s->memusage = memusage_new(is_first ? u->data : NULL);
}

void usage_start(struct session *s)
{
	struct usage *u = s->run->usage;
	if (!u)
		return;
	const struct options *o = u->options;
	if (usage_counts(o) && (!o->progname || is_program(s->pid, o->progname)))
		start_counting(u, s);
	if (u->sampler)
		sampler_add(u->sampler, (pid_t)s->pid);
}

void usage_fork(const struct session *parent, struct session *child)
{
	struct usage *u = child->run->usage;
	child->memusage = parent->memusage ? memusage_clone(parent->memusage) : NULL;
	if (u && u->sampler && u->options->trace_children)
		sampler_add(u->sampler, (pid_t)child->pid);
}

void usage_event(struct session *s, const struct event *ev)
{
	/* with --stacks=yes threads may be looked at all the same */
	bool is_unasked = ev->kind == EVENT_SAMPLE && s->run->options->no_timer;
	if (s->memusage && !is_unasked && ev->function != FUNCTION_REQUEST)
		memusage_event(s->memusage, ev);
}

void usage_thread_exit(struct session *s, uint32_t thread)
{
	if (s->memusage)
		memusage_thread_exit(s->memusage, thread);
}

static void report(struct usage *u, const struct session *s)
{
	FILE *file = u->report ? u->report : stream_new(STDERR_FILENO, false);
	CHECK(file);
	bool use_color = log_use_color(u->report ? u->report_fd : STDERR_FILENO);
	if (!u->report)
		log_before_line();
	int rc = memusage_print(file, memusage_numbers(s->memusage), u->options->mmap, use_color);
	if (!u->report)
		fclose(file);
	if (rc != 0 && !u->report_error)
		u->report_error = rc;
}

static void end_data(struct usage *u, const struct session *s)
{
	const struct memusage_numbers *n = memusage_numbers(s->memusage);
	const struct memusage_data_peaks peaks = {
		.heap = n->peak,
		.stack = n->stack_peak,
		.sum = n->sum_peak,
		.start_ns = s->start_ns,
		.end_ns = s->end_ns,
	};
	memusage_data_finish(u->data, &peaks);
}

void usage_end(struct session *s, bool is_exec, bool is_replaced)
{
	struct usage *u = s->run->usage;
	if (!u)
		return;
	/* a program that is executed and not followed stays the same process */
	if (u->sampler && (!is_exec || u->options->trace_children))
		sampler_remove(u->sampler, (pid_t)s->pid);
	if (!s->memusage)
		return;
	if (u->data && u->data_pid == s->pid)
		end_data(u, s);
	if (u->options->memusage && !is_replaced)
		report(u, s);
	memusage_free(s->memusage);
	s->memusage = NULL;
}
