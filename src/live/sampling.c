/* Connects the sampler with a run: which processes are sampled, and which memory is ptmem's. */
#include "live/sampling.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/stream.h"
#include "live/sampler.h"
#include "session/file_name.h"
#include "session/observer.h"
#include "session/run.h"
#include "session/session.h"
#include "tracee/control/target.h"

struct sampling {
	struct run *run;
	struct sampler *sampler;
	struct observer observer;
};

/* -- what the run reports -- */

static void on_start(void *ctx, const struct session *s)
{
	struct sampling *sampling = ctx;

	sampler_add(sampling->sampler, (pid_t)s->process.pid);
}

static void on_fork(void *ctx, const struct session *child)
{
	struct sampling *sampling = ctx;

	if (sampling->run->options->children.trace)
		sampler_add(sampling->sampler, (pid_t)child->process.pid);
}

/* A program that is executed and not followed remains the same process. */
static void on_end(void *ctx, const struct session *s, bool is_exec)
{
	struct sampling *sampling = ctx;

	if (!is_exec || sampling->run->options->children.trace)
		sampler_remove(sampling->sampler, (pid_t)s->process.pid);
}

static void on_process_exit(void *ctx, pid_t pid, pid_t tid)
{
	struct sampling *sampling = ctx;

	sampler_sample(sampling->sampler, pid, tid);
}

static void on_will_map(void *ctx, pid_t pid)
{
	struct sampling *sampling = ctx;

	sampler_note_peaks(sampling->sampler, pid);
}

static uint64_t on_tick(void *ctx, uint64_t now_ns)
{
	struct sampling *sampling = ctx;

	return sampler_tick(sampling->sampler, now_ns);
}

/* -- life -- */

static uint64_t mapped_bytes(void *ctx, pid_t pid)
{
	const struct run *run = ctx;

	return run->target ? target_mapped_bytes(run->target, pid) : 0;
}

static void log_write_error(const char *path, int err)
{
	log_error("cannot write %s: %s", path, strerror(-err));
}

static int open_sampler(struct run *run, struct sampler **out)
{
	const struct options *o = run->options;
	_cleanup_free_ char *why = NULL;
	const struct sampler_options so = {
		.period_ns = o->samples.ms * 1000000ull,
		.fields = o->samples.fields,
		.path = o->samples.out,
		.with_pids = o->children.trace || options_attach_many(o),
		.own_bytes = mapped_bytes,
		.ctx = run,
	};
	int rc = sampler_new(&so, out, &why);

	if (rc != 0 && why)
		log_error("--sample-fields: /proc/PID/status has no '%s' that can be sampled", why);
	else if (rc != 0)
		log_write_error(o->samples.out, rc);
	return rc;
}

int sampling_open(struct run *run, struct sampling **out)
{
	struct sampler *sampler;

	*out = NULL;
	if (!run->options->samples.ms)
		return 0;
	int rc = open_sampler(run, &sampler);

	if (rc != 0)
		return rc;
	struct sampling *s = *out = xcalloc(1, sizeof(*s));

	s->run = run;
	s->sampler = sampler;
	s->observer = (struct observer){
		.ctx = s,
		.session_started = on_start,
		.session_forked = on_fork,
		.session_ended = on_end,
		.process_exit = on_process_exit,
		.will_map = on_will_map,
		.tick = on_tick,
	};
	observers_add(run, &s->observer);
	return 0;
}

bool sampling_close(struct sampling *s)
{
	if (!s)
		return true;
	const char *path = s->run->options->samples.out;
	int rc = sampler_free(s->sampler);

	if (rc != 0 && path && stream_cut_line(path) > 0)
		log_error("cannot write %s: %s; it has the samples until then", path,
			  strerror(-rc));
	else if (rc != 0)
		log_write_error(path ? path : "samples", rc);
	else if (path && !file_name_is_shared(path))
		log_info("written to %s; draw it with: ptmem-report --png=OUT.png %s", path, path);
	observers_remove(s->run, &s->observer);
	free(s);
	return rc == 0;
}

void sampling_watch(struct sampling *s, const pid_t *pids, size_t count, bool (*leave)(void *ctx),
		    void *ctx)
{
	if (s)
		sampler_watch(s->sampler, pids, count, leave, ctx);
}
