/*
 * The system calls that threads of the target make for ptmem, and whether seccomp filters allow
 * them: injected calls, and those of code that ptmem puts there (arch/trap_handler.h). Pads make
 * none. filter_allows evaluates a filter, a program in classic BPF.
 */
#ifndef PTMEM_TRACEE_INJECT_SECCOMP_H
#define PTMEM_TRACEE_INJECT_SECCOMP_H

#include <fcntl.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* of userfaultfd(2): UFFD_USER_MODE_ONLY, since Linux 5.11, which needs no privilege */
#define WATCH_WRITES_FLAGS (O_CLOEXEC | O_NONBLOCK | 1)

/* Memory of ours for a moment, all of which is there. */
#define SCRATCH_SIZE (UINT64_C(256) << 10)
#define SCRATCH_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_POPULATE)

#define FILTER_WORDS 16u /* of struct seccomp_data */

/* The call: struct seccomp_data in words of 32 bits, of which some are known. */
struct filter_input {
	uint32_t word[FILTER_WORDS];
	uint32_t known; /* bit N: word[N] */
};

/*
 * Whether the filter allows the call, whatever the unknown words are: each path ends in
 * SECCOMP_RET_ALLOW or SECCOMP_RET_LOG. False if the program is not one that the kernel accepts.
 */
bool filter_allows(const struct sock_filter *code, size_t count, const struct filter_input *input);

/*
 * The system calls that threads of the target make for ptmem: injected ones, and those of code that
 * ptmem puts there (arch/trap_handler.h). Pads make none.
 */

struct sock_filter;

enum injected_call_id {
	CALL_MAP_HANDLER,
	CALL_UNMAP,
	CALL_MAP_AREA,
	CALL_MAP_CODE,
	CALL_CREATE_FILE,
	CALL_CREATE_FILE_OLD, /* if the kernel has no MFD_NOEXEC_SEAL */
	CALL_MAP_FILE,
	CALL_MAP_FILE_OVER,
	CALL_CLOSE,
	CALL_BRK,
	CALL_SET_ACTION,
	CALL_SET_MASK,
	CALL_GET_PROCESS,
	CALL_GET_THREAD,
	CALL_SEND_SIGNAL,
	CALL_END_SIGNAL,
	/* from here on: not needed to profile a process, and only made in those without filters */
	CALLS_WITH_FILTERS,
	CALL_WATCH_WRITES = CALLS_WITH_FILTERS,
	CALL_MAP_SCRATCH,
	CALL_OPEN_SELF,
	CALL_ADVISE,
	CALL_ADVISE_MANY,
	INJECTED_CALLS
};

struct injected_call {
	const char *name;
	long number;
	uint32_t known; /* bit N: arg[N] always has this value */
	uint64_t arg[6];
};

extern const struct injected_call injected_calls[INJECTED_CALLS];

/* Whether the call is one of them. */
bool injected_calls_has(long number, const uint64_t args[6]);
/* The first that the filter does not allow in a program for @audit_arch; NULL = it allows all. */
const struct injected_call *injected_calls_find_forbidden(const struct sock_filter *filter,
							  size_t count, uint32_t audit_arch);

/* Whether seccomp filters allow a thread to make system calls for us. */

struct address_space;
struct seccomp_refusal; /* state/target_state.h */
struct target;
struct thread;

#define SECCOMP_FORBIDS "a seccomp filter forbids " /* a call */

/* The number of filters that apply to @tid; -1 if the kernel does not report it. */
int seccomp_count_filters(pid_t tid);
/*
 * Whether calls may be injected into @tid, which is stopped: all its filters are known to allow
 * those that ptmem injects. If not, *why_out says why; it may be NULL.
 */
bool seccomp_allows_injection(const struct target *t, pid_t tid, struct seccomp_refusal *why_out);
/* Like thread_pick(), but a thread into which calls may be injected, if one is found. */
struct thread *seccomp_pick_thread(struct target *t, struct address_space *s);

/* Whether the seccomp filters of ptmem itself allow the calls that it injects. */

/*
 * Before ptmem forks a child that is to execute the program: if ptmem has filters, a child process
 * tries the calls. Fills in t->inherited.
 */
void seccomp_trial_run(struct target *t);

#endif
