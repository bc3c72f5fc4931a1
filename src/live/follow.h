/*
 * --follow: attaches to processes that match, as they appear. Hides: how /proc is polled, patterns
 * of names, units and control groups, and the processes that wait for their turn.
 */
#ifndef PTMEM_LIVE_FOLLOW_H
#define PTMEM_LIVE_FOLLOW_H

#include <sys/types.h>

#include "base/types.h"
#include "tracee/control/target.h"

/*
 * Which processes --follow means:
 *
 *	/PATH                            those in this control group, or below it, of any controller
 *	NAME.service, .scope, .slice     those of this systemd unit
 *	NAME                             those of this name; '*' and '?' are wildcards
 */

/* @comm: as in /proc/PID/comm. @cgroup: as in /proc/PID/cgroup; NULL = unknown. */
bool process_match(const char *pattern, const char *comm, const char *cgroup);

/*
 * Whether process @pid matches one of @count @patterns. The kernel cuts names after 15 characters:
 * such a name is also compared as the base name of the executable file.
 */
bool process_matches(pid_t pid, const char *const *patterns, size_t count);

/*
 * --follow: attaches to processes that match, as they appear.
 *
 *	every second   /proc -> new, young, or its turn -> matches? -> queue
 *	between events queue -> attach, one at a time
 *
 * Not attached to: ptmem itself, its ancestors, other processes that run ptmem, of whatever build,
 * kernel threads, and what is traced already, as long as it is.
 */

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
