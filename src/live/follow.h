/*
 * --follow: attaches to processes that match, as they appear.
 *
 *	every second   /proc -> new, young, or its turn -> matches? -> queue
 *	between events queue -> attach, one at a time
 *
 * Not attached to: ptmem itself, its ancestors, other processes that run ptmem, of whatever build,
 * kernel threads, and what is traced already, as long as it is.
 */
#ifndef PTMEM_FOLLOW_H
#define PTMEM_FOLLOW_H

#include <sys/types.h>

#include "base/types.h"
#include "tracee/control/target.h"

struct follow;
struct run;

/* Print what became of an attach; the arguments are those of explain.h. */
struct follow_messages {
	void (*attached)(const struct target *t, pid_t pid, uint64_t threads);
	void (*failed)(pid_t pid, int rc, enum attach_problem problem, long detail);
};

/* Starts if requested; NULL: it was not. Observes @run until follow_stop. */
struct follow *follow_start(struct run *run, const struct follow_messages *messages);
/* NULL is ignored. */
void follow_stop(struct follow *f);

#endif
