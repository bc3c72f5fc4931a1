/*
 * The memory of a process's cgroup (cgroups(7)), of version 2 or of version 1's memory controller:
 * its limit, how often that was reached, and pressure stall information (PSI), which only version
 * 2 has. Both versions may be mounted at once; then each value is of the one that has it.
 */
#ifndef PTMEM_BASE_MEMORY_CGROUP_H
#define PTMEM_BASE_MEMORY_CGROUP_H

#include <sys/types.h>

#include "base/types.h"

/* The directories of a cgroup; NULL = none, or not accessible. */
struct memory_cgroup {
	char *unified, *unified_top; /* version 2; _top: where the hierarchy is mounted */
	char *memory;                /* version 1 */
};

/*
 * @cgroup: the text of /proc/PID/cgroup, @mountinfo: of /proc/self/mountinfo. Free @out with
 * memory_cgroup_deinit.
 */
void memory_cgroup_find(const char *cgroup, const char *mountinfo, struct memory_cgroup *out);
/* That of process @pid. */
void memory_cgroup_find_of(pid_t pid, struct memory_cgroup *out);
void memory_cgroup_deinit(struct memory_cgroup *c);

/* The lowest limit that holds for its memory, bytes; UINT64_MAX = none. */
uint64_t memory_cgroup_limit(const struct memory_cgroup *c);
/* How often a limit was reached so far; false if unknown. */
bool memory_cgroup_limit_hits(const struct memory_cgroup *c, uint64_t *out);
/*
 * The share of the last 10 seconds in which some task waited for memory, percent; false if unknown.
 */
bool memory_cgroup_pressure(const struct memory_cgroup *c, double *out);

#endif
