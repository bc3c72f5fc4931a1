/* The clock for event timestamps. */
#include "tracee/os/clock.h"

#include <time.h>

uint64_t target_clock(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
