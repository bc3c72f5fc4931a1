/* The same work in several threads at once, while CPUs are free because a process is stopped. */
#ifndef PTMEM_BASE_LANES_H
#define PTMEM_BASE_LANES_H

#include <pthread.h>

#include "base/types.h"

#define LANES_MAX 4u

typedef void lane_fn(void *ctx, uint32_t lane);

/* As many as there are CPUs for this process; @most at most, but one at least. */
uint32_t lanes_for(size_t most);

/*
 * Calls fn(ctx, lane) in each of @lanes threads, or fewer; lane 0 is the calling thread. Returns
 * when all have returned.
 */
void lanes_run(uint32_t lanes, lane_fn *fn, void *ctx);

/*
 * Starts a thread that receives no signals and has the priority of the caller, who will wait for
 * it. Returns whether it was started.
 */
bool lane_start(pthread_t *out, void *(*fn)(void *ctx), void *ctx);

#endif
