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
 * The filter costs each call of the program some 10 ns, an eighth of the cheapest (getpid), and a
 * breakpoint nothing but where it is. Programs that ptmem starts have the filter all the same:
 * it depends on no analysis of code, it leaves the text alone, a call that maps costs two
 * stops instead of three, and to read a libc takes more than a million calls under the filter.
 *
 * A thread at a call's entry, while the world stops, is moved back to before the
 * call: so in a stopped world no thread is at an entry, and any of them may be used to
 * make calls for us.
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

/*
 * In the child that is about to execute @program: installs the filter. Called when
 * it is traced already. Without CAP_SYS_ADMIN a filter needs no_new_privs, which
 * is not set for a program with set-user-ID or capabilities. Errors are ignored:
 * the parent sees by syscalls_detect_mode what came of it.
 */
void syscalls_install_filter(const struct target *t, const char *program);

/* In the parent at the program's first stop: which way it is. */
void syscalls_detect_mode(struct target *t, pid_t pid);

/* @s begins to count: where its break and its stack are. @th may make calls for us; or NULL. */
void syscalls_start(struct target *t, struct address_space *s, struct thread *th);

/* The stops. They resume @th. */
void syscalls_serve_seccomp(struct target *t, struct thread *th);
/* @was_interrupted: an interrupt of ours was on its way. */
void syscalls_serve(struct target *t, struct thread *th, bool was_interrupted);

/* Serves the breakpoint of a site. */
enum trap_answer syscalls_serve_site(struct target *t, struct thread *th, struct trap *trap,
				     struct arch_regs *regs);
/* @th is about to be given a signal. */
void syscalls_before_signal(struct target *t, struct thread *th);

/* @th is about to exit; its memory is still there. */
void syscalls_serve_exit(struct target *t, struct thread *th);

/* @th executes a new program. */
void syscalls_forget(struct thread *th);

/* Whether @th must be resumed to its next system call's stop. */
bool syscalls_is_watched(const struct target *t, const struct thread *th);

#endif
