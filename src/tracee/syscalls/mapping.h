/*
 * What a system call does to the mappings, from its number, arguments and result:
 * pure, no target. Rules: spec/massif.md 2.11; mmap(2), mremap(2), brk(2).
 *
 * A change is at most one range that went and one that came, in that order. They
 * are in bytes for brk and in whole pages for all others.
 */
#ifndef PTMEM_TRACEE_SYSCALLS_MAPPING_H
#define PTMEM_TRACEE_SYSCALLS_MAPPING_H

#include "base/types.h"
#include "tracee/state/heap_event.h"

struct target_options;

struct mapping_range {
	taddr_t start, end; /* start == end: none */
};

struct mapping_call {
	long number;        /* of the system call */
	uint64_t arg[6];
	taddr_t program_break; /* before a brk; 0 = unknown */
	/*
	 * shmat, shmdt, io_setup, io_destroy: the mapping in question, as the kernel shows it
	 * (shmdt, io_destroy: before the call; shmat, io_setup: after it)
	 */
	struct mapping_range object;
};

struct mapping_change {
	struct mapping_range gone, come;
	enum heap_function function;
};

/* Whether a call of @number may change the mappings. */
bool mapping_is_watched(long number);

/* Whether calls of @number are watched with @o. */
bool mapping_is_wanted(const struct target_options *o, long number);

/* The numbers of calls that may change the mappings. *count_out of them. */
const long *mapping_watched(size_t *count_out);

/* Whether a call of @number may make memory executable, and whether @c does, if it succeeds. */
bool mapping_may_make_code(long number);
bool mapping_makes_code(const struct mapping_call *c);

/*
 * What @c, which makes_code and returned @result, made executable; empty: it failed. Of a shmat:
 * its first page.
 */
struct mapping_range mapping_code(const struct mapping_call *c, int64_t result);

/*
 * What the call takes away if it succeeds. Other threads may be given that range
 * again before its end is seen, so it must be known at the call's entry. For an
 * mremap that may move: the old range, all of it.
 */
struct mapping_range mapping_to_go(const struct mapping_call *c);

/* What the call did, which returned @result (as the kernel does: -errno inside). */
struct mapping_change mapping_done(const struct mapping_call *c, int64_t result);

static inline bool mapping_is_empty(struct mapping_range r)
{
	return r.start >= r.end;
}

static inline bool mapping_overlaps(struct mapping_range a, struct mapping_range b)
{
	return a.start < b.end && b.start < a.end;
}

#endif
