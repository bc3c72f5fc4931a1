/*
 * What ptmem reports besides the massif file: live blocks and leaks, folded stacks, flame graphs.
 *
 *	final scan    threads are stopped: registers and memory are scanned (--leak-check)
 *	finish        the profile is complete: reports are made and written
 *	SIGUSR1       leaks and --inspect, at once; the program continues
 */
#ifndef PTMEM_REPORTS_H
#define PTMEM_REPORTS_H

#include "base/types.h"

struct run;
struct session;

/*
 * Writes all reports of a finished profile; of drafts only --folded and --flame. @time_ns: its end.
 */
void reports_finish(struct session *s, uint64_t time_ns);

/* Called between events: makes the reports requested by SIGUSR1. */
void reports_poll(struct run *run);

/* The exit status required by --error-exitcode; 0 = none. */
int reports_exit_code(const struct run *run);

#endif
