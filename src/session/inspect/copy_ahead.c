/*
 * The process is stopped for a moment to make a userfaultfd, which tells what is written from then
 * on (tracee/os/pagemap.h). The rest takes place from outside. Of profiled processes a thread of
 * ptmem's copies, since events must be read meanwhile: a process waits where a ring is full.
 */
#include "session/inspect/copy_ahead.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/log.h"
#include "base/proc.h"
#include "malloc/memory_copy.h"
#include "session/inspect/inspect_stopped.h"
#include "session/session.h"
#include "tracee/control/roots.h"
#include "tracee/control/target.h"
#include "tracee/inject/watch_file.h"
#include "tracee/os/pagemap.h"
#include "tracee/state/space.h"

#define LEAST (UINT64_C(64) << 20)  /* less is copied as quickly as this is prepared */
#define ENOUGH (UINT64_C(2) << 20)  /* so little may be left: 1 ms */
#define ROUNDS 20u

uint64_t copy_ahead_most(const struct options *o, bool is_stopped)
{
	if (o->inspect.copy != OPTIONS_COPY_AUTO)
		return o->inspect.copy;
	return is_stopped ? LEAST : MAX(LEAST, memory_available() / 4);
}

static int make_uffd(struct inspect_visit *v, struct address_space *s)
{
	return watch_file_make(v->target, s, v->ctx);
}

/* -- copying -- */

static uint64_t bytes_of(const struct copy_ranges *r)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < r->list.count; i++)
		bytes += r->list.data[i].end - r->list.data[i].start;
	return bytes;
}

/* Until little is left, or it becomes little less. 0, -ENOMEM without room, or another -errno. */
static int copy_rounds(struct memory_copy *copy, struct written_pages *w, uint64_t *left_out)
{
	const struct memory_source from = memory_of_process(&w->pid);
	struct copy_ranges written = {0};
	uint64_t before = UINT64_MAX;
	int rc = 0;

	for (unsigned round = 0; round < ROUNDS && rc == 0; round++) {
		written.list.count = 0;
		rc = written_pages_next(w, copy_ranges_add, &written);
		*left_out = bytes_of(&written);
		if (rc == 0 && !memory_copy_ahead(copy, &written, &from))
			rc = -ENOMEM;
		if (*left_out <= ENOUGH || *left_out / 4 >= before / 5)
			break;
		before = *left_out;
	}
	vec_deinit(&written.list);
	return rc;
}

/* What was copied of process @pid, or why nothing was: -errno. */
static void log_copied(pid_t pid, const struct memory_copy *copy, int rc, uint64_t left)
{
	if (rc != 0) {
		log_verbose("process %d: its memory is copied while it is stopped: writes to it "
			    "cannot be watched: %s", (int)pid, strerror(-rc));
		return;
	}
	log_verbose("process %d: its memory was copied before it is stopped, but for %" PRIu64
		    " KiB or more", (int)pid, left >> 10);
	if (left > MAX(copy->used / 16, LEAST))
		log_warn("process %d writes to its memory faster than that can be copied: it is "
			 "stopped for the last %" PRIu64 " MiB", (int)pid, left >> 20);
}

/* Takes over @uffd. 0, or -errno: then nothing is copied, and *w is closed. */
static int copy_by(struct memory_copy *copy, pid_t reader, int uffd, struct written_pages *w,
		   uint64_t *left_out)
{
	int rc = written_pages_begin(reader, uffd, w);

	if (rc == 0)
		rc = copy_rounds(copy, w, left_out);
	if (rc != 0) {
		memory_copy_restart(copy);
		written_pages_end(w);
	}
	return rc;
}

void copy_ahead(struct memory_copy *copy, struct registry *registry, pid_t pid,
		struct written_pages *written_out)
{
	pid_t reader = proc_find_reader(pid);
	uint64_t left = 0;
	int uffd = -1;
	struct inspect_visit visit = {.registry = registry, .pid = pid, .makes_calls = true,
				      .fn = make_uffd, .ctx = &uffd};

	*written_out = (struct written_pages){.uffd = -1, .pagemap = -1};
	if (copy->capacity < LEAST)
		return;
	int rc = inspect_visit_run(&visit);

	if (rc == 0)
		rc = copy_by(copy, reader, uffd, written_out, &left);
	log_copied(pid, copy, rc, left);
}

/* -- profiled processes -- */

struct ahead_process {
	uint32_t space;
	pid_t pid, reader;
	int uffd;   /* -1 = none */
	int rc;     /* of what was tried; -ESRCH: nothing was */
	uint64_t left;
	struct ahead_copy *ahead;
};

struct ahead_work {
	struct run *run;
	uint32_t only;
	VEC(struct ahead_process) list;
	bool is_done; /* changed atomically */
};

/* What may have to be copied, shared memory included; no less than that. */
static uint64_t bytes_to_copy(const struct address_space *s)
{
	struct roots *roots;
	struct proc_statm m;
	uint64_t bytes = 0;

	if (roots_list(s, &roots) != 0 || proc_statm_read(s->processes.reader, &m) != 0)
		return 0;
	for (size_t i = 0; i < roots->memory.count; i++)
		bytes += roots->memory.data[i].end - roots->memory.data[i].start;
	roots_free(roots);
	return MAX(bytes, m.resident - MIN(m.resident, m.shared));
}

static void list_process(void *ctx, struct address_space *space)
{
	struct ahead_work *w = ctx;
	struct session *s = space->sink.user;
	uint64_t bytes;

	if (w->only && space->id != w->only)
		return;
	copy_ahead_forget(s);
	bytes = bytes_to_copy(space);
	if (bytes == 0 || bytes > copy_ahead_most(w->run->options, false))
		return;
	struct ahead_process *p = vec_add(&w->list);

	*p = (struct ahead_process){.space = space->id, .pid = (pid_t)s->process.pid,
				    .reader = space->processes.reader, .uffd = -1, .rc = -ESRCH,
				    .ahead = xcalloc(1, sizeof(*p->ahead))};
	p->ahead->written = (struct written_pages){.uffd = -1, .pagemap = -1};
	memory_copy_init(&p->ahead->copy, bytes);
}

/* Whether it is worth while to copy @p before it is stopped. */
static bool is_large(const struct ahead_process *p)
{
	return p->ahead->copy.capacity >= LEAST;
}

static struct ahead_process *find_process(struct ahead_work *w, const struct address_space *space)
{
	for (size_t i = 0; i < w->list.count; i++)
		if (w->list.data[i].space == space->id)
			return &w->list.data[i];
	return NULL;
}

static void watch(void *ctx, struct address_space *space)
{
	struct ahead_work *w = ctx;
	struct ahead_process *p = find_process(w, space);

	if (p && is_large(p))
		p->rc = watch_file_make(w->run->target, space, &p->uffd);
}

static void *copy_all(void *ctx)
{
	struct ahead_work *w = ctx;

	for (size_t i = 0; i < w->list.count; i++) {
		struct ahead_process *p = &w->list.data[i];

		if (p->rc == 0)
			p->rc = copy_by(&p->ahead->copy, p->reader, p->uffd, &p->ahead->written,
					&p->left);
	}
	__atomic_store_n(&w->is_done, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool is_done(void *ctx)
{
	return __atomic_load_n(&((struct ahead_work *)ctx)->is_done, __ATOMIC_ACQUIRE);
}

static void ahead_free(struct ahead_copy *a)
{
	if (!a)
		return;
	written_pages_end(&a->written);
	memory_copy_deinit(&a->copy);
	free(a);
}

static void give(void *ctx, struct address_space *space)
{
	struct ahead_process *p = find_process(ctx, space);
	struct session *s = space->sink.user;

	if (!p)
		return;
	if (is_large(p))
		log_copied(p->pid, &p->ahead->copy, p->rc, p->left);
	s->end.ahead = p->ahead;
	p->ahead = NULL;
}

static void copy_while_running(struct ahead_work *w)
{
	bool is_any = false;
	pthread_t thread;

	for (size_t i = 0; i < w->list.count; i++)
		is_any |= is_large(&w->list.data[i]);
	if (!is_any)
		return;
	target_inspect(w->run->target, watch, w);
	if (pthread_create(&thread, NULL, copy_all, w) != 0) {
		copy_all(w);
		return;
	}
	target_run_until(w->run->target, is_done, w);
	pthread_join(thread, NULL);
}

void copy_ahead_sessions(struct run *run, uint32_t only)
{
	struct ahead_work w = {.run = run, .only = only};

	if (run->options->inspect.cold > 0) /* it would touch all of it */
		return;
	target_each(run->target, list_process, &w);
	copy_while_running(&w);
	target_each(run->target, give, &w);
	vec_release(&w.list, e, ahead_free(e->ahead));
}

struct ahead_copy *copy_ahead_of(const struct session *s)
{
	return s->end.ahead && !s->end.ahead->is_used ? s->end.ahead : NULL;
}

int copy_ahead_pages(const struct ahead_copy *a, pid_t reader, struct resident *pages_out,
		     struct copy_ranges *unchanged_out)
{
	if (a->written.uffd < 0)
		return resident_read(reader, pages_out);
	return resident_read_watched(&a->written, pages_out, copy_ranges_add, unchanged_out);
}

void copy_ahead_unwatch(struct session *s)
{
	if (!s->end.ahead)
		return;
	written_pages_end(&s->end.ahead->written);
	s->end.ahead->is_used = true;
}

void copy_ahead_forget(struct session *s)
{
	ahead_free(s->end.ahead);
	s->end.ahead = NULL;
}
