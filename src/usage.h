/*
 * What a run counts and samples beside the profile: memusage's report and data
 * file, and the sampler. Their files are made before the program starts, so that
 * what cannot be written is an error by then.
 *
 *	program starts    usage_start      counts from zero; the data file is its
 *	it forks          usage_fork       the child goes on counting from there, without file
 *	it executes       usage_end, usage_start: no report of the old program where the new
 *	                  one is followed, and the data file begins anew
 *	it ends           usage_end        report, peaks of the data file
 */
#ifndef PTMEM_USAGE_H
#define PTMEM_USAGE_H

#include "base/types.h"
#include "profile/event.h"
#include "target/target.h"

struct options;
struct run;
struct session;
struct usage;

/* Whether something is asked for that needs the calls, or anything at all. */
bool usage_counts(const struct options *o);
bool usage_is_wanted(const struct options *o);
/* Whether samples are all that is wanted: of the program only its beginning and end are watched. */
bool usage_samples_alone(const struct options *o);

/* Sets @run->usage: 0, or -errno after a message. */
int usage_open(struct run *run);
/* Number of files that could not be written, each after a message. NULL is nothing. */
unsigned usage_close(struct usage *u);

/* What the target must do for it. */
void usage_fill_target(const struct options *o, struct target_options *to);
void usage_fill_sink(const struct options *o, struct target_sink *sink);

/*
 * Samples @count processes that are not traced (any
 * longer), until all have ended or @leave says so.
 */
bool usage_needs_no_tracing(const struct options *o);
void usage_watch(struct usage *u, const pid_t *pids, size_t count, bool (*leave)(void *ctx),
		 void *ctx);

void usage_start(struct session *s);
void usage_fork(const struct session *parent, struct session *child);
void usage_event(struct session *s, const struct event *ev);
void usage_thread_exit(struct session *s, uint32_t thread);
/* @is_exec: another program takes its place; @is_replaced: one that is counted as well. */
void usage_end(struct session *s, bool is_exec, bool is_replaced);

#endif
