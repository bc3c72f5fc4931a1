/* Pairs of readings, and the rate between them. */
#include "tracee/os/tick_clock.h"

#include <stdio.h>
#include <string.h>

#include "arch/arch.h"
#include "base/clock.h"

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
	struct tick_pair first = read_pair();

	*c = (struct tick_clock){
		.is_trusted = is_any_available(arch->ticks_clocksources),
		.read = read_pair,
		.ticks = arch_ticks,
		.old = first, .middle = first, .last = first,
	};
	while (update(c) - first.ns < FIRST_NS)
		;
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
