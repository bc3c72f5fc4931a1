/*
 * Makes a profile from an event file, without a target. The events were already converted when they
 * were written, so they go straight to the profile, to memusage's numbers and to the xtree.
 */
#include "session/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/log.h"
#include "profile/events.h"
#include "profile/memusage.h"
#include "session/heap_sample.h"
#include "session/memusage_run.h"
#include "session/record/recording_values.h"
#include "session/out.h"

struct replay {
	struct run *run;
	struct session *session;
	uint64_t end_ns;
	uint32_t program; /* its first module; 0 = none yet */
	bool is_started;
	bool has_samples; /* the file's events are samples */
	bool has_pages;   /* there are events of whole pages */
};

/* Whether @ev describes the initial state: it comes before snapshot 0. */
static bool is_initial(const struct replay *r, const struct event *ev)
{
	bool is_page = r->run->options->profile.pages_as_heap && ev->kind == EVENT_MAP;

	return ev->kind == EVENT_EARLIER ||
	       (is_page && ev->time_ns == r->session->process.start_ns);
}

static void replay_start(struct replay *r, const struct event *ev)
{
	struct session *s = r->session;
	if (r->is_started || (ev && is_initial(r, ev)))
		return;
	r->is_started = true;
	profile_start(s->heap.profile, s->process.start_ns);
}

static void replay_header(void *ctx, const char *command, uint32_t pid, uint64_t start_ns)
{
	struct replay *r = ctx;
	struct session *s = r->session;
	free(s->process.command);
	s->process.command = xstrdup(command);
	s->process.pid = pid;
	s->process.start_ns = start_ns;
	profile_set_start(s->heap.profile, start_ns);
	memusage_run_start(s);
}

static void replay_module(void *ctx, const struct events_module *em)
{
	struct replay *r = ctx;
	if (em->end == 0)
		return; /* unloaded: its addresses have their frames */
	if (!r->program)
		r->program = em->id;
	struct module *m = xcalloc(1, sizeof(*m));
	m->id = em->id;
	m->users = 1;
	m->start = em->start;
	m->end = em->end;
	m->bias = em->bias;
	m->path = xstrdup(em->path);
	if (elf_file_open(&r->run->registry.files, em->path, NULL, &m->file) != 0)
		m->file = NULL;
	run_add_module(r->run, m);
	module_release(m);
}

static void replay_name(void *ctx, const struct events_name *n)
{
	struct replay *r = ctx;
	struct symbol_frame frame = {
		.name = n->name, .file = n->file, .dir = n->dir, .line = n->line};
	const struct module *m = run_module(r->run, n->module);
	struct symbol sym = {.object = m ? m->path : NULL, .frame = &frame, .count = 1,
			     .is_main = n->name && strcmp(n->name, "main") == 0};
	symbols_define(r->run->symbols, n->module, n->pc, &sym);
}

static void replay_value(void *ctx, const char *key, const char *value)
{
	struct replay *r = ctx;
	struct call_totals *totals = &r->session->heap.sample.totals;
	struct lost_events *lost = &totals->lost;
	if (strcmp(key, "corrupt") == 0)
		totals->is_doubtful = true;
	else if (strcmp(key, "missing") == 0)
		sscanf(value, "%" SCNu64 " %" SCNu64 " %" SCNu64, &lost->allocations, &lost->bytes,
		       &lost->releases);
	else
		recording_values_add(r->session, key, value);
}

static void replay_sampling(void *ctx, uint64_t interval, uint64_t seed)
{
	struct replay *r = ctx;
	struct session *s = r->session;
	r->has_samples = true;
	heap_sample_init(&s->heap.sample, interval, seed);
	s->heap.sample.is_done = true;
	profile_set_sample_interval(s->heap.profile, interval);
	if (s->heap.flows)
		flows_set_sample_interval(s->heap.flows, interval);
	if (s->memusage.counts)
		memusage_set_sample_interval(s->memusage.counts, interval);
	session_describe(s, interval);
}

static void replay_total(void *ctx, uint8_t function, const struct call_total *total)
{
	struct replay *r = ctx;
	r->session->heap.sample.totals.function[function] = *total;
}

static void replay_event(void *ctx, const struct event *recorded)
{
	struct replay *r = ctx;
	struct event copy = *recorded, *ev = &copy;
	r->has_pages |= ev->kind == EVENT_MAP || ev->kind == EVENT_UNMAP || ev->kind == EVENT_COUNT;
	replay_start(r, ev);
	r->end_ns = ev->time_ns;
	if (ev->kind == EVENT_EARLIER && r->session->heap.sample.interval)
		return; /* not sampled */
	if (ev->kind == EVENT_RESIDENT) {
		profile_event(r->session->heap.profile, ev);
		return;
	}
	if (!heap_sample_keep(&r->session->heap.sample, r->session->heap.profile, false, ev))
		return;
	session_sampling_note_sample(r->session, ev->sample_shift);
	r->session->stacks.counts.taken += ev->node != 0;
	r->session->stacks.counts.complete += ev->node != 0;
	memusage_run_event(r->session, ev);
	if (r->session->heap.flows)
		flows_event(r->session->heap.flows, ev);
	if (ev->kind != EVENT_STACK || r->run->options->profile.stacks)
		profile_event(r->session->heap.profile, ev);
	releases_note(r->session->heap.releases, profile_totals(r->session->heap.profile),
		      ev->node);
}

static void replay_thread_exit(void *ctx, uint32_t thread)
{
	struct replay *r = ctx;
	profile_thread_exit(r->session->heap.profile, thread);
	releases_note(r->session->heap.releases, profile_totals(r->session->heap.profile), 0);
	memusage_run_thread_exit(r->session, thread);
}

static void replay_end(void *ctx, uint64_t time_ns)
{
	struct replay *r = ctx;
	r->end_ns = time_ns;
}

static void replay_cut(void *ctx, unsigned line)
{
	struct replay *r = ctx;

	log_warn("%s is cut: the profile ends with its line %u", r->run->options->files.replay,
		 line);
}

/* As sink_space_gone does: the profile is that of the last program. */
static struct calltree *replay_restart(void *ctx)
{
	struct replay *r = ctx;

	r->session->image.program = r->program;
	memusage_run_end(r->session, true);
	out_supersede(r->session);
	session_free(r->session);
	*r = (struct replay){.run = r->run, .session = session_new(r->run, 0, 0)};
	return profile_calltree(r->session->heap.profile);
}

/* Why --heap-sample, if it is given, cannot take samples of the file's events; NULL: it can. */
static const char *refuse_sampling(const struct replay *r)
{
	if (!r->run->options->tracing.heap_sample)
		return NULL;
	if (r->has_samples)
		return "holds samples already: --heap-sample cannot take samples of them";
	if (r->has_pages && options_sample_interval(r->run->options))
		return "counts pages, which are always exact: --heap-sample cannot take samples "
		       "of them";
	return NULL;
}

int session_replay(struct run *run, const char *path)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	if (!f) {
		int err = errno;
		log_error("cannot read %s: %s", path, strerror(err));
		return -err;
	}
	struct replay r = {.run = run};
	r.session = session_new(run, 0, 0);
	const struct events_reader_ops ops = {
		.header = replay_header,
		.module = replay_module,
		.name = replay_name,
		.value = replay_value,
		.event = replay_event,
		.thread_exit = replay_thread_exit,
		.end = replay_end,
		.sampling = replay_sampling,
		.total = replay_total,
		.cut = replay_cut,
		.restart = replay_restart,
		.ctx = &r,
	};
	unsigned line = 0;
	const char *why = "";
	int rc = events_read(f, profile_calltree(r.session->heap.profile), &ops, &line, &why);
	if (rc != 0)
		log_error("%s:%u: %s", path, line, why);
	const char *refused = rc == 0 ? refuse_sampling(&r) : NULL;

	if (refused) {
		log_error("%s %s", path, refused);
		rc = -EINVAL;
	}
	if (rc == 0) {
		replay_start(&r, NULL);
		r.session->process.end_ns = r.end_ns;
		memusage_run_end(r.session, false);
		session_finish(r.session, r.end_ns);
	}
	session_free(r.session);
	return rc;
}
