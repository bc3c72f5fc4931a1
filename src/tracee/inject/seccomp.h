/* Whether seccomp filters allow a thread to make system calls for us. */
#ifndef PTMEM_TRACEE_INJECT_SECCOMP_H
#define PTMEM_TRACEE_INJECT_SECCOMP_H

#include <stdbool.h>
#include <sys/types.h>

struct address_space;
struct seccomp_refusal; /* state/target_internal.h */
struct target;
struct thread;

#define SECCOMP_FORBIDS "a seccomp filter forbids " /* a call */

/* The number of filters that apply to @tid; -1 if the kernel does not report it. */
int seccomp_count_filters(pid_t tid);
/*
 * Whether calls may be injected into @tid, which is stopped: all its filters are known to allow
 * those of injected_calls.h. If not, *why_out says why; it may be NULL.
 */
bool seccomp_allows_injection(const struct target *t, pid_t tid, struct seccomp_refusal *why_out);
/* Like thread_pick(), but a thread into which calls may be injected, if one is found. */
struct thread *seccomp_pick_thread(struct target *t, struct address_space *s);

#endif
