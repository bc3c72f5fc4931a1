/*
 * The ptrace requests, checked. Register sets go through PTRACE_GETREGSET with
 * NT_PRSTATUS, which every CPU has.
 */
#include "tracee/os/ptrace.h"

#include <elf.h>
#include <errno.h>
#include <linux/filter.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "base/globals.h"

#define SEIZE_TIMEOUT_NS 20000000

static int request(enum __ptrace_request req, pid_t tid, uintptr_t addr, uintptr_t data)
{
	return ptrace(req, tid, (void *)addr, (void *)data) < 0 ? -errno : 0;
}

static void on_late(int sig)
{
	(void)sig;
	if (globals.seize.may_be_late)
		siglongjmp(globals.seize.too_late, 1);
}

void ptrace_limit_seize(bool is_limited)
{
	struct seize_globals *g = &globals.seize;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1};
	const struct itimerspec period = {{0, SEIZE_TIMEOUT_NS}, {0, SEIZE_TIMEOUT_NS}};
	struct sigaction sa = {.sa_handler = is_limited ? on_late : SIG_IGN};
	sigemptyset(&sa.sa_mask);
	if (g->has_timer)
		timer_delete(g->timer);
	sigaction(event.sigev_signo, &sa, NULL);
	g->has_timer = is_limited && timer_create(CLOCK_MONOTONIC, &event, &g->timer) == 0;
	if (g->has_timer)
		timer_settime(g->timer, 0, &period, NULL);
}

int ptrace_seize(pid_t tid, unsigned long options)
{
	if (sigsetjmp(globals.seize.too_late, 1) != 0) {
		globals.seize.may_be_late = 0;
		return -ETIMEDOUT;
	}
	globals.seize.may_be_late = 1;
	int rc = request(PTRACE_SEIZE, tid, 0, options);
	globals.seize.may_be_late = 0;
	return rc;
}

/* For a process that we do not trace, the kernel itself has ESRCH. */
bool ptrace_is_allowed(void)
{
	return ptrace(PTRACE_DETACH, getpid(), NULL, NULL) != 0 && errno == ESRCH;
}

bool ptrace_is_tracee(pid_t tid)
{
	siginfo_t info;
	return waitid(P_PID, (id_t)tid, &info,
		      WEXITED | WSTOPPED | WNOWAIT | WNOHANG | __WALL) == 0 ||
	       errno != ECHILD;
}

int ptrace_interrupt(pid_t tid)
{
	return request(PTRACE_INTERRUPT, tid, 0, 0);
}

int ptrace_cont(pid_t tid, int sig)
{
	return request(PTRACE_CONT, tid, 0, (uintptr_t)sig);
}

int ptrace_cont_syscall(pid_t tid, int sig)
{
	return request(PTRACE_SYSCALL, tid, 0, (uintptr_t)sig);
}

int ptrace_step(pid_t tid, int sig)
{
	return request(PTRACE_SINGLESTEP, tid, 0, (uintptr_t)sig);
}

int ptrace_listen(pid_t tid)
{
	return request(PTRACE_LISTEN, tid, 0, 0);
}

int ptrace_detach(pid_t tid, int sig)
{
	return request(PTRACE_DETACH, tid, 0, (uintptr_t)sig);
}

int ptrace_get_regs(pid_t tid, struct arch_regs *out)
{
	struct iovec iov = {out->word, sizeof(out->word)};
	return request(PTRACE_GETREGSET, tid, NT_PRSTATUS, (uintptr_t)&iov);
}

int ptrace_set_regs(pid_t tid, const struct arch_regs *regs)
{
	struct iovec iov = {(void *)regs->word, sizeof(regs->word)};
	return request(PTRACE_SETREGSET, tid, NT_PRSTATUS, (uintptr_t)&iov);
}

int ptrace_set_word(pid_t tid, unsigned index, uint64_t value)
{
	if (arch_native->set_word)
		return request(arch_native->set_word, tid, index * sizeof(uint64_t), value);
	struct arch_regs regs;
	int rc = ptrace_get_regs(tid, &regs);
	if (rc != 0)
		return rc;
	regs.word[index] = value;
	return ptrace_set_regs(tid, &regs);
}

int ptrace_syscall_op(pid_t tid)
{
	struct __ptrace_syscall_info info;
	long n = ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof(info), &info);
	return n < 0 ? -errno : info.op;
}

int ptrace_event_message(pid_t tid, unsigned long *out)
{
	return request(PTRACE_GETEVENTMSG, tid, 0, (uintptr_t)out);
}

bool ptrace_is_at_exit(pid_t tid)
{
	siginfo_t info;
	return ptrace_get_siginfo(tid, &info) == 0 &&
	       info.si_code == (SIGTRAP | PTRACE_EVENT_EXIT << 8);
}

int ptrace_get_siginfo(pid_t tid, siginfo_t *out)
{
	return request(PTRACE_GETSIGINFO, tid, 0, (uintptr_t)out);
}

int ptrace_set_siginfo(pid_t tid, const siginfo_t *info)
{
	return request(PTRACE_SETSIGINFO, tid, 0, (uintptr_t)info);
}

int ptrace_get_sigmask(pid_t tid, uint64_t *out)
{
	return request(PTRACE_GETSIGMASK, tid, sizeof(*out), (uintptr_t)out);
}

int ptrace_set_sigmask(pid_t tid, uint64_t mask)
{
	return request(PTRACE_SETSIGMASK, tid, sizeof(mask), (uintptr_t)&mask);
}

int ptrace_get_filter(pid_t tid, unsigned index, struct sock_filter *out)
{
	long n = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)(uintptr_t)index, out);
	return n < 0 ? -errno : n > BPF_MAXINSNS ? -E2BIG : (int)n;
}
