/*
 * Counters of the CPU that serve as clocks: its ticks, which pads can read and which are converted
 * to CLOCK_MONOTONIC here, and the instructions executed by traced threads (--time-unit=i).
 */
#ifndef PTMEM_TRACEE_OS_CPU_COUNTERS_H
#define PTMEM_TRACEE_OS_CPU_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/types.h"

/*
 * Hardware counters of executed instructions, one for each seized thread, which includes everything
 * that the thread creates later: the clock of --time-unit=i.
 */

struct instruction_counters {
	VEC(int) fd; /* perf descriptors */
};

/*
 * Whether this user can count instructions on this machine: 0 or -errno of perf_event_open
 * (-ENOENT: no counter).
 */
int instructions_check(void);

/* Counts the instructions of @tid, from its next exec on with @enable_on_exec. 0 or -errno. */
int instructions_add(struct instruction_counters *c, pid_t tid, bool enable_on_exec);

/* The number of instructions executed by all counted threads so far. */
uint64_t instructions_read(const struct instruction_counters *c);
void instructions_close(struct instruction_counters *c);

/*
 * Converts the CPU's counter (arch_ticks) to CLOCK_MONOTONIC. Pads can read the counter, but not
 * the clock. Both are read together again and again; a reading of the counter is placed relative to
 * the newest pair, with the rate of the last second, so what the kernel corrects meanwhile is
 * followed.
 */

struct arch;

struct tick_pair {
	uint64_t ticks, ns;
};

struct tick_clock {
	/* the kernel uses this counter as a clock, or would: it is the same on all CPUs */
	bool is_trusted;
	struct tick_pair (*read)(void); /* both clocks now */
	uint64_t (*ticks)(void);        /* the counter now */
	struct tick_pair old, middle, last; /* old and middle: where the rate is measured from */
	uint64_t rate;              /* ns for each tick, times 2^32 */
};

/* Reads the first pair. */
void tick_clock_init(struct tick_clock *c, const struct arch *arch);
/*
 * Measures the first rate, before anything is dated; once. That takes 50 us since tick_clock_init,
 * which have mostly passed.
 */
void tick_clock_measure(struct tick_clock *c);
/* The time now. Reads another pair only if the newest one is older than 100 us. */
uint64_t tick_clock_now(struct tick_clock *c);

/*
 * Whether @count pairs, each read on another CPU but the first and the last on the same one, are of
 * one counter: to 2 us.
 */
bool tick_pairs_agree(const struct tick_pair *pair, size_t count);

/* The time of @ticks, which may be any number: 0 or UINT64_MAX if it is out of range. */
uint64_t tick_clock_ns(const struct tick_clock *c, uint64_t ticks);
/* How many ticks @ns take. */
uint64_t tick_clock_ticks(const struct tick_clock *c, uint64_t ns);

#endif
