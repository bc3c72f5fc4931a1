/*
 * A counter is a descriptor of perf_event_open in counting mode: no interrupts, no
 * buffer, one read for its value. Later threads and children inherit it, so a started program needs
 * one counter, and an attached one needs one for each thread. Virtual machines often have no such
 * counter, so one is tried first.
 */
#include "tracee/os/cpu_counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/clock.h"

static int open_counter(pid_t tid, bool is_disabled, bool enable_on_exec)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.inherit = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.disabled = is_disabled,
		.enable_on_exec = enable_on_exec,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int instructions_check(void)
{
	int fd = open_counter(0, true, false);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

int instructions_add(struct instruction_counters *c, pid_t tid, bool enable_on_exec)
{
	int fd = open_counter(tid, enable_on_exec, enable_on_exec);
	if (fd < 0)
		return fd;
	*vec_add(&c->fd) = fd;
	return 0;
}

uint64_t instructions_read(const struct instruction_counters *c)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < c->fd.count; i++) {
		uint64_t n;
		if (read(c->fd.data[i], &n, sizeof(n)) == sizeof(n))
			sum += n;
	}
	return sum;
}

void instructions_close(struct instruction_counters *c)
{
	vec_release(&c->fd, e, close(*e));
}

/* Pairs of readings, and the rate between them. */

#define FIRST_NS 50000u         /* a rate over less is not exact enough */
#define RATE_NS 1000000000u     /* the rate is that of one to two times as long */
#define FRESH_NS 100000u        /* a pair is good for so long: to read one takes 0.3 us */
#define TRIES 4

/*
 * Unlike the current clock source, which may be a hypervisor's, the list of available ones says
 * whether the kernel has found the counter to be unstable: then it is not on it.
 */
static bool is_available(const char *name)
{
	char line[256] = "", *rest = line, *word;
	FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/available_clocksource",
			"re");

	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	while ((word = strsep(&rest, " \n"))) {
		if (strcmp(word, name) == 0)
			return true;
	}
	return false;
}

static bool is_any_available(const char *const *names)
{
	for (; *names; names++)
		if (is_available(*names))
			return true;
	return false;
}

/* The best of a few readings: one between which the counter hardly moved. */
static struct tick_pair read_pair(void)
{
	struct tick_pair best = {0};
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = arch_ticks(), ns = clock_now_ns(), took = arch_ticks() - before;
		if (took >= least)
			continue;
		least = took;
		best = (struct tick_pair){before + took / 2, ns};
	}
	return best;
}

#define CPU_DIFF_NS 2000u

bool tick_pairs_agree(const struct tick_pair *pair, size_t count)
{
	if (count < 2)
		return false;
	const struct tick_pair *first = &pair[0], *last = &pair[count - 1];
	if (last->ticks <= first->ticks)
		return false;
	double rate = (double)(last->ns - first->ns) / (double)(last->ticks - first->ticks);
	for (size_t i = 1; i + 1 < count; i++) {
		double ticks = (double)(int64_t)(pair[i].ticks - first->ticks);
		double diff = ticks * rate - (double)(pair[i].ns - first->ns);

		if (diff > CPU_DIFF_NS || diff < -(double)CPU_DIFF_NS)
			return false;
	}
	return true;
}

/* Whether the counter is the same on all CPUs that can be used: reads it on each. */
static bool is_same_on_all_cpus(void)
{
	const int cpus = (int)MIN(sysconf(_SC_NPROCESSORS_CONF), (long)CPU_SETSIZE);
	cpu_set_t before, one;
	VEC(struct tick_pair) pairs = {0};
	int first = -1;

	if (sched_getaffinity(0, sizeof(before), &before) != 0)
		return false; /* more CPUs than the set has */
	for (int i = 0; i <= cpus; i++) {
		int cpu = i < cpus ? i : first; /* the first one again at the end */

		if (cpu < 0)
			break;
		CPU_ZERO(&one);
		CPU_SET((size_t)cpu, &one);
		if (sched_setaffinity(0, sizeof(one), &one) != 0)
			continue;
		first = first < 0 ? cpu : first;
		*vec_add(&pairs) = read_pair();
	}
	sched_setaffinity(0, sizeof(before), &before);
	bool agree = tick_pairs_agree(pairs.data, pairs.count);
	vec_deinit(&pairs);
	return agree;
}

/*
 * The first of the clock sources is the counter itself: on the list, it is stable. The others are a
 * hypervisor's, which may correct it for each CPU.
 */
static bool is_trusted(const char *const *clocksources)
{
	return is_available(clocksources[0]) ||
	       (is_any_available(clocksources + 1) && is_same_on_all_cpus());
}

/* Reads another pair, and returns the time: c->last.ns. */
static uint64_t update(struct tick_clock *c)
{
	c->last = c->read();
	if (c->last.ns - c->middle.ns > RATE_NS) {
		c->old = c->middle;
		c->middle = c->last;
	}
	uint64_t ticks = c->last.ticks - c->old.ticks, ns = c->last.ns - c->old.ns;
	if (ticks && (int64_t)ticks > 0 && ns)
		c->rate = (uint64_t)(((unsigned __int128)ns << 32) / ticks);
	return c->last.ns;
}

void tick_clock_init(struct tick_clock *c, const struct arch *arch)
{
	const struct tick_pair first = read_pair();

	*c = (struct tick_clock){
		.is_trusted = is_trusted(arch->ticks_clocksources),
		.read = read_pair,
		.ticks = arch_ticks,
		.old = first, .middle = first, .last = first,
	};
}

void tick_clock_measure(struct tick_clock *c)
{
	const uint64_t first = c->last.ns;

	while (!c->rate && update(c) - first < FIRST_NS)
		c->rate = 0;
}

uint64_t tick_clock_now(struct tick_clock *c)
{
	uint64_t ns = c->is_trusted ? tick_clock_ns(c, c->ticks()) : UINT64_MAX;

	return ns - c->last.ns < FRESH_NS ? ns : update(c);
}

uint64_t tick_clock_ns(const struct tick_clock *c, uint64_t ticks)
{
	int64_t diff = (int64_t)(ticks - c->last.ticks);
	__int128 ns = (__int128)c->last.ns + (((__int128)diff * c->rate) >> 32);

	return ns < 0 ? 0 : ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

uint64_t tick_clock_ticks(const struct tick_clock *c, uint64_t ns)
{
	return c->rate ? (uint64_t)(((unsigned __int128)ns << 32) / c->rate) : 0;
}
