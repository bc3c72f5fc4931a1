/* The same work in several threads at once, while CPUs are free because a process is stopped. */
#ifndef PTMEM_BASE_PARALLEL_H
#define PTMEM_BASE_PARALLEL_H

#include <pthread.h>

#include "base/types.h"

#define PARALLEL_MAX 4u

typedef void parallel_fn(void *ctx, uint32_t lane);

/* As many as there are CPUs for this process; @most at most, but one at least. */
uint32_t parallel_count(size_t most);

/*
 * Calls fn(ctx, lane) in each of @lanes threads, or fewer; lane 0 is the calling thread. Returns
 * when all have returned.
 */
void parallel_for(uint32_t lanes, parallel_fn *fn, void *ctx);

/*
 * Starts a thread that receives no signals and has the priority of the caller, who will wait for
 * it. Returns whether it was started.
 */
bool parallel_start(pthread_t *out, void *(*fn)(void *ctx), void *ctx);

#endif
