/*
 * Start, attach and the public face of the target stage; target_run.c and target_leave.c have
 * the rest of its life.
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
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
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
#include "target/syscall_sites.h"
#include "target/thread.h"

/* Where no function is watched, threads and (unless they are followed) children are let be. */
#define FEW_OPTIONS (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT)
#define TRACE_OPTIONS \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | \
	 PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_TRACESECCOMP | \
	 PTRACE_O_TRACEVFORKDONE)

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

/* Each process that lives takes two files. The started program keeps its own limit. */
static void raise_limit_of_files(struct rlimit *old)
{
	if (getrlimit(RLIMIT_NOFILE, old) != 0)
		*old = (struct rlimit){0, 0};
	const struct rlimit most = {old->rlim_max, old->rlim_max};
	if (old->rlim_max > old->rlim_cur)
		setrlimit(RLIMIT_NOFILE, &most);
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
	raise_limit_of_files(&t->files);
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
	if (t->options.file_signal)
		sigaction(SIGXFSZ, t->options.file_signal, NULL);
	sigprocmask(SIG_SETMASK, &t->signals.mask, NULL);
	if (t->files.rlim_max > 0)
		setrlimit(RLIMIT_NOFILE, &t->files);
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

static bool is_ours(pid_t tid)
{
	struct proc_status st;
	return proc_status_read(tid, &st) == 0 && st.tracer == getpid();
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
		if (err == -ETIMEDOUT && !is_ours(tid)) {
			found++; /* once more when those that have stopped were served */
			break;
		}
		if (err != 0 && err != -ETIMEDOUT) {
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
	ptrace_set_patience(true);
	do {
		p = process_find(t, pid); /* it may end while it is stopped */
		found = p ? seize_pass(t, p) : -ESRCH;
		if (p)
			loop_stop_world(t);
		while (p && loop_step(t, true) == 0)
			; /* the ends of those that count as halted, which an execve waits for */
	} while (found > 0);
	ptrace_set_patience(false);
	p = process_find(t, pid);
	return found < 0 ? found : p && p->threads > 0 ? 0 : -ESRCH;
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

int target_attach(struct target *t, pid_t pid, enum attach_problem *problem_out, long *detail_out)
{
	guard_await(pid);
	int rc = attach_check(pid, t->arch, problem_out, detail_out);
	if (rc != 0)
		return rc;
	guard_recover(pid);
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
		guard_install(t, s, thread_pick(t, s));
		rc = install_probes(t, s, thread_pick(t, s));
		if (rc == -ENOENT)
			*problem_out = ATTACH_NO_PROBES;
	}
	if (rc != 0)
		target_undo_attach(t, pid);
	else
		loop_start_world(t);
	uint64_t pause = target_clock() - begin;
	hurry_end(&hurry);
	if (rc != 0)
		return rc;
	s->pauses.attach_ns = t->stats.attach_ns = pause;
	*problem_out = ATTACH_OK;
	return 0;
}

/* -- all spaces -- */

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

bool target_has_space(const struct target *t, uint32_t id)
{
	for (size_t i = 0; i < t->processes.count; i++) {
		if (t->processes.data[i]->space->id == id)
			return true;
	}
	return false;
}

static void catch_up(void *ctx, struct space *s)
{
	pads_catch_up(ctx, s);
}

void target_catch_up(struct target *t)
{
	target_each(t, catch_up, t);
}

uint64_t target_inspect(struct target *t, void (*fn)(void *ctx, struct space *s), void *ctx)
{
	uint64_t begin = target_clock();
	t->now_ns = begin;
	loop_stop_world(t);
	target_catch_up(t);
	target_each(t, fn, ctx);
	loop_start_world(t);
	return target_clock() - begin;
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

uint64_t target_mapped_bytes(const struct target *t, pid_t pid)
{
	const struct process *p = process_find(t, pid);
	return p ? p->space->mapped : 0;
}
