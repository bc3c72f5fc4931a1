/*
 * What ptmem reports besides the massif file: live blocks and leaks, folded stacks, flame graphs.
 *
 *	final scan    threads are stopped: registers and memory are scanned (--leak-check)
 *	finish        the profile is complete: reports are made and written
 *	SIGUSR1       leaks and --inspect's, now, and the program continues
 */
#ifndef PTMEM_REPORTS_H
#define PTMEM_REPORTS_H

#include "base/types.h"

struct run;
struct session;

/* Writes all reports of a profile that is complete. @time_ns: its end. */
void reports_finish(struct session *s, uint64_t time_ns);

/* Called between events: reports what SIGUSR1 asked for. */
void reports_poll(struct run *run);

/* The exit status that the options ask for (--error-exitcode); 0 = none. */
int reports_exit_code(const struct run *run);

#endif
