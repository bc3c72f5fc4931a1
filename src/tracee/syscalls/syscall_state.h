/* A thread's place in a system call. */
#ifndef PTMEM_TRACEE_SYSCALLS_SYSCALL_STATE_H
#define PTMEM_TRACEE_SYSCALLS_SYSCALL_STATE_H

#include "base/alloc.h"
#include "tracee/state/thread.h"
#include "tracee/syscalls/mapping.h"

struct syscall_state {
	bool awaits_exit;         /* a filter stopped it at the entry: the exit is wanted, too */
	bool is_inside;           /* between entry and exit (only where the kernel does not say) */
	bool is_rewinding;        /* its call was cancelled, to be repeated later */
	bool has_call;            /* call is one that is watched */
	taddr_t site;             /* it is in that one's stub, before the call's entry; 0 = not */
	bool makes_code;          /* call makes memory executable (SYSCALLS_SITES) */
	bool is_flushed;          /* what call takes away was reported already */
	struct mapping_call call; /* of has_call and makes_code */
};


/* That of @th; thread_remove frees it. */
static inline struct syscall_state *syscall_state(struct thread *th)
{
	if (!th->syscall)
		th->syscall = xcalloc(1, sizeof(*th->syscall));
	return th->syscall;
}

#endif
