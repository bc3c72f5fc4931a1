/*
 * Observers of a running run: live components (src/live) register themselves, so that sessions need
 * not depend on them. Any callback may be NULL.
 */
#ifndef PTMEM_SESSION_OBSERVER_H
#define PTMEM_SESSION_OBSERVER_H

#include <sys/types.h>

#include "base/types.h"
#include "session/run.h"

struct session;

struct observer {
	void *ctx;
	void (*session_started)(void *ctx, const struct session *s);
	void (*session_forked)(void *ctx, const struct session *child);
	/* @is_exec: the process executed a program, which is not followed or starts a session. */
	void (*session_ended)(void *ctx, const struct session *s, bool is_exec);
	/* The files of @s, which ended, are written. */
	void (*session_finished)(void *ctx, const struct session *s);
	/* @tid is the last thread of @pid, stopped on its way out. */
	void (*process_exit)(void *ctx, pid_t pid, pid_t tid);
	/* ptmem is about to map something in process @pid. */
	void (*will_map)(void *ctx, pid_t pid);
	/* Called at the time that it returned last (CLOCK_MONOTONIC, ns); first at once. */
	uint64_t (*tick)(void *ctx, uint64_t now_ns);
	/* Called between events. True: ptmem is to detach and exit. */
	bool (*poll)(void *ctx);
	/* The program of @s sends monitor command @line. Returns whether it is a known one. */
	bool (*monitor)(void *ctx, struct session *s, const char *line);
};

/* Adds @o, which stays the caller's; it must be removed before the run ends. */
void observers_add(struct run *run, const struct observer *o);
void observers_remove(struct run *run, const struct observer *o);

/*
 * The observers of @run that have @callback, in the order in which they were added:
 *
 *	observers_each(o, run, will_map)
 *		o->will_map(o->ctx, pid);
 */
#define observers_each(o, run, callback)                                                        \
	for (size_t at_ = 0;                                                                    \
	     at_ < (run)->observers.count && ((o) = (run)->observers.data[at_], true); at_++)   \
		if ((o)->callback)

#endif
