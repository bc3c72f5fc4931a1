/*
 * Page faults of the target, each one, through perf_event_open: the kernel writes
 * registers and the top of the stack of every fault into rings that are read here.
 * Internal to src/tracee.
 *
 *	thread x CPU -> two events (minor, major) -> the CPU's two rings -> HEAP_FAULT
 *
 * Threads and processes that are made later inherit the events. A full ring loses
 * records: they are counted. Needs no tracing stop, and no root where
 * kernel.perf_event_paranoid is 2 or less.
 */
#ifndef PTMEM_TRACEE_CONTROL_FAULTS_H
#define PTMEM_TRACEE_CONTROL_FAULTS_H

#include <sys/types.h>
#include <time.h>

#include "base/types.h"

struct fault_report;
struct faults;
struct target;

/* One record of a ring, where it lies or copied. */
struct fault_record {
	uint32_t pid, tid;
	uint64_t time_ns;
	taddr_t addr;
	const uint64_t *regs;  /* by perf's numbers, those asked for; NULL: none */
	const uint8_t *stack;  /* from the stack pointer upwards */
	size_t stack_size;
};

/*
 * Decodes the @size bytes of a sample at @data; @reg_count registers were asked
 * for. -EINVAL if it does not fit.
 */
int fault_record_decode(const uint8_t *data, size_t size, unsigned reg_count,
			struct fault_record *out);

/* Watches @tid and what it makes later. @enable_on_exec: from its exec on. 0 or -errno. */
int faults_add(struct target *t, pid_t tid, bool enable_on_exec);

/* Reads all rings and reports to the sink; returns the number of records. */
size_t faults_drain(struct target *t);

/* Sleeps until a ring fills, a stop waits, or the time is over. */
void faults_wait(struct target *t, const struct timespec *at_most);

/* Whether a ring was so full that the target had better be stopped until all is read. */
bool faults_are_pressed(const struct target *t);

/* As target_fault_report. */
void faults_report(const struct target *t, struct fault_report *out);

void faults_free(struct target *t);

#endif
