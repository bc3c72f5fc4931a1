/*
 * --sample: the sampler of a run. It is an observer of the run's sessions, or watches processes
 * that are not traced.
 */
#ifndef PTMEM_SAMPLING_H
#define PTMEM_SAMPLING_H

#include <sys/types.h>

#include "base/types.h"

struct run;
struct sampling;

/* Starts if requested. 0 and *out (NULL = not requested), or -errno after a message. */
int sampling_open(struct run *run, struct sampling **out);
/* Ends it. False if the samples could not be written, after a message. NULL is ignored. */
bool sampling_close(struct sampling *s);

/*
 * Samples @count processes that are not traced (any longer) until all have ended or @leave returns
 * true. NULL is ignored.
 */
void sampling_watch(struct sampling *s, const pid_t *pids, size_t count, bool (*leave)(void *ctx),
		    void *ctx);

#endif
