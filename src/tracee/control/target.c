/*
 * Seizes a running process: its threads are seized and interrupted, in passes over /proc/PID/task
 * until one finds no new thread. Then all are stopped.
 *
 * The process may execute a program meanwhile. A thread that was already seized reports that, and
 * stops at the first instruction of the new image (loop.c). A thread that was not takes over the
 * first thread's id unnoticed: the known first thread is gone then, and the id is seized again.
 */
#include "tracee/control/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/proc.h"
#include "tracee/control/control.h"
#include "tracee/control/faults.h"
#include "tracee/control/install.h"
#include "tracee/control/job.h"
#include "tracee/control/timers.h"
#include "tracee/guard/guardian.h"
#include "tracee/guard/sigtrap_handler.h"
#include "tracee/inject/inject.h"
#include "tracee/inject/seccomp.h"
#include "tracee/inject/stop_all.h"
#include "tracee/os/cpu_counters.h"
#include "tracee/os/own_settings.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pads.h"
#include "tracee/state/event_sink.h"
#include "tracee/state/journal.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/syscalls/syscalls.h"

/* If no function is watched, threads and (unless followed) children are not traced. */
#define FEW_OPTIONS (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT)
#define TRACE_OPTIONS \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | \
	 PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_TRACEVFORKDONE)

/* The ptrace options for seized processes. */
static unsigned long seize_options(const struct target *t)
{
	const struct target_options *o = &t->options;
	bool is_watched = !o->probes.none || o->watch.brk || o->watch.mappings || o->watch.faults;
	if (o->only_reads) /* threads may run for a moment, and create others */
		return FEW_OPTIONS | PTRACE_O_TRACECLONE;
	return is_watched || o->follow.exec ? TRACE_OPTIONS : FEW_OPTIONS;
}

static void count_instructions(struct target *t, pid_t tid)
{
	int rc = instructions_add(&t->control->counters, tid, false);
	if (rc != 0 && rc != -ESRCH)
		log_warn("the instructions of thread %d are not counted: %s", tid, strerror(-rc));
}

/*
 * Whether @tid, for which ptrace failed, needs no seizing. Dying threads and a dead leader also
 * give EPERM, but they do not allocate any more; so does a thread that the kernel has just attached
 * to us because its creator is traced, and whose event is still to come.
 */
static bool is_gone_or_ours(pid_t tid, int seize_error)
{
	return seize_error == -ESRCH || ptrace_is_tracee(tid) || proc_is_dead(tid);
}

/* While a thread takes the place of a dead leader, the id belongs to one and then to the other. */
#define SEIZE_TRIES 3

/* 0, -ENOENT if there is nothing to seize, -ETIMEDOUT during execve, or -errno. */
static int seize(struct target *t, pid_t tid)
{
	int rc = -EPERM;
	for (int i = 0; i < SEIZE_TRIES && rc == -EPERM; i++) {
		rc = ptrace_seize(tid, seize_options(t));
		if (rc == -ETIMEDOUT && ptrace_is_tracee(tid))
			return 0;
		if (rc != 0 && rc != -ETIMEDOUT && is_gone_or_ours(tid, rc))
			return -ENOENT;
	}
	return rc;
}

static void watch_faults(struct target *t, pid_t tid)
{
	int rc = t->options.watch.faults ? faults_add(t, tid, false) : 0;
	if (rc != 0 && rc != -ESRCH && t->control->fault_error == 0)
		t->control->fault_error = rc;
}

static void add_seized(struct target *t, struct process *p, pid_t tid)
{
	struct thread *th = thread_add(t, tid, p);
	th->state = THREAD_RUNNING;
	if (t->options.events.count_instructions)
		count_instructions(t, tid);
	watch_faults(t, tid);
	if (thread_interrupt(t, th) == 0)
		th->was_interrupted = true;
}

/* Whether @tid is known. Forgets a first thread whose id was taken over by an untraced one. */
static bool is_known(struct target *t, const struct process *p, pid_t tid)
{
	struct thread *th = thread_find(t, tid);
	if (!th || tid != p->pid || ptrace_is_tracee(tid))
		return th;
	thread_remove(t, th);
	return false;
}

/*
 * Whether a thread that was not seized has executed a program: it has the id of the first thread
 * then, and the one of that id that was known, perhaps as dead, does not exist any more.
 */
static bool has_executed(pid_t pid)
{
	return !ptrace_is_tracee(pid) && !proc_is_dead(pid);
}

/*
 * Seizes and interrupts the new threads of @p. Returns their number, or -errno for the first that
 * cannot be seized, and stops there: all tracers go through the threads in the same order, so of
 * two guardians the one that gets the first thread gets all of them.
 */
static int seize_pass(struct target *t, struct process *p)
{
	DIR *dir = proc_open_threads(p->pid);
	if (!dir)
		return -ESRCH;
	int found = 0, rc = 0;
	for (pid_t tid; rc == 0 && (tid = proc_next_thread(dir));) {
		if (is_known(t, p, tid))
			continue;
		int err = seize(t, tid);
		if (err == -ENOENT)
			continue;
		if (err != 0 && err != -ETIMEDOUT) {
			rc = err;
			continue;
		}
		found++;
		if (err == -ETIMEDOUT)
			break; /* again after the stopped threads were served */
		add_seized(t, p, tid);
	}
	closedir(dir);
	return rc != 0 ? rc : found;
}

int target_seize_all(struct target *t, pid_t pid)
{
	struct process *p;
	int found = 0;
	t->is_stopping = true;
	ptrace_limit_seize(true);
	do {
		p = process_find(t, pid); /* it may end while it is stopped */
		found = p ? seize_pass(t, p) : -ESRCH;
		if (p)
			stop_all(t);
		while (p && stops_serve_next(t, true) == 0)
			; /* the ends of threads that count as halted, for which an execve waits */
		p = process_find(t, pid);
	} while (found > 0 || (found == 0 && p && has_executed(pid)));
	ptrace_limit_seize(false);
	if (found < 0 || !p || p->threads == 0)
		return found < 0 ? found : -ESRCH;
	return thread_pick(t, p->space) ? 0 : -EAGAIN;
}

/*
 * Starting programs, and the public interface of src/tracee; see also attach.c, target_run.c and
 * target_leave.c.
 *
 * Start: the child waits on a pipe until it is seized, then executes the program;
 * a second pipe is closed by a successful exec, and transmits errno of a failed one. The program
 * inherits no descriptor of ours.
 */

struct target *target_new(const struct target_options *options, const struct event_sink *sink,
			  struct registry *registry)
{
	struct target *t = xcalloc(1, sizeof(*t));
	t->options = *options;
	t->sink = *sink;
	t->registry = registry;
	t->hooks = (struct target_hooks){
		.serve_stop = loop_serve,
		.before_signal = syscalls_before_signal,
		.stops_at_syscall = syscalls_is_watched,
		.serve_site = syscalls_serve_site,
		.update_modules = install_update,
		.restore_mask = trap_handler_restore_mask,
	};
	t->arch = arch_native;
	tick_clock_init(&t->ticks, t->arch);
	t->now_ns = clock_now_ns();
	pads_init(t);
	t->control = xcalloc(1, sizeof(*t->control));
	t->control->own_settings = own_settings_change();
	t->control->timers = timers_new();
	t->control->job = job_new();
	return t;
}

void target_free(struct target *t)
{
	struct thread *th;
	for_each_thread(t, th)
		thread_remove(t, th);
	while (t->processes.count > 0)
		process_remove(t, t->processes.data[0], SPACE_DETACHED);
	faults_free(t);
	pads_deinit(t);
	job_end(t);
	free(t->control->job);
	standby_free(t);
	free(t->control->timers);
	free(t->control->own_settings);
	vec_deinit(&t->control->unreadable);
	left_children_deinit(&t->control->left);
	guardian_stop(t);
	instructions_close(&t->control->counters);
	thread_table_deinit(&t->threads);
	free(t->control);
	vec_deinit(&t->processes);
	pending_stops_deinit(&t->pending);
	free(t);
}

/* -- start -- */

ATTR_NORETURN static void run_program(const struct target *t, int go_fd, int error_fd,
				      char *const argv[])
{
	char c;
	if (t->options.start.file_signal)
		sigaction(SIGXFSZ, t->options.start.file_signal, NULL);
	if (t->options.start.pipe_signal)
		sigaction(SIGPIPE, t->options.start.pipe_signal, NULL);
	own_settings_restore(t->control->own_settings);
	ssize_t n;
	while ((n = read(go_fd, &c, 1)) < 0 && errno == EINTR)
		;
	if (n == 0)
		_exit(127); /* ptmem died before it traced us */
	syscalls_install_filter(t, argv[0]);
	execvp(argv[0], argv);
	int err = errno;
	while (write(error_fd, &err, sizeof(err)) < 0 && errno == EINTR)
		;
	_exit(127);
}

/* Waits until the exec of @pid has succeeded (its stop is handled) or failed (errno from @fd). */
static int await_exec(struct target *t, pid_t pid, int fd)
{
	struct process *p = process_find(t, pid);
	while (p && p->is_execing) {
		int rc = stops_serve_next(t, false);
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
	seccomp_trial_run(t);
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
		t->first.pid = pid;
		unsigned long more = t->options.start.keep_running ? 0 : PTRACE_O_EXITKILL;
		more |= syscalls_seize_options(t);
		rc = ptrace_seize(pid, seize_options(t) | more);
	}
	if (rc == 0 && t->options.events.count_instructions)
		rc = instructions_add(&t->control->counters, pid, true);
	if (rc == 0 && t->options.watch.faults) {
		rc = faults_add(t, pid, true);
		t->control->fault_error = rc;
	}
	if (rc == 0) {
		struct process *p = process_add(t, pid, space_new(t->registry, pid));
		p->is_started = p->is_execing = true;
		struct thread *th = thread_add(t, pid, p);
		th->state = THREAD_RUNNING;
		job_begin(t);
		while (write(go[1], "", 1) < 0 && errno == EINTR)
			;
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

/* -- all spaces -- */

void target_each(struct target *t, void (*fn)(void *ctx, struct address_space *s), void *ctx)
{
	for (size_t i = 0; i < t->processes.count; i++) {
		struct address_space *s = t->processes.data[i]->space;
		bool is_first = true;
		for (size_t k = 0; k < i; k++)
			is_first &= t->processes.data[k]->space != s;
		if (!is_first || !s->sink.user || !s->watch.is_ready)
			continue;
		fn(ctx, s);
	}
}

static void catch_up(void *ctx, struct address_space *s)
{
	pads_catch_up(ctx, s);
}

void target_catch_up(struct target *t)
{
	target_each(t, catch_up, t);
}

uint64_t target_inspect(struct target *t, void (*fn)(void *ctx, struct address_space *s), void *ctx)
{
	uint64_t begin = clock_now_ns();
	t->now_ns = begin;
	stop_all(t);
	target_catch_up(t);
	target_each(t, fn, ctx);
	resume_all(t);
	return clock_now_ns() - begin;
}

/* The CPU time of @tid, ns; 0 if the kernel does not report it. */
static uint64_t run_time(pid_t tid)
{
	_cleanup_fclose_ FILE *file = proc_open(tid, "schedstat");
	unsigned long long ns = 0;

	return file && fscanf(file, "%llu", &ns) == 1 ? ns : 0;
}

struct running {
	VEC(struct { pid_t tid; uint64_t ns; }) list;
};

static void resume_wanted(struct target *t, bool (*wants)(void *ctx, pid_t tid), void *ctx,
			  struct running *out)
{
	struct thread *th;

	for_each_thread(t, th) {
		if (!th->is_held || th->stays_held || th->state == THREAD_LISTENING ||
		    th->vfork.is_waiting || !wants(ctx, th->tid))
			continue;
		int sig = th->held_signal;

		vec_add(&out->list);
		out->list.data[out->list.count - 1].tid = th->tid;
		out->list.data[out->list.count - 1].ns = run_time(th->tid);
		th->held_signal = 0;
		thread_run(t, th, sig);
	}
}

static bool has_stopped(pid_t tid)
{
	siginfo_t info = {0};
	int flags = WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL;

	return waitid(P_PID, (id_t)tid, &info, flags) != 0 || info.si_pid != 0;
}

/* Up to some microseconds may be from before the stop. */
static bool have_run(const struct running *r, uint32_t ns)
{
	for (size_t i = 0; i < r->list.count; i++)
		if (run_time(r->list.data[i].tid) < r->list.data[i].ns + ns / 2 &&
		    !has_stopped(r->list.data[i].tid))
			return false;
	return true;
}

#define WAITS_MAX 9 /* each twice as long; after 500 times the first they must be blocked */

bool target_run_threads(struct target *t, struct address_space *s,
			bool (*wants)(void *ctx, pid_t tid), void *ctx, uint32_t ns)
{
	struct running running = {0};
	uint32_t id = s->id;

	resume_wanted(t, wants, ctx, &running);
	for (int i = 0; i < WAITS_MAX && (i == 0 || !have_run(&running, ns)); i++)
		nanosleep(&(struct timespec){0, (long)ns << i}, NULL);
	vec_deinit(&running.list);
	while (stops_serve_next(t, true) == 0)
		; /* a stopped thread must not be interrupted: it would stop once more */
	stop_all(t);
	target_catch_up(t);
	return space_exists(t, id);
}

#define STEPS_MAX 400u /* most calls of malloc take less than 200 */

bool target_step_thread(struct target *t, struct address_space *s, pid_t tid, taddr_t pc,
			uint32_t *steps)
{
	const struct journal *r = s->recovery.journal;
	struct thread *th = thread_find(t, tid);

	return r && r->has_handler && !s->recovery.is_unguarded && !s->watch.is_ready && th &&
	       th->is_held && !th->is_exiting && !th->vfork.is_waiting &&
	       th->state != THREAD_LISTENING &&
	       inject_step_to(t, th, pc, STEPS_MAX, steps) == 0;
}

enum attach_problem target_refusal(const struct target *t)
{
	return t->first.refusal;
}

bool target_exit_status(const struct target *t, int *status_out)
{
	if (t->first.has_status)
		*status_out = t->first.status;
	return t->first.has_status;
}

pid_t target_first_pid(const struct target *t)
{
	return t->first.pid;
}

bool target_traces(const struct target *t, pid_t pid)
{
	return process_find(t, pid);
}

uint64_t target_records(const struct target *t)
{
	uint64_t records = t->stats.records;

	for (size_t i = 0; i < t->processes.count; i++)
		records += pads_records(t->processes.data[i]->space);
	return records;
}

bool target_is_tracing(const struct target *t)
{
	return thread_count(t) > 0;
}

unsigned target_process_count(const struct target *t)
{
	return (unsigned)t->processes.count;
}

int target_fault_error(const struct target *t)
{
	return t->control->fault_error;
}

void target_fault_report(const struct target *t, struct fault_report *out)
{
	faults_report(t, out);
}

const struct target_stats *target_stats(const struct target *t)
{
	return &t->stats;
}

uint64_t target_mapped_bytes(const struct target *t, pid_t pid)
{
	const struct process *p = process_find(t, pid);
	return p ? p->space->own.mapped : 0;
}

uint64_t target_instructions(const struct target *t)
{
	return instructions_read(&t->control->counters);
}
