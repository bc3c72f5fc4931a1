/*
 * The kernel's interface for tracing: waiting for stops, decoding them, and one checked function
 * per ptrace request. Requests return 0 or -errno; -ESRCH means that the thread is gone (or not
 * stopped), a normal event that the loop handles.
 */
#ifndef PTMEM_TRACEE_OS_PTRACE_H
#define PTMEM_TRACEE_OS_PTRACE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "arch/arch.h"
#include "base/types.h"

/*
 * Decodes a wait status into data. Pure functions, no system calls, so tests can construct any
 * status.
 */

enum stop_kind {
	STOP_EXITED,     /* ended: value = exit status */
	STOP_KILLED,     /* ended: value = signal */
	STOP_SIGNAL,     /* about to get signal value; resume with it */
	STOP_GROUP,      /* group stop by signal value; resume with PTRACE_LISTEN */
	STOP_INTERRUPT,  /* PTRACE_INTERRUPT, or a new thread's first stop */
	STOP_SYSCALL,    /* entry or exit of a system call (TRACESYSGOOD) */
	STOP_FORK, STOP_VFORK, STOP_CLONE, STOP_VFORK_DONE,
	STOP_EXEC,
	STOP_EXIT,       /* about to exit, memory still exists */
	STOP_SECCOMP,    /* a seccomp filter stopped it for the tracer */
	STOP_OTHER,
};

struct stop {
	enum stop_kind kind;
	int value;
};

/* SIGSTOP and the terminal's three, whose default action stops all threads of a process. */
bool stop_is_stopping(int sig);
/* Decodes the status of waitpid for a thread that was seized. ptrace(2), "Stopped states". */
struct stop stop_decode(int status);

/* Waits for stops of traced threads. */

/* A wait status of thread @tid. */
struct wait_report {
	pid_t tid;
	int status;
};

/* Sleeps until a child stops or ends; false after @ms. SIGCHLD is blocked, so none is missed. */
bool wait_for_child(unsigned ms);

/*
 * Waits for a stop or the end of thread @tid, or of any thread if it is 0. Does not consume the
 * stop: if ptmem is killed while it handles the stop, the kernel still delivers the signal that the
 * thread had stopped for. (The signal of a consumed stop is lost with its tracer.) 0 or -errno;
 * -EAGAIN: @no_wait, and there is none.
 */
int wait_peek(pid_t tid, bool no_wait, struct wait_report *out);

struct sock_filter;

/*
 * PTRACE_SEIZE waits in the kernel while a thread of that process is in execve, which waits for the
 * ends of all others, and these may have to stop for us first. With a limit it returns -ETIMEDOUT
 * after some 20 ms; @tid may be seized nevertheless.
 */
void ptrace_limit_seize(bool is_limited);
int ptrace_seize(pid_t tid, unsigned long options);
/* Whether no seccomp filter forbids the call itself. */
bool ptrace_is_allowed(void);
/* Whether @tid is traced by us, or was and still has to be waited for. */
bool ptrace_is_tracee(pid_t tid);
int ptrace_interrupt(pid_t tid);
int ptrace_cont(pid_t tid, int sig);
int ptrace_cont_syscall(pid_t tid, int sig); /* to the next system call's entry or exit */
int ptrace_step(pid_t tid, int sig);
int ptrace_listen(pid_t tid);
int ptrace_detach(pid_t tid, int sig);
int ptrace_get_regs(pid_t tid, struct arch_regs *out);
int ptrace_set_regs(pid_t tid, const struct arch_regs *regs);
int ptrace_set_word(pid_t tid, unsigned index, uint64_t value); /* one word of arch_regs */
/*
 * Which system call stop @tid is at: PTRACE_SYSCALL_INFO_ENTRY, _EXIT, _SECCOMP or _NONE; -errno.
 */
int ptrace_syscall_op(pid_t tid);
int ptrace_event_message(pid_t tid, unsigned long *out);
/* Whether @tid is at its exit stop, which may have followed the one that was last seen. */
bool ptrace_is_at_exit(pid_t tid);
int ptrace_get_siginfo(pid_t tid, siginfo_t *out);
int ptrace_set_siginfo(pid_t tid, const siginfo_t *info);
/* Whether the SIGTRAP @info is the end of a single step over a system call (struct arch). */
bool ptrace_is_call_step(const siginfo_t *info);
/*
 * Whether the kernel has a SIGTRAP for the stopped thread @tid, for a breakpoint or a step, that is
 * not reported yet: an interrupt is reported first.
 */
bool ptrace_has_pending_trap(pid_t tid);
int ptrace_get_sigmask(pid_t tid, uint64_t *out);
int ptrace_set_sigmask(pid_t tid, uint64_t mask);
/*
 * Reads seccomp filter number @index of @tid into @out, BPF_MAXINSNS instructions; NULL = only
 * their number. 0 is the one that was added first, whatever ptrace(2) says. Returns the number of
 * instructions; -ENOENT: it has no such filter; -EACCES: not without CAP_SYS_ADMIN, and not if the
 * caller has filters itself.
 */
int ptrace_get_filter(pid_t tid, unsigned index, struct sock_filter *out);

/* Masks of signals, as the kernel has them. */
#define SIGNAL_BIT(sig) (1ull << ((sig) - 1))
#define SIGTRAP_BIT SIGNAL_BIT(SIGTRAP)
#define SIGNALS_UNBLOCKABLE (SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP))

#endif
