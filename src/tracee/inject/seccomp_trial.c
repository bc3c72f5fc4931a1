/*
 * Makes the calls of injected_calls.h in a child process, in the order in which a target would make
 * them. A filter that forbids one kills the child or makes the call fail.
 *
 * A filter may also ask another process (SECCOMP_RET_USER_NOTIF), whose answer may be another one
 * the next time. Such filters have a listener. The kernel accepts one listener for all filters of a
 * thread (EBUSY), so the child knows whether there is one by adding a filter with a listener.
 */
#include "tracee/inject/seccomp_trial.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracee/inject/injected_calls.h"
#include "tracee/inject/seccomp.h"
#include "tracee/state/target_internal.h"

#define SIZE 4096u
#define MAX_SECONDS 10u

/* How far the child is, in memory shared with it: a call, or one of these. */
enum { STEP_BEGIN = INJECTED_CALLS, STEP_LISTENER, STEP_DONE };

/* In the child: makes a call, with @args where they are not the same each time. */
static long try(volatile int *step, enum injected_call_id id, const uint64_t args[6])
{
	const struct injected_call *c = &injected_calls[id];
	uint64_t a[6];
	*step = (int)id;
	for (unsigned i = 0; i < 6; i++)
		a[i] = c->known >> i & 1 ? c->arg[i] : args[i];
	return syscall(c->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static bool has_listener(void)
{
	struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	const struct sock_fprog program = {1, code};
	const unsigned op = SECCOMP_SET_MODE_FILTER, flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	long rc = syscall(SYS_seccomp, op, flags, &program);
	return rc < 0 && errno != EINVAL; /* before Linux 5.0 */
}

static bool try_mappings(volatile int *step)
{
	const uint64_t none[6] = {0, SIZE};
	long at = try(step, CALL_MAP_HANDLER, none);
	const uint64_t code[6] = {(uint64_t)at, SIZE}, name[6] = {(uint64_t)(uintptr_t) ""};
	if (at < 0 || try(step, CALL_UNMAP, code) != 0 || try(step, CALL_MAP_AREA, code) != at ||
	    try(step, CALL_MAP_CODE, none) < 0)
		return false;
	long fd = try(step, CALL_CREATE_FILE, name);
	if (fd < 0 && errno == EINVAL)
		fd = try(step, CALL_CREATE_FILE_OLD, name);
	const uint64_t file[6] = {0, SIZE, 0, 0, (uint64_t)fd};
	at = fd < 0 ? -1 : try(step, CALL_MAP_FILE, file);
	const uint64_t over[6] = {(uint64_t)at, SIZE, 0, 0, (uint64_t)fd},
		       close_args[6] = {(uint64_t)fd};
	return at >= 0 && try(step, CALL_MAP_FILE_OVER, over) == at &&
	       try(step, CALL_CLOSE, close_args) == 0 && try(step, CALL_BRK, none) > 0;
}

static void on_signal(int sig)
{
	(void)sig;
}

/* The handler of ptmem's ends with rt_sigreturn, as this one does. */
static bool try_signals(volatile int *step)
{
	const struct sigaction action = {.sa_handler = on_signal};
	siginfo_t info = {.si_signo = SIGTRAP, .si_code = SI_QUEUE};
	const uint64_t mask = 1ull << (SIGTRAP - 1);
	sigset_t empty;
	*step = CALL_SET_ACTION;
	if (sigaction(SIGTRAP, &action, NULL) != 0)
		return false;
	const uint64_t block[6] = {SIG_SETMASK, (uint64_t)(uintptr_t)&mask}, none[6] = {0};
	if (try(step, CALL_SET_MASK, block) != 0)
		return false;
	long pid = try(step, CALL_GET_PROCESS, none);
	long tid = pid > 0 ? try(step, CALL_GET_THREAD, none) : -1;
	const uint64_t to[6] = {(uint64_t)pid, (uint64_t)tid, 0, (uint64_t)(uintptr_t)&info};
	if (tid < 0 || try(step, CALL_SEND_SIGNAL, to) != 0)
		return false;
	*step = CALL_END_SIGNAL;
	sigemptyset(&empty);
	return sigprocmask(SIG_SETMASK, &empty, NULL) == 0;
}

ATTR_NORETURN static void run_child(volatile int *step)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* a filter that kills must not leave a core file */
	signal(SIGALRM, SIG_DFL);
	alarm(MAX_SECONDS);
	*step = STEP_LISTENER;
	if (!has_listener() && try_mappings(step) && try_signals(step))
		*step = STEP_DONE;
	_exit(0);
}

/* Where the child ended. */
static int run(void)
{
	int *step = mmap(NULL, sizeof(*step), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			 -1, 0);
	if (step == MAP_FAILED)
		return STEP_BEGIN;
	*step = STEP_BEGIN;
	pid_t pid = fork();
	if (pid == 0)
		run_child(step);
	int status = -1;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	int end = *step;
	munmap(step, sizeof(*step));
	return end == STEP_DONE && status != 0 ? STEP_BEGIN : end;
}

void seccomp_trial_run(struct target *t)
{
	struct inherited_filters *f = &t->inherited;
	*f = (struct inherited_filters){.count = seccomp_count_filters(gettid())};
	f->refusal.call = "";
	if (f->count <= 0)
		return;
	int end = run();
	if (end == STEP_LISTENER)
		f->refusal.reason = "a seccomp filter may ask another process";
	else if (end >= 0 && end < INJECTED_CALLS)
		f->refusal = (struct seccomp_refusal){SECCOMP_FORBIDS, injected_calls[end].name};
	else if (end != STEP_DONE)
		f->refusal.reason = "its seccomp filter could not be tried";
}
