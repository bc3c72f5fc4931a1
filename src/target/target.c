/*
 * Start, attach, detach and the public face of the target stage.
 *
 * Start: the child waits on a pipe until it is seized, then executes the program;
 * a second pipe, closed by a good exec, brings back errno of a failed one. No
 * descriptor of ours reaches the program.
 *
 * Attach: symbols are read first; then all threads are seized and interrupted,
 * passes over /proc/PID/task going on until one finds nobody new; then the traps
 * go in while everybody stands.
 */
#include "target/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/proc.h"
#include "target/attach_check.h"
#include "target/faults.h"
#include "target/instructions.h"
#include "target/ptrace.h"
#include "target/guard.h"
#include "target/hurry.h"
#include "target/pads.h"
#include "target/requests.h"
#include "target/roots.h"
#include "target/syscall_sites.h"
#include "target/thread.h"

/* Where no function is watched, threads and (unless they are followed) children are let be. */
#define FEW_OPTIONS (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT)
#define TRACE_OPTIONS \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | \
	 PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_TRACESECCOMP | \
	 PTRACE_O_TRACEVFORKDONE)

static volatile sig_atomic_t wake_flag;

/* SIGCHLD is waited for by sigtimedwait: blocked, and not ignored. */
static void take_signals(struct signal_state *old)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	const struct sigaction standard = {.sa_handler = SIG_DFL};
	sigaction(SIGCHLD, &standard, &old->child);
	sigprocmask(SIG_BLOCK, &set, &old->mask);
}

struct target *target_new(const struct target_options *options, const struct target_sink *sink)
{
	struct target *t = xcalloc(1, sizeof(*t));
	t->options = *options;
	t->sink = *sink;
	t->arch = arch_native;
	t->now_ns = target_clock();
	pad_owner_init(&t->pad_owner);
	take_signals(&t->signals);
	return t;
}

void target_free(struct target *t)
{
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (th) {
			thread_remove(t, th);
			i = (size_t)-1;
		}
	}
	while (t->processes.count > 0)
		process_remove(t, t->processes.data[0], SPACE_DETACHED);
	faults_free(t);
	guard_stop(t);
	instructions_close(t);
	vec_deinit(&t->stack_words);
	vec_deinit(&t->threads);
	vec_deinit(&t->processes);
	free(t->early);
	vec_deinit(&t->late);
	free(t);
}

static int trace_options(const struct target *t)
{
	const struct target_options *o = &t->options;
	bool is_watched = !o->no_probes || o->watch_brk || o->watch_mappings || o->watch_faults;
	return is_watched || o->follow_exec ? TRACE_OPTIONS : FEW_OPTIONS;
}

/* -- start -- */

ATTR_NORETURN static void run_program(const struct target *t, int go_fd, int error_fd,
				      char *const argv[])
{
	char c;
	sigaction(SIGCHLD, &t->signals.child, NULL);
	sigprocmask(SIG_SETMASK, &t->signals.mask, NULL);
	while (read(go_fd, &c, 1) < 0 && errno == EINTR)
		;
	if (t->options.watch_brk || t->options.watch_mappings)
		syscalls_install_filter(t, argv[0]);
	execvp(argv[0], argv);
	int err = errno;
	while (write(error_fd, &err, sizeof(err)) < 0 && errno == EINTR)
		;
	_exit(127);
}

/* Waits until the exec of @pid has happened (its stop is served) or failed (errno from @fd). */
static int await_exec(struct target *t, pid_t pid, int fd)
{
	struct process *p = process_find(t, pid);
	while (p && p->is_execing) {
		int rc = loop_step(t, false);
		if (rc == -ECHILD)
			break;
		p = process_find(t, pid);
	}
	int err = 0;
	if (read(fd, &err, sizeof(err)) == sizeof(err))
		return -err;
	return p ? 0 : -ESRCH;
}

int target_start(struct target *t, char *const argv[])
{
	int go[2], error[2];
	if (pipe2(go, O_CLOEXEC) != 0)
		return -errno;
	if (pipe2(error, O_CLOEXEC | O_NONBLOCK) != 0) {
		int err = errno;
		close(go[0]);
		close(go[1]);
		return -err;
	}
	pid_t pid = fork();
	if (pid == 0) {
		close(go[1]);
		run_program(t, go[0], error[1], argv);
	}
	close(go[0]);
	close(error[1]);
	int rc = pid < 0 ? -errno : 0;
	if (rc == 0) {
		t->first_pid = pid;
		rc = ptrace_seize(pid, trace_options(t) |
					       (t->options.keep_running ? 0 : PTRACE_O_EXITKILL));
	}
	if (rc == 0 && t->options.count_instructions)
		rc = instructions_add(t, pid, true);
	if (rc == 0 && t->options.watch_faults) {
		rc = faults_add(t, pid, true);
		t->fault_error = rc;
	}
	if (rc == 0) {
		struct process *p = process_add(t, pid, space_new(pid));
		p->is_started = p->is_execing = true;
		struct thread *th = thread_add(t, pid, p);
		th->state = THREAD_RUNNING;
		close(go[1]);
		rc = await_exec(t, pid, error[0]);
	} else {
		if (pid > 0) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, __WALL);
		}
		close(go[1]);
	}
	close(error[0]);
	return rc;
}

/* -- attach -- */

static void count_instructions(struct target *t, pid_t tid)
{
	int rc = instructions_add(t, tid, false);
	if (rc != 0 && rc != -ESRCH)
		log_warn("the instructions of thread %d are not counted: %s", tid, strerror(-rc));
}

/*
 * Dying threads and a dead leader give EPERM, too: they allocate nothing any more. So does one whose
 * maker was seized a moment ago, and which the kernel has given to us already; its event is to come.
 */
static bool is_gone_or_ours(pid_t tid, int seize_error)
{
	struct proc_status st;
	if (seize_error == -ESRCH || proc_status_read(tid, &st) != 0)
		return true;
	return proc_status_is_dead(&st) || st.tracer == getpid();
}

/* Seizes and interrupts the threads of @p that are new; returns how many, or -errno for the first. */
static int seize_pass(struct target *t, struct process *p)
{
	DIR *dir = proc_open_threads(p->pid);
	if (!dir)
		return -ESRCH;
	int found = 0, rc = 0;
	for (pid_t tid; (tid = proc_next_thread(dir));) {
		if (thread_find(t, tid))
			continue;
		int err = ptrace_seize(tid, trace_options(t));
		if (err != 0) {
			if (!is_gone_or_ours(tid, err) && rc == 0)
				rc = err;
			continue;
		}
		struct thread *th = thread_add(t, tid, p);
		th->state = THREAD_RUNNING;
		if (t->options.count_instructions)
			count_instructions(t, tid);
		if (t->options.watch_faults && t->fault_error == 0)
			t->fault_error = faults_add(t, tid, false);
		if (ptrace_interrupt(tid) == 0)
			th->was_interrupted = true;
		found++;
	}
	closedir(dir);
	return rc != 0 ? rc : found;
}

int target_seize_all(struct target *t, pid_t pid)
{
	struct process *p;
	int found = 0;
	t->is_stopping = true;
	do {
		p = process_find(t, pid); /* it may end while it is stopped */
		if (!p)
			return -ESRCH;
		found = seize_pass(t, p);
		loop_stop_world(t);
	} while (found > 0);
	p = process_find(t, pid);
	return found < 0 ? found : p && p->threads > 0 ? 0 : -ESRCH;
}

/*
 * A stopped thread that may make system calls for us: not at the event of its vfork, and
 * not in a group stop, if there is another.
 */
static struct thread *pick_thread(struct target *t, struct space *s)
{
	struct thread *best = NULL;
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (!th || th->process->space != s || th->is_exiting || !th->is_held ||
		    th->is_in_vfork)
			continue;
		/* one that holds a signal would get it with another siginfo afterwards */
		if (!best || best->state == THREAD_LISTENING ||
		    (best->held_signal && !th->held_signal))
			best = th;
	}
	return best;
}

/* What takes long is done before anybody stands still. */
static void look_for_sites(void *ctx, struct space *s, struct module *m)
{
	const struct target *t = ctx;
	(void)s;
	if (t->options.watch_brk || t->options.watch_mappings)
		syscall_sites_prepare(t, m);
	if (m->file && !m->is_vdso && !m->sites) {
		m->sites = xcalloc(1, sizeof(*m->sites));
		probe_sites_find(m->file, m->sites);
	}
	requests_look(ctx, m);
}

static void undo_attach(struct target *t, pid_t pid);

int target_attach(struct target *t, pid_t pid, enum attach_problem *problem_out, long *detail_out)
{
	int rc = attach_check(pid, t->arch, problem_out, detail_out);
	if (rc != 0)
		return rc;
	struct space *s = space_new(pid);
	s->is_profiled = true;
	rc = space_update_modules(s, look_for_sites, NULL, t);
	if (rc != 0) {
		space_free(s);
		*problem_out = rc == -ESRCH ? ATTACH_NO_PROCESS : ATTACH_PERMISSION;
		return rc;
	}
	if (t->first_pid == 0)
		t->first_pid = pid;
	if (guard_start(t) == 0)
		guard_space(t, s);
	struct process *p = process_add(t, pid, s);
	if (t->options.watch_brk || t->options.watch_mappings)
		t->syscalls = SYSCALLS_SITES;
	struct hurry hurry;
	uint64_t begin = target_clock();
	p->is_attaching = true;
	hurry_begin(&hurry);
	rc = target_seize_all(t, pid);
	if (rc == 0) {
		p->is_attaching = false;
		space_reopen(s);
	}
	*problem_out = rc == -ESRCH ? ATTACH_NO_PROCESS : ATTACH_PERMISSION;
	if (rc == 0 && t->fault_error != 0) {
		rc = t->fault_error;
		*problem_out = ATTACH_NO_FAULTS;
	}
	if (rc == 0) {
		t->now_ns = target_clock();
		guard_install(t, s, pick_thread(t, s));
		rc = install_probes(t, s, pick_thread(t, s));
		if (rc == -ENOENT)
			*problem_out = ATTACH_NO_PROBES;
	}
	if (rc != 0)
		undo_attach(t, pid);
	else
		loop_start_world(t);
	uint64_t pause = target_clock() - begin;
	hurry_end(&hurry);
	if (rc != 0)
		return rc;
	s->attach_ns = t->stats.attach_ns = pause;
	*problem_out = ATTACH_OK;
	return 0;
}

/* -- detach -- */

static void detach_thread(struct thread *th)
{
	/* a group-stopped thread stays stopped; one with a pending signal gets it */
	int rc = ptrace_detach(th->tid, th->held_signal);
	if (rc != 0)
		log_debug("thread %d: detach: %s", th->tid, strerror(-rc));
}

void target_each(struct target *t, void (*fn)(void *ctx, struct space *s), void *ctx)
{
	for (size_t i = 0; i < t->processes.count; i++) {
		struct space *s = t->processes.data[i]->space;
		bool is_first = true;
		for (size_t k = 0; k < i; k++)
			is_first &= t->processes.data[k]->space != s;
		if (!is_first || !s->user || !s->is_ready)
			continue;
		fn(ctx, s);
	}
}

static void catch_up(void *ctx, struct space *s)
{
	pads_catch_up(ctx, s);
}

uint64_t target_inspect(struct target *t, void (*fn)(void *ctx, struct space *s), void *ctx)
{
	uint64_t begin = target_clock();
	t->now_ns = begin;
	loop_stop_world(t);
	target_each(t, catch_up, t);
	target_each(t, fn, ctx);
	loop_start_world(t);
	return target_clock() - begin;
}

/* Lets everybody run for a moment. */
static void run_shortly(struct target *t)
{
	const struct timespec ts = {0, 1000000};
	loop_start_world(t);
	nanosleep(&ts, NULL);
	while (loop_step(t, true) == 0)
		;
	loop_stop_world(t);
}

/* Whether a thread of @s waits in vfork: it can neither be let go nor make calls for us. */
static bool is_in_vfork(const struct target *t, const struct space *s)
{
	for (size_t i = 0; i < t->threads.capacity; i++) {
		const struct thread *th = t->threads.data[i];
		if (th && th->process->space == s && th->is_in_vfork)
			return true;
	}
	return false;
}

#define VFORK_MS 2000u
#define REMOVE_TRIES 100

/* Until nobody of @s waits in vfork, at most until @deadline. Who comes out of it stays where it is. */
static void run_out_of_vfork(struct target *t, struct space *s, uint64_t deadline)
{
	loop_start_world(t);
	while (is_in_vfork(t, s) && target_clock() < deadline) {
		if (loop_step(t, true) != 0)
			loop_wait_for_child(5);
	}
	loop_stop_world(t);
}

static bool remove_from(struct target *t, struct space *s, uint64_t deadline, bool is_last)
{
	if (s->areas.count == 0 && s->traps.count == 0 && !guard_has_injection(s))
		return true;
	if (is_in_vfork(t, s) && target_clock() < deadline) {
		run_out_of_vfork(t, s, deadline);
		return false; /* the processes may be others now */
	}
	return install_remove(t, s, pick_thread(t, s), is_last);
}

/* From the spaces of all processes, or of @only. Processes may end meanwhile. */
static void remove_everything(struct target *t, pid_t only)
{
	uint64_t deadline = target_clock() + VFORK_MS * 1000000ull;
	bool is_done = false;
	t->is_leaving = true;
	for (unsigned tries = 1; !is_done && tries <= REMOVE_TRIES; tries++) {
		if (tries > 1)
			run_shortly(t);
		is_done = true;
		for (size_t i = 0; i < t->processes.count; i++) {
			const struct process *p = t->processes.data[i];
			if (!only || only == p->pid)
				is_done &= remove_from(t, p->space, deadline, tries == REMOVE_TRIES);
		}
	}
	t->is_leaving = false;
	for (size_t i = 0; i < t->threads.capacity; i++) {
		if (t->threads.data[i])
			t->threads.data[i]->stays = false;
	}
}

static bool is_among(const struct thread *th, pid_t only)
{
	return th && (!only || th->process->pid == only);
}

/* Lets go of all processes, or of @only. Everybody stands still, but for moments. Returns the time when
 * the last one went on. */
static uint64_t detach_stopped(struct target *t, pid_t only)
{
	struct hurry hurry;
	remove_everything(t, only);
	for (size_t i = 0; i < t->threads.capacity; i++) {
		if (is_among(t->threads.data[i], only))
			trap_drop_calls(t, t->threads.data[i], UINT64_MAX);
	}
	hurry_begin(&hurry);
	for (size_t i = 0; i < t->threads.capacity; i++) {
		if (is_among(t->threads.data[i], only))
			detach_thread(t->threads.data[i]);
	}
	uint64_t end = target_clock();
	hurry_end(&hurry);
	for (size_t i = 0; i < t->threads.capacity; i++) {
		if (is_among(t->threads.data[i], only)) {
			thread_remove(t, t->threads.data[i]);
			i = (size_t)-1;
		}
	}
	return end;
}

static void detach_all(struct target *t)
{
	struct hurry hurry;
	uint64_t begin = target_clock();
	hurry_begin(&hurry);
	loop_stop_world(t);
	hurry_end(&hurry);
	faults_drain(t);
	target_each(t, catch_up, t);
	if (t->options.last_look)
		target_each(t, t->sink.last_look, t->sink.ctx);
	t->stats.detach_ns = detach_stopped(t, 0) - begin;
	for (size_t i = 0; i < t->early_count; i++)
		ptrace_detach(t->early[i].tid, 0);
	t->early_count = 0;
	t->is_stopping = false;
	while (t->processes.count > 0)
		process_remove(t, t->processes.data[0], SPACE_DETACHED);
}

/* An attach failed half-way: as if it had not been tried. Others go on. */
static void undo_attach(struct target *t, pid_t pid)
{
	loop_stop_world(t);
	detach_stopped(t, pid);
	struct process *p = process_find(t, pid);
	if (p)
		process_remove(t, p, SPACE_DETACHED);
	loop_start_world(t);
}

/*
 * A program whose calls our filter stops cannot be left: they would fail. So only
 * the profiles end, and ptmem answers those calls until nobody is left.
 */
static void release_all(struct target *t)
{
	t->is_released = true;
	loop_stop_world(t);
	faults_drain(t);
	target_each(t, catch_up, t);
	if (t->options.last_look)
		target_each(t, t->sink.last_look, t->sink.ctx);
	remove_everything(t, 0);
	for (size_t i = 0; i < t->processes.count; i++) {
		struct space *s = t->processes.data[i]->space;
		pads_finish(t, s);
		if (s->user)
			t->sink.space_end(t->sink.ctx, s, SPACE_DETACHED);
		pads_free(t, s);
		s->is_profiled = false;
	}
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (!th)
			continue;
		trap_drop_calls(t, th, UINT64_MAX);
		th->is_held |= th->waits_for_room;
		th->waits_for_room = false;
	}
	t->waiters = 0;
	loop_start_world(t);
}

bool target_must_stay(const struct target *t)
{
	return t->syscalls == SYSCALLS_FILTER && t->processes.count > 0;
}

void target_detach(struct target *t)
{
	t->now_ns = target_clock();
	if (!target_must_stay(t)) {
		detach_all(t);
		return;
	}
	release_all(t);
	while (t->processes.count > 0 && loop_step(t, false) != -ECHILD)
		;
}

void target_abandon(struct target *t)
{
	t->is_abandoned = true;
	loop_stop_world(t);
	for (size_t i = 0; i < t->processes.count; i++)
		install_remove(t, t->processes.data[i]->space, NULL, true);
	for (size_t i = 0; i < t->threads.capacity; i++) {
		if (t->threads.data[i])
			detach_thread(t->threads.data[i]);
	}
}

/* -- run -- */

void target_wake(void)
{
	wake_flag = 1;
}

/* Hot probes of a space become pads: everybody stands still for it. */
static void promote(struct target *t)
{
	struct space *s = t->promote;
	struct hurry hurry;
	uint64_t begin = target_clock();
	t->promote = NULL;
	uint32_t id = s->id;
	hurry_begin(&hurry);
	loop_stop_world(t);
	t->promote = NULL;
	bool is_alive = false;
	for (size_t i = 0; i < t->processes.count; i++)
		is_alive |= t->processes.data[i]->space->id == id;
	if (is_alive)
		pads_promote(t, s, pick_thread(t, s));
	loop_start_world(t);
	t->stats.promote_ns += target_clock() - begin;
	hurry_end(&hurry);
}

static void restart(struct target *t)
{
	t->must_restart = false;
	loop_stop_world(t);
	loop_start_world(t);
}

uint64_t target_mapped_bytes(const struct target *t, pid_t pid)
{
	const struct process *p = process_find(t, pid);
	return p ? p->space->mapped : 0;
}

unsigned target_cpu_count(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

/* Reads some of all rings; returns the records read; *is_more_out: there may be more. */
static size_t drain_all(struct target *t, bool *is_more_out)
{
	*is_more_out = false;
	bool is_pressed = faults_are_pressed(t);
	if (is_pressed)
		loop_stop_world(t);
	size_t n = faults_drain(t);
	if (is_pressed)
		loop_start_world(t);
	t->now_ns = target_clock();
	for (size_t i = 0; i < t->processes.count; i++) {
		struct space *s = t->processes.data[i]->space;
		if (!s->pads)
			continue;
		size_t read = pads_drain_some(t, s);
		*is_more_out |= read >= PADS_DRAIN_BATCH;
		n += read;
		if (t->waiters > 0) {
			ring_publish(&s->pads->ring);
			pads_wake_waiters(t, s);
			if (t->waiters > 0)
				pads_unblock(t, s);
		}
	}
	return n;
}

/* Until a child stops, a signal comes, the next tick is due, or @ns have passed. */
static void sleep_until_stop(struct target *t, uint64_t ns)
{
	if (t->next_tick_ns != UINT64_MAX) {
		uint64_t now = target_clock();
		ns = MIN(ns, t->next_tick_ns > now ? t->next_tick_ns - now : 0);
	}
	const struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (t->faults)
		faults_wait(t, &ts);
	else
		sigtimedwait(&set, NULL, &ts);
	t->now_ns = target_clock();
}

#define BUSY_RECORDS 64u
#define SLEEP_BUSY_US 100u
#define SLEEP_SHARED_US 1000u
#define SLEEP_MAX_US 10000u

/*
 * Nothing to do just now. Where a CPU is ours, what a ring holds is read in small helpings, so
 * that it is still near; where it is the program's, in large ones, for each turn takes it away.
 * Never spins: a sleep costs less than the reader's time, and the line behind the head is left alone.
 */
static void idle(struct target *t, size_t records)
{
	unsigned cpus = target_cpu_count(),
		 least = cpus > t->thread_count ? SLEEP_BUSY_US : SLEEP_SHARED_US;
	if (records >= BUSY_RECORDS)
		t->idle_us = least;
	else
		t->idle_us = MIN(MAX(2 * t->idle_us, least), SLEEP_MAX_US);
	sleep_until_stop(t, (cpus == 1 ? SLEEP_MAX_US : t->idle_us) * 1000ull);
}

static bool has_rings(const struct target *t)
{
	if (t->faults)
		return true;
	for (size_t i = 0; i < t->processes.count; i++) {
		if (t->processes.data[i]->space->pads)
			return true;
	}
	return false;
}

#define STOPS_IN_A_ROW 32

/* One round with rings: the stops that wait, then the records, then rest. */
static int step_with_rings(struct target *t)
{
	int rc = 0, stops = 0;
	while (stops < STOPS_IN_A_ROW && !t->promote && (rc = loop_step(t, true)) == 0)
		stops++;
	bool is_more;
	size_t records = drain_all(t, &is_more);
	if (rc == -EAGAIN && stops == 0 && !is_more)
		idle(t, records);
	return rc == -ECHILD ? rc : 0;
}

/* One stop. With something due at a time the wait ends then: SIGCHLD is blocked, so none is missed. */
static int step_without_rings(struct target *t)
{
	if (t->next_tick_ns == UINT64_MAX)
		return loop_step(t, false);
	int rc = loop_step(t, true);
	if (rc == -EAGAIN)
		sleep_until_stop(t, UINT64_MAX);
	return rc;
}

#define WHOLE_ROUNDS 256 /* a program that allocates faster than we read must not keep us */

/* Who looks now sees all that happened until now. */
static void drain_whole(struct target *t)
{
	bool is_more = true;
	for (int i = 0; i < WHOLE_ROUNDS && is_more; i++)
		drain_all(t, &is_more);
}

void target_run(struct target *t)
{
	while (t->processes.count > 0) {
		if (t->now_ns >= t->next_tick_ns)
			sample_run_timers(t);
		int rc = has_rings(t) ? step_with_rings(t) : step_without_rings(t);
		if (rc == -ECHILD)
			break;
		if (t->promote)
			promote(t);
		if (t->must_restart)
			restart(t);
		if (wake_flag) {
			wake_flag = 0;
			drain_whole(t);
			if (t->sink.poll && t->sink.poll(t->sink.ctx))
				break;
		}
	}
}

enum attach_problem target_refusal(const struct target *t)
{
	return t->refusal;
}

bool target_exit_status(const struct target *t, int *status_out)
{
	if (t->has_status)
		*status_out = t->status;
	return t->has_status;
}

pid_t target_first_pid(const struct target *t)
{
	return t->first_pid;
}

unsigned target_process_count(const struct target *t)
{
	return (unsigned)t->processes.count;
}

int target_fault_error(const struct target *t)
{
	return t->fault_error;
}

uint64_t target_lost_faults(const struct target *t, bool *user_only_out)
{
	*user_only_out = faults_are_of_user_code(t);
	return faults_lost(t);
}

const struct target_stats *target_stats(const struct target *t)
{
	return &t->stats;
}
