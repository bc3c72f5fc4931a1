/*
 * What ptmem tells of a program that grows, beside its massif file: leaks, leak
 * checks, folded stacks, flame graphs, --top. It joins the modules that do it.
 *
 *	last look     the target stands: registers and memory are scanned (--leak-check)
 *	finish        the profile is complete: reports are made and written
 *	SIGUSR1       both, now, and the program goes on
 */
#ifndef PTMEM_GROWTH_H
#define PTMEM_GROWTH_H

#include "session.h"

/* Whether blocks must remember when they were made. */
bool growth_needs_times(const struct options *o);

/* For the sink: @space, which still runs, will soon stand for a last look. ctx is the run. */
void growth_prepare_look(void *ctx, struct space *space);

/* For the sink: @space is about to end or to be let go, its threads stand. ctx is the run. */
void growth_last_look(void *ctx, struct space *space);

/* Writes all reports of a profile that is complete. @time_ns: its end. */
void growth_finish(struct session *s, uint64_t time_ns);

/* Releases what a last look left behind. */
void growth_forget(struct session *s);

/* Makes SIGUSR1 ask for a report where the options want one. */
void growth_catch_signals(const struct options *o);

/* The next growth_poll makes that report, where the options want one. For signal handlers. */
void growth_want_report(void);

/* From the loop: does what was asked for. True: the user wants to leave. */
bool growth_poll(struct run *run);

/*
 * Which blocks of @s are there now, as the options say it: to @path (JSON if it ends in .json), or
 * as text to @file if @path is NULL. From poll alone. -ENOTSUP: neither --leaks nor --leak-check
 * was given; -ESRCH: the process is gone, @s may be too; another -errno: @path cannot be written.
 */
int growth_write_leaks(struct session *s, const char *path, FILE *file);

/* The exit status that the options ask for (--error-exitcode); 0 = none. */
int growth_exit_code(const struct run *run);

#endif
