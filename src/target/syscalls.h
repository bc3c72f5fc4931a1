/*
 * Stops at the system calls that map and unmap: brk, mmap, munmap, mremap, shmat,
 * shmdt, io_setup, io_destroy. Internal to src/target.
 *
 * Ways to be told:
 *
 *	way      for                            what stops
 *	FILTER   programs that ptmem starts     these calls alone (seccomp, RET_TRACE)
 *	SITES    attached; setuid; no seccomp   instructions that may make them (syscall_sites.h); every
 *	                                        call, entry and exit (PTRACE_SYSCALL), of a process that
 *	                                        may make calls in other places, too; calls that make
 *	                                        memory executable are watched to know these in time
 *
 * The filter costs each call of the program some 10 ns, an eighth of the cheapest (getpid), and a
 * breakpoint nothing but where it stands. Programs that ptmem starts have the filter all the same: what
 * it tells rests on no reading of code, it leaves the text alone, a call that maps costs two stops
 * instead of three, and to read a libc takes more than a million calls under the filter.
 *
 * A thread at a call's entry, while the world stops, is taken back to before the
 * call: so a stopped world has nobody at an entry, and any thread may be used to
 * make calls for us.
 */
#ifndef PTMEM_TARGET_SYSCALLS_H
#define PTMEM_TARGET_SYSCALLS_H

#include "target/mapping.h"

struct arch_regs;
struct space;
struct target;
struct thread;
struct trap;

enum syscalls_way { SYSCALLS_NONE, SYSCALLS_FILTER, SYSCALLS_SITES };

/* A thread's place in a system call. */
struct syscall_state {
	bool awaits_exit;         /* a filter stopped it at the entry: the exit is wanted, too */
	bool is_inside;           /* between entry and exit (only where the kernel does not say) */
	bool is_rewinding;        /* its call was cancelled, to be made anew later */
	bool has_call;            /* call is one that is watched */
	taddr_t site;             /* it is in that one's stub, before the call's entry; 0 = not */
	bool makes_code;          /* call makes memory executable (SYSCALLS_SITES) */
	bool is_flushed;          /* what call takes away was reported already */
	struct mapping_call call; /* of has_call and makes_code */
};

/*
 * In the child that is about to execute @program: installs the filter. Called when
 * it is traced already. Without CAP_SYS_ADMIN a filter needs no_new_privs, which
 * is not set for a program with set-user-ID or capabilities. Errors are ignored:
 * the parent sees by syscalls_settle what came of it.
 */
void syscalls_install_filter(const struct target *t, const char *program);

/* In the parent at the program's first stop: which way it is. */
void syscalls_settle(struct target *t, pid_t pid);

/*
 * Whether the kernel's filter of ours is the only one
 * of @tid (or there is none): calls may be injected.
 */
bool syscalls_may_inject(const struct target *t, pid_t tid);

/* Whether calls of @number are watched. */
bool syscalls_is_wanted(const struct target *t, long number);

/* @s begins to count: where its break and its stack are. @th may make calls for us; or NULL. */
void syscalls_start(struct target *t, struct space *s, struct thread *th);

/* The stops. They resume @th. */
void syscalls_serve_seccomp(struct target *t, struct thread *th);
/* @was_interrupted: an interrupt of ours was on its way. */
void syscalls_serve(struct target *t, struct thread *th, bool was_interrupted);

/* @th met the breakpoint @trap of a site with @regs. */
void syscalls_serve_site(struct target *t, struct thread *th, const struct trap *trap,
			 const struct arch_regs *regs);
/* @th is about to be given a signal. */
void syscalls_before_signal(struct target *t, struct thread *th);

/* @th is about to exit; its memory is still there. */
void syscalls_serve_exit(struct target *t, struct thread *th);

/* @th executes a new program. */
void syscalls_forget(struct thread *th);

/* Whether @th must be resumed to its next system call's stop. */
bool syscalls_is_watched(const struct target *t, const struct thread *th);

#endif
