/*
 * The effect of a system call on the mappings, computed from its number, arguments and result.
 * Rules: doc/massif.md 2.11; mmap(2), mremap(2), brk(2).
 *
 * A change removes at most one range and then adds at most one. Ranges are in bytes for brk and in
 * whole pages otherwise.
 */
#ifndef PTMEM_TRACEE_SYSCALLS_MAPPING_H
#define PTMEM_TRACEE_SYSCALLS_MAPPING_H

#include "base/alloc.h"
#include "base/types.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/thread.h"

struct target_options;

struct mapping_range {
	taddr_t start, end; /* start == end: none */
};

struct mapping_call {
	long number;        /* of the system call */
	uint64_t arg[6];
	taddr_t program_break; /* break before a brk; 0 = unknown */
	/*
	 * shmat, shmdt, io_setup, io_destroy: the affected mapping in /proc/PID/maps (shmdt,
	 * io_destroy: before the call; shmat, io_setup: after it)
	 */
	struct mapping_range object;
};

struct mapping_change {
	struct mapping_range gone, come;
	enum heap_function function;
};

/* Whether a call of @number may change the mappings. */
bool mapping_is_watched(long number);

/* Whether calls of @number are watched with options @o. */
bool mapping_is_wanted(const struct target_options *o, long number);

/* The numbers of all calls that may change the mappings, *count_out of them. */
const long *mapping_watched(size_t *count_out);

/* Whether a call of @number may make memory executable; whether @c does if it succeeds. */
bool mapping_may_make_code(long number);
bool mapping_makes_code(const struct mapping_call *c);

/*
 * The range that @c, which makes_code and returned @result, made executable; empty: it failed. For
 * shmat: the first page.
 */
struct mapping_range mapping_code(const struct mapping_call *c, int64_t result);

/*
 * What the call removes if it succeeds. The range may be reused by other threads before the end of
 * the call is seen, so it must be known at the call's entry. For an mremap that may move: the
 * complete old range.
 */
struct mapping_range mapping_removed(const struct mapping_call *c);

/* The changes made by the call, which returned @result (as the kernel does: -errno included). */
struct mapping_change mapping_done(const struct mapping_call *c, int64_t result);

static inline bool mapping_is_empty(struct mapping_range r)
{
	return r.start >= r.end;
}

static inline bool mapping_overlaps(struct mapping_range a, struct mapping_range b)
{
	return a.start < b.end && b.start < a.end;
}

/* A thread's position in a system call. */

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
