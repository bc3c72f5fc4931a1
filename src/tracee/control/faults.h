/*
 * All page faults of the target, through perf_event_open: the kernel writes registers and the top
 * of the stack of every fault into rings that are read here. Internal to src/tracee.
 *
 *	thread x CPU -> two events (minor, major) -> the CPU's two rings -> HEAP_FAULT
 *
 * New threads and processes inherit the events. Records lost by a full ring are counted. Needs no
 * tracing stop, and no root if kernel.perf_event_paranoid is 2 or less.
 */
#ifndef PTMEM_TRACEE_CONTROL_FAULTS_H
#define PTMEM_TRACEE_CONTROL_FAULTS_H

#include <sys/types.h>
#include <time.h>

#include "base/types.h"

struct fault_report;
struct faults;
struct target;

/* One record, in the ring or copied. */
struct fault_record {
	uint32_t pid, tid;
	uint64_t time_ns;
	taddr_t addr;
	const uint64_t *regs;  /* in perf's order, those requested; NULL: none */
	const uint8_t *stack;  /* from the stack pointer upwards */
	size_t stack_size;
};

/*
 * Decodes the sample of @size bytes at @data, which contains @reg_count registers. -EINVAL if it is
 * malformed.
 */
int fault_record_decode(const uint8_t *data, size_t size, unsigned reg_count,
			struct fault_record *out);

/*
 * Watches @tid and its future threads and children. @enable_on_exec: from its exec on. 0 or
 * -errno.
 */
int faults_add(struct target *t, pid_t tid, bool enable_on_exec);

/* Reads all rings and reports events to the sink. Returns the number of records. */
size_t faults_drain(struct target *t);

/* Sleeps until a ring fills, a stop is pending, or the timeout. */
void faults_wait(struct target *t, const struct timespec *at_most);

/* Whether a ring is so full that the target should be stopped until all is read. */
bool faults_are_pressed(const struct target *t);

/* As target_fault_report. */
void faults_report(const struct target *t, struct fault_report *out);

void faults_free(struct target *t);

#endif
