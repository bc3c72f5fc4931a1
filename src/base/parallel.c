/* See parallel.h. */
#include "base/parallel.h"

#include <sched.h>
#include <signal.h>

struct lane {
	parallel_fn *fn;
	void *ctx;
	uint32_t number;
	pthread_t thread;
};

uint32_t parallel_count(size_t most)
{
	cpu_set_t cpus;
	bool is_known = sched_getaffinity(0, sizeof(cpus), &cpus) == 0;
	size_t count = is_known ? (size_t)CPU_COUNT(&cpus) : 1;

	return (uint32_t)MAX(MIN(MIN(count, most), PARALLEL_MAX), 1u);
}

bool parallel_start(pthread_t *out, void *(*fn)(void *ctx), void *ctx)
{
	struct sched_param priority;
	sigset_t all, before;
	int policy;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool is_started = pthread_create(out, NULL, fn, ctx) == 0;

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (is_started && pthread_getschedparam(pthread_self(), &policy, &priority) == 0)
		pthread_setschedparam(*out, policy, &priority);
	return is_started;
}

static void *run_lane(void *ctx)
{
	const struct lane *lane = ctx;

	lane->fn(lane->ctx, lane->number);
	return NULL;
}

void parallel_for(uint32_t lanes, parallel_fn *fn, void *ctx)
{
	struct lane lane[PARALLEL_MAX];
	uint32_t started = 1;

	for (; started < MIN(lanes, PARALLEL_MAX); started++) {
		lane[started] = (struct lane){.fn = fn, .ctx = ctx, .number = started};
		if (!parallel_start(&lane[started].thread, run_lane, &lane[started]))
			break;
	}
	fn(ctx, 0);
	for (uint32_t i = 1; i < started; i++)
		pthread_join(lane[i].thread, NULL);
}
