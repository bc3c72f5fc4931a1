/*
 * Stops at the system calls that map and unmap: brk, mmap, munmap, mremap, shmat,
 * shmdt, io_setup, io_destroy. Internal to src/tracee.
 *
 * Ways to see these calls:
 *
 *	way      for                            what stops
 *	FILTER   programs that ptmem starts     these calls alone (seccomp, RET_TRACE)
 *	SITES    attached; setuid; no seccomp   instructions that may make them (syscall_sites.h);
 *	                                        every call, entry and exit (PTRACE_SYSCALL), of a
 *	                                        process that may make calls in other places, too;
 *	                                        calls that make memory executable are watched to
 *	                                        know these in time
 *
 * The filter costs each call of the program some 10 ns, an eighth of the cheapest (getpid);
 * breakpoints cost nothing elsewhere. Nevertheless programs that ptmem starts get the filter: it
 * needs no code analysis and does not change the text, a mapping call takes two stops instead of
 * three, and analysing a libc costs more than the filter does for a million calls.
 *
 * While all threads are being stopped, a thread at a call's entry is moved back before the call. So
 * no stopped thread is at an entry, and each may be used to make calls for us.
 */
#ifndef PTMEM_TRACEE_SYSCALLS_SYSCALLS_H
#define PTMEM_TRACEE_SYSCALLS_SYSCALLS_H

#include <stdbool.h>
#include <sys/types.h>

struct arch_regs;
struct address_space;
struct target;
struct thread;
struct trap;

/* ptrace options of a program that may get the filter. */
unsigned long syscalls_seize_options(const struct target *t);
/*
 * In the child that is about to execute @program: installs the filter, if calls are watched. Call
 * it when the child is traced. Without CAP_SYS_ADMIN a filter needs no_new_privs, which is not set
 * for a program with set-user-ID or capabilities. Errors are ignored: syscalls_detect_mode in the
 * parent detects the result.
 */
void syscalls_install_filter(const struct target *t, const char *program);

/* In the parent at the program's first stop: detects which mode applies. */
void syscalls_detect_mode(struct target *t, pid_t pid);

/* @s starts to count: reads its break and its stack. @th may make calls for us; or NULL. */
void syscalls_start(struct target *t, struct address_space *s, struct thread *th);

/* Handle the stops, and resume @th. */
void syscalls_serve_seccomp(struct target *t, struct thread *th);
/* @was_interrupted: our interrupt is pending. */
void syscalls_serve(struct target *t, struct thread *th, bool was_interrupted);

/* Handles the breakpoint of a site. */
enum trap_answer syscalls_serve_site(struct target *t, struct thread *th, struct trap *trap,
				     struct arch_regs *regs);
/* A signal is about to be delivered to @th. */
void syscalls_before_signal(struct target *t, struct thread *th);

/* @th is about to exit; its memory is still there. */
void syscalls_serve_exit(struct target *t, struct thread *th);

/* @th executes a new program. */
void syscalls_forget(struct thread *th);

/* Whether @th must be resumed with PTRACE_SYSCALL. */
bool syscalls_is_watched(const struct target *t, const struct thread *th);

#endif
