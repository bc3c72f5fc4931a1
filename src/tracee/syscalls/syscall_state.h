/* A thread's position in a system call. */
#ifndef PTMEM_TRACEE_SYSCALLS_SYSCALL_STATE_H
#define PTMEM_TRACEE_SYSCALLS_SYSCALL_STATE_H

#include "base/alloc.h"
#include "tracee/state/thread.h"
#include "tracee/syscalls/mapping.h"

struct syscall_state {
	bool awaits_exit;         /* a filter stopped it at the entry: stop it at the exit, too */
	bool is_inside;           /* between entry and exit (if the kernel does not tell) */
	bool is_rewinding;        /* its call was cancelled, to be repeated later */
	bool has_call;            /* call is a watched one */
	taddr_t site;             /* trap whose stub it is in, before the call's entry; 0 = none */
	bool makes_code;          /* call makes memory executable (SYSCALLS_SITES) */
	bool is_flushed;          /* what call removes was already reported */
	struct mapping_call call; /* for has_call and makes_code */
};


/* Returns the state of @th; thread_remove frees it. */
static inline struct syscall_state *syscall_state(struct thread *th)
{
	if (!th->syscall)
		th->syscall = xcalloc(1, sizeof(*th->syscall));
	return th->syscall;
}

#endif
