/*
 * Wait statuses of seized threads; ptrace(2). With PTRACE_SEIZE every event has
 * its own code in status >> 16, and a group stop is a PTRACE_EVENT_STOP with one of the four stop
 * signals.
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

bool stop_is_stopping(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

static enum stop_kind event_kind(int event)
{
	switch (event) {
	case PTRACE_EVENT_FORK: return STOP_FORK;
	case PTRACE_EVENT_VFORK: return STOP_VFORK;
	case PTRACE_EVENT_CLONE: return STOP_CLONE;
	case PTRACE_EVENT_VFORK_DONE: return STOP_VFORK_DONE;
	case PTRACE_EVENT_EXEC: return STOP_EXEC;
	case PTRACE_EVENT_EXIT: return STOP_EXIT;
	case PTRACE_EVENT_SECCOMP: return STOP_SECCOMP;
	}
	return STOP_OTHER;
}

struct stop stop_decode(int status)
{
	if (WIFEXITED(status))
		return (struct stop){STOP_EXITED, WEXITSTATUS(status)};
	if (WIFSIGNALED(status))
		return (struct stop){STOP_KILLED, WTERMSIG(status)};
	if (!WIFSTOPPED(status))
		return (struct stop){STOP_OTHER, status};
	int sig = WSTOPSIG(status), event = status >> 16;
	if (event == PTRACE_EVENT_STOP)
		return (struct stop){stop_is_stopping(sig) ? STOP_GROUP : STOP_INTERRUPT, sig};
	if (event != 0)
		return (struct stop){event_kind(event), event};
	if (sig == (SIGTRAP | 0x80))
		return (struct stop){STOP_SYSCALL, 0};
	return (struct stop){STOP_SIGNAL, sig};
}

/* Waits for stops with waitid and WNOWAIT, or for SIGCHLD, which is blocked. */

bool wait_for_child(unsigned ms)
{
	const struct timespec pause = {0, ms * 1000000l};
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	return sigtimedwait(&set, NULL, &pause) == SIGCHLD;
}

int wait_peek(pid_t tid, bool no_wait, struct wait_report *out)
{
	siginfo_t info = {0};
	if (waitid(tid ? P_PID : P_ALL, (id_t)tid, &info,
		   WEXITED | WSTOPPED | WNOWAIT | __WALL | (no_wait ? WNOHANG : 0)) != 0)
		return -errno;
	if (info.si_pid == 0)
		return -EAGAIN;
	out->tid = info.si_pid;
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
		return waitpid(info.si_pid, &out->status, __WALL) == info.si_pid ? 0 : -EAGAIN;
	out->status = info.si_status << 8 | 0x7f; /* in waitpid's format */
	return 0;
}

/*
 * The ptrace requests, checked. Register sets go through PTRACE_GETREGSET with
 * NT_PRSTATUS, which every CPU has.
 */

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

#define MORE_WORDS ARRAY_SIZE(arch_native->more_words)

/* Word @i of those that NT_PRSTATUS does not have. */
static int get_more(pid_t tid, size_t i, struct arch_regs *regs)
{
	const size_t size = arch_native->more_words[i].size;
	int64_t value = 0;
	struct iovec iov = {&value, size};
	int rc = request(PTRACE_GETREGSET, tid, arch_native->more_words[i].note, (uintptr_t)&iov);
	if (rc == 0)
		regs->word[arch_native->more_words[i].word] =
			(uint64_t)(size == sizeof(int32_t) ? (int32_t)value : value);
	return rc;
}

static int set_more(pid_t tid, size_t i, const struct arch_regs *regs)
{
	uint64_t value = regs->word[arch_native->more_words[i].word];
	struct iovec iov = {&value, arch_native->more_words[i].size};
	if (!arch_native->more_words[i].is_written)
		return 0;
	return request(PTRACE_SETREGSET, tid, arch_native->more_words[i].note, (uintptr_t)&iov);
}

int ptrace_get_regs(pid_t tid, struct arch_regs *out)
{
	struct iovec iov = {out->word, sizeof(out->word)};
	int rc = request(PTRACE_GETREGSET, tid, NT_PRSTATUS, (uintptr_t)&iov);
	for (size_t i = 0; rc == 0 && i < MORE_WORDS && arch_native->more_words[i].note; i++)
		rc = get_more(tid, i, out);
	return rc;
}

int ptrace_set_regs(pid_t tid, const struct arch_regs *regs)
{
	struct iovec iov = {(void *)regs->word, sizeof(regs->word)};
	int rc = request(PTRACE_SETREGSET, tid, NT_PRSTATUS, (uintptr_t)&iov);
	for (size_t i = 0; rc == 0 && i < MORE_WORDS && arch_native->more_words[i].note; i++)
		rc = set_more(tid, i, regs);
	return rc;
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

bool ptrace_is_call_step(const siginfo_t *info)
{
	return arch_native->sends_call_step && info->si_code == SI_USER && info->si_pid == 0;
}

bool ptrace_has_pending_trap(pid_t tid)
{
	enum { PART = 16 };
	siginfo_t list[PART];
	struct __ptrace_peeksiginfo_args args = {.nr = PART};
	for (;;) {
		long n = ptrace(PTRACE_PEEKSIGINFO, tid, &args, list);
		for (long i = 0; i < n; i++) {
			if (list[i].si_signo == SIGTRAP &&
			    (list[i].si_code > 0 || ptrace_is_call_step(&list[i])))
				return true;
		}
		if (n < PART)
			return false;
		args.off += PART;
	}
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
