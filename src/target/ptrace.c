/*
 * The ptrace requests, checked. Register sets go through PTRACE_GETREGSET with
 * NT_PRSTATUS, which every CPU has.
 */
#include "target/ptrace.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

static int request(enum __ptrace_request req, pid_t tid, uintptr_t addr, uintptr_t data)
{
	return ptrace(req, tid, (void *)addr, (void *)data) < 0 ? -errno : 0;
}

int ptrace_seize(pid_t tid, unsigned long options)
{
	return request(PTRACE_SEIZE, tid, 0, options);
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
	return request(PTRACE_POKEUSER, tid, index * sizeof(uint64_t), value);
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
