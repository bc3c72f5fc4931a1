/*
 * Decodes a wait status into data. Pure functions, no system calls, so tests can construct any
 * status.
 */
#ifndef PTMEM_TRACEE_OS_STOP_H
#define PTMEM_TRACEE_OS_STOP_H

#include "base/types.h"

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

#endif
