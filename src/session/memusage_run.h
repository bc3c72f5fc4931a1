/*
 * Counts calls as memusage does, and writes its report and data file. Files that cannot be written
 * are an error before the program starts.
 *
 *	program starts  memusage_run_start  counts from zero, into its own data file
 *	it forks        memusage_run_fork   the child inherits the counts, without a file
 *	it executes     memusage_run_end, memusage_run_start: no report of the old program if the
 *	                new one is followed; its data file gets a number
 *	it ends         memusage_run_end    report, peaks of the data file
 */
#ifndef PTMEM_SESSION_MEMUSAGE_RUN_H
#define PTMEM_SESSION_MEMUSAGE_RUN_H

#include "base/types.h"
#include "profile/event.h"

struct memusage_run;
struct run;
struct session;

/* Sets run->memusage_run if requested. 0, or -errno after a message. */
int memusage_run_open(struct run *run);
/* Number of files that could not be written, each after a message. NULL is ignored. */
unsigned memusage_run_close(struct memusage_run *m);

void memusage_run_start(struct session *s);
void memusage_run_fork(const struct session *parent, struct session *child);
void memusage_run_event(struct session *s, const struct event *ev);
void memusage_run_thread_exit(struct session *s, uint32_t thread);
/* @is_replaced: it executed another program that is counted as well. */
void memusage_run_end(struct session *s, bool is_replaced);

#endif
