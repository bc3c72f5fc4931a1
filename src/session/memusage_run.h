/*
 * What a run counts as memusage does: its report and its data file. What cannot be written is an
 * error before the program starts.
 *
 *	program starts  memusage_run_start  counts from zero, into a data file of its own
 *	it forks        memusage_run_fork   the child continues counting from there, without a file
 *	it executes     memusage_run_end, memusage_run_start: no report of the old program where the
 *	                new one is followed; its data file gets a number
 *	it ends         memusage_run_end    report, peaks of the data file
 */
#ifndef PTMEM_MEMUSAGE_RUN_H
#define PTMEM_MEMUSAGE_RUN_H

#include "base/types.h"
#include "profile/event.h"

struct memusage_run;
struct run;
struct session;

/* Sets run->memusage_run if the options want it: 0, or -errno after a message. */
int memusage_run_open(struct run *run);
/* Number of files that could not be written, each after a message. NULL is ignored. */
unsigned memusage_run_close(struct memusage_run *m);

void memusage_run_start(struct session *s);
void memusage_run_fork(const struct session *parent, struct session *child);
void memusage_run_event(struct session *s, const struct event *ev);
void memusage_run_thread_exit(struct session *s, uint32_t thread);
/* @is_replaced: by another program that is counted as well. */
void memusage_run_end(struct session *s, bool is_replaced);

#endif
