/* Job control: ptmem stops when the program that it started does; job.c has an overview. */
#ifndef PTMEM_TRACEE_CONTROL_JOB_H
#define PTMEM_TRACEE_CONTROL_JOB_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/types.h"

struct job;
struct process;
struct target;

struct job *job_new(void); /* the caller frees it */

/*
 * The started program runs: from now on ptmem ignores the terminal's stop signals, which the
 * program handles.
 */
void job_begin(struct target *t);
/* The program has ended: these signals stop ptmem again. */
void job_end(struct target *t);

/* A thread of @p is in a group stop by @sig. */
void job_note_stop(struct target *t, const struct process *p, int sig);
/* Stops ptmem if the started program is stopped; returns when ptmem was continued. */
void job_follow(struct target *t);

/*
 * Stops ptmem with @sig. True: it was continued from outside; false: by its watcher, because there
 * is something to do.
 */
bool job_stop_self(int sig);

/*
 * A program whose ptmem is stopped (SIGSTOP, Ctrl-Z) must not stop with it for long: job.c has
 * an overview.
 */

/* Starts the watcher, unless it runs. A failure is logged: then the program waits for ptmem. */
void standby_start(struct target *t);
/* Ends it. */
void standby_free(struct target *t);

/* Handles what the watcher continued ptmem for, and stops ptmem again. */
void standby_follow(struct target *t);

#endif
