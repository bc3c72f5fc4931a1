/* Finds processes by polling /proc, and attaches to those that match. */
#include "live/follow.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cgroup.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/elf_marker.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/shell_words.h"
#include "session/observer.h"
#include "session/run.h"
#include "session/signals.h"
#include "tracee/control/attach.h"
#include "tracee/control/target.h"

static bool is_unit(const char *pattern)
{
	static const char *const ends[] = {".service", ".scope", ".slice"};
	size_t n = strlen(pattern);

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		size_t k = strlen(ends[i]);

		if (n > k && strcmp(pattern + n - k, ends[i]) == 0)
			return true;
	}
	return false;
}

/* Whether it is compared with names of processes, not with their control groups. */
static bool is_name_pattern(const char *pattern)
{
	return *pattern != '/' && !is_unit(pattern);
}

bool process_match(const char *pattern, const char *comm, const char *cgroup)
{
	if (is_name_pattern(pattern))
		return wildcard_matches(pattern, strlen(pattern), comm);
	if (!cgroup)
		return false;
	return *pattern == '/' ? cgroup_is_within(cgroup, pattern) :
				 cgroup_has_component(cgroup, pattern);
}

static bool matches_file(pid_t pid, const char *pattern)
{
	_cleanup_free_ char *exe = proc_read_link(proc_find_reader(pid), "exe");
	const char *slash = exe ? strrchr(exe, '/') : NULL;

	return slash && wildcard_matches(pattern, strlen(pattern), slash + 1);
}

bool process_matches(pid_t pid, const char *const *patterns, size_t count)
{
	char comm[PROC_COMM_SIZE] = "";
	_cleanup_free_ char *cgroup = NULL;

	for (size_t i = 0; i < count; i++) {
		bool is_name = is_name_pattern(patterns[i]);

		if (is_name && !*comm)
			proc_read_comm(pid, comm);
		else if (!is_name && !cgroup)
			cgroup = cgroup_read_text(pid);
		if (process_match(patterns[i], comm, cgroup))
			return true;
		if (is_name && strlen(comm) == PROC_COMM_SIZE - 1 && matches_file(pid, patterns[i]))
			return true;
	}
	return false;
}

/*
 * Processes are found by polling: events about new processes (the kernel's process connector) need
 * CAP_NET_ADMIN, and a program has the name of its parent until it executes its own.
 *
 * /proc is listed every second: some 2 us a process with all that follows. Files of a process
 * are read in its first seconds, since it may execute a program or be moved to its control group
 * after it was seen, and then in one of EXAMINED_EVERY rounds. A process that has the pid of an
 * earlier one is a new inode in the list.
 *
 * Attaching to one process takes some milliseconds, on a busy machine a second or more. Those that
 * wait for it are attached to in the order in which they were found. They are examined in each
 * round: they may have ended, which is reported, or have executed another program.
 */

#define PERIOD_NS UINT64_C(1000000000)
#define YOUNG_ROUNDS 4
#define EXAMINED_EVERY 16
#define TRIES 5
#define FAILURES_MAX 20 /* are reported one by one */

struct known {
	pid_t pid;
	uint64_t inode;
	uint32_t rounds;       /* in which it was seen, up to YOUNG_ROUNDS */
	uint32_t tries;        /* attaches that failed */
	bool is_wanted;        /* it matches, and was neither attached to nor given up yet */
	bool is_queued;
	bool is_traced;        /* by others: it is wanted when they have left it */
	bool is_said;          /* that it is */
	/* attached to or given up: the program then; another one may be attached to */
	bool is_done;
	uint64_t started, start_stack;
};

struct follow {
	struct run *run;
	struct follow_messages messages;
	struct observer observer;
	uint64_t next_ns;
	uint32_t round;
	unsigned failures;     /* processes given up, and those that ended before */
	VEC(struct known) known; /* by pid */
	VEC(pid_t) queue;      /* in the order in which they were found */
	size_t taken;          /* so many of them are done */
	VEC(pid_t) ancestors;  /* and ptmem itself */
};

/* -- candidates -- */

static bool is_excluded(const struct follow *f, pid_t pid)
{
	for (size_t i = 0; i < f->ancestors.count; i++) {
		if (f->ancestors.data[i] == pid)
			return true;
	}
	return target_traces(f->run->target, pid) || elf_marker_is_in(pid);
}

/* Whether another failure is to be reported: not if a machine has very many of them. */
static bool reports_failure(struct follow *f)
{
	if (++f->failures == FAILURES_MAX + 1)
		log_warn("more processes cannot be attached to, or end before; they are counted");
	return f->failures <= FAILURES_MAX;
}

static void note_ended(struct follow *f, pid_t pid)
{
	if (reports_failure(f))
		log_warn("process %d ended before ptmem could attach to it", (int)pid);
}

static bool has_ended(pid_t pid)
{
	enum attach_problem problem = target_check_pid(pid);

	return problem == ATTACH_NO_PROCESS || problem == ATTACH_ZOMBIE;
}

/* Whether to attach to the process of @k, which is examined. */
static bool check_wanted(const struct follow *f, struct known *k)
{
	const struct option_strings *patterns = &f->run->options->attach.follow;
	struct proc_stat first, st; /* of its first thread; of one that lives */

	if (!process_matches(k->pid, patterns->data, patterns->count) ||
	    proc_stat_read(k->pid, &first) != 0 ||
	    proc_stat_read(proc_find_reader(k->pid), &st) != 0 || st.is_kernel_thread)
		return false;
	if (st.is_exiting) /* one that waits is reported once it has ended */
		return k->is_wanted;
	bool is_same = k->started == first.started && k->start_stack == st.start_stack;

	if (is_same && (k->is_done || (k->is_traced && proc_tracer(k->pid))))
		return false;
	if (k->started != first.started || k->is_traced)
		k->tries = 0;
	k->is_said &= is_same;
	k->is_done = k->is_traced = false;
	k->started = first.started;
	k->start_stack = st.start_stack;
	return !is_excluded(f, k->pid);
}

static bool is_turn(const struct follow *f, const struct known *k)
{
	return k->is_wanted || k->is_traced || k->rounds < YOUNG_ROUNDS ||
	       ((uint32_t)k->pid + f->round) % EXAMINED_EVERY == 0;
}

/*
 * The known process @pid, or NULL. They are listed by pid, from *@at: those before it have gone.
 */
static struct known *take_known(struct follow *f, pid_t pid, size_t *at)
{
	for (; *at < f->known.count && f->known.data[*at].pid < pid; (*at)++) {
		if (f->known.data[*at].is_wanted)
			note_ended(f, f->known.data[*at].pid);
	}
	return *at < f->known.count && f->known.data[*at].pid == pid ? &f->known.data[(*at)++] :
								       NULL;
}

static struct known next_round(const struct known *before, pid_t pid, uint64_t inode)
{
	struct known k = {.pid = pid};

	if (before)
		k = *before;
	k.rounds = k.inode == inode ? MIN(k.rounds + 1, (uint32_t)YOUNG_ROUNDS) : 0;
	k.inode = inode;
	return k;
}

static void examine(struct follow *f, struct known *k)
{
	bool was_wanted = k->is_wanted;

	if (!is_turn(f, k))
		return;
	k->is_wanted = check_wanted(f, k);
	if (was_wanted && has_ended(k->pid)) {
		k->is_wanted = false;
		note_ended(f, k->pid);
	}
	if (k->is_wanted && !k->is_queued) {
		k->is_queued = true;
		*vec_add(&f->queue) = k->pid;
	}
}

static void scan(struct follow *f)
{
	DIR *dir = opendir("/proc");
	struct follow next = {0};
	size_t at = 0;

	if (!dir)
		return;
	for (struct dirent *e; (e = readdir(dir));) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid <= 0)
			continue;
		struct known *k = vec_add(&next.known);

		*k = next_round(take_known(f, pid, &at), pid, e->d_ino);
		examine(f, k);
	}
	take_known(f, INT_MAX, &at);
	closedir(dir);
	vec_deinit(&f->known);
	f->known.data = next.known.data;
	f->known.count = next.known.count;
	f->known.capacity = next.known.capacity;
	f->round++;
}

/* -- attaching -- */

/*
 * Attaches to the process of @k, or notes the failure, which is reported once. One that is traced
 * is looked at in each round.
 */
static void attach(struct follow *f, struct known *k)
{
	struct target *t = f->run->target;
	uint64_t threads = target_stats(t)->threads;
	enum attach_problem problem = ATTACH_OTHER;
	long detail = -1;
	int rc = target_attach_once(t, k->pid, &problem, &detail);

	if (rc != 0 && target_may_attach_later(k->pid, problem, detail) && ++k->tries < TRIES)
		return; /* again in the next round */
	k->is_traced = rc != 0 && problem == ATTACH_TRACED;
	k->is_done = !k->is_traced;
	k->is_wanted = false;
	if (k->is_traced && k->is_said)
		return;
	k->is_said = k->is_traced;
	if (rc == 0)
		f->messages.attached(t, k->pid, threads);
	else if (problem == ATTACH_NO_PROCESS || problem == ATTACH_ZOMBIE)
		note_ended(f, k->pid);
	else if (reports_failure(f))
		f->messages.failed(k->pid, rc, problem, detail);
}

static bool is_waiting(const struct follow *f)
{
	return f->taken < f->queue.count;
}

static void attach_next(struct follow *f)
{
	pid_t pid = f->queue.data[f->taken++];
	size_t i = vec_search(&f->known, k, k->pid < pid);

	if (!is_waiting(f))
		f->queue.count = f->taken = 0;
	if (i == f->known.count || f->known.data[i].pid != pid)
		return;
	f->known.data[i].is_queued = false;
	if (f->known.data[i].is_wanted && !target_traces(f->run->target, pid))
		attach(f, &f->known.data[i]);
}

/* -- the observer -- */

static const char *why_nothing(const char *pattern)
{
	const char *slash = strchr(pattern, '/');

	if (slash == pattern)
		return ": no process is in a control group of that name";
	return slash ? ": names of processes have no /, and those of control groups begin with it" :
		       "";
}

/* Nothing that matches may be a mistake: it is said at once. */
static void report_missing(const struct follow *f)
{
	const struct option_strings *patterns = &f->run->options->attach.follow;

	for (size_t i = 0; i < patterns->count; i++) {
		bool is_there = false;

		for (size_t k = 0; k < f->known.count && !is_there; k++)
			is_there = process_matches(f->known.data[k].pid, &patterns->data[i], 1);
		if (!is_there)
			log_info("nothing matches %s yet%s; waiting", patterns->data[i],
				 why_nothing(patterns->data[i]));
	}
}

static uint64_t tick(void *ctx, uint64_t now_ns)
{
	struct follow *f = ctx;

	if (now_ns >= f->next_ns) {
		scan(f);
		if (f->round == 1)
			report_missing(f);
		f->next_ns = clock_now_ns() + PERIOD_NS;
	}
	if (is_waiting(f))
		target_wake();
	return f->next_ns;
}

static bool poll_queue(void *ctx)
{
	struct follow *f = ctx;

	if (is_waiting(f) && !signals_leave_request())
		attach_next(f);
	if (is_waiting(f))
		target_wake();
	return false;
}

/* -- life -- */

static void find_ancestors(struct follow *f)
{
	struct proc_status st;

	for (pid_t pid = getpid(); pid > 0; pid = st.parent) {
		*vec_add(&f->ancestors) = pid;
		if (proc_status_read(pid, &st) != 0)
			return;
	}
}

struct follow *follow_start(struct run *run, const struct follow_messages *messages)
{
	const struct option_strings *patterns = &run->options->attach.follow;

	if (patterns->count == 0)
		return NULL;
	struct follow *f = xcalloc(1, sizeof(*f));

	f->run = run;
	f->messages = *messages;
	f->observer = (struct observer){.ctx = f, .tick = tick, .poll = poll_queue};
	find_ancestors(f);
	observers_add(run, &f->observer);
	for (size_t i = 0; i < patterns->count; i++)
		log_info("following %s", patterns->data[i]);
	return f;
}

void follow_stop(struct follow *f)
{
	if (!f)
		return;
	observers_remove(f->run, &f->observer);
	if (f->failures > FAILURES_MAX)
		log_warn("%u processes could not be attached to", f->failures);
	vec_deinit(&f->known);
	vec_deinit(&f->queue);
	vec_deinit(&f->ancestors);
	free(f);
}
