/*
 * Which processes --follow means:
 *
 *	/PATH                            those in this control group, or below it, of any controller
 *	NAME.service, .scope, .slice     those of this systemd unit
 *	NAME                             those of this name; '*' and '?' are wildcards
 */
#ifndef PTMEM_PROCESS_MATCH_H
#define PTMEM_PROCESS_MATCH_H

#include <sys/types.h>

#include "base/types.h"

/* @comm: as in /proc/PID/comm. @cgroup: as in /proc/PID/cgroup; NULL = unknown. */
bool process_match(const char *pattern, const char *comm, const char *cgroup);

/*
 * Whether process @pid matches one of @count @patterns. The kernel cuts names after 15 characters:
 * such a name is also compared as the base name of the executable file.
 */
bool process_matches(pid_t pid, const char *const *patterns, size_t count);

#endif
