/*
 * The control group of a process (cgroups(7)): its path and the container that it names, the limit
 * of its memory, and how often and how hard that was felt.
 */
#ifndef PTMEM_BASE_CGROUP_H
#define PTMEM_BASE_CGROUP_H

#include <sys/types.h>

#include "base/types.h"

/*
 * The path in @text, the content of /proc/PID/cgroup (cgroups(7)), that names the group of the
 * process best: that of version 2, unless it is the root and one of version 1 is not, the memory
 * controller's first, then systemd's. NULL if there is none. The caller frees it.
 */
char *cgroup_parse(const char *text);
/* The same of process @pid. */
char *cgroup_read(pid_t pid);
/* That text of process @pid; NULL if it cannot be read. The caller frees it. */
char *cgroup_read_text(pid_t pid);

/* Whether a path in @text, of any version or controller, is @group or below it. */
bool cgroup_is_within(const char *text, const char *group);
/* Whether a component of such a path equals @name, as that of a systemd unit does. */
bool cgroup_has_component(const char *text, const char *name);

#define CONTAINER_ID_SIZE 65
/*
 * The id of the container: the last 64 hexadecimal digits in a row, with which Docker, containerd,
 * CRI-O and Podman name their groups. "" if there are none.
 */
void cgroup_container(const char *path, char id_out[CONTAINER_ID_SIZE]);

/*
 * The memory of a process's cgroup (cgroups(7)), of version 2 or of version 1's memory controller:
 * its limit, how often that was reached, and pressure stall information (PSI), which only version
 * 2 has. Both versions may be mounted at once; then each value is of the one that has it.
 */

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
/*
 * What the limits leave, bytes: pages of files that were not used lately are dropped when memory is
 * wanted. UINT64_MAX = there is no limit.
 */
uint64_t memory_cgroup_left(const struct memory_cgroup *c);
/*
 * What this process can have without making others swap, bytes: MemAvailable of proc_meminfo(5), or
 * what its cgroup leaves. 0 = unknown.
 */
uint64_t memory_available(void);
/* How often a limit was reached so far; false if unknown. */
bool memory_cgroup_limit_hits(const struct memory_cgroup *c, uint64_t *out);

/* Parts of the memory that is charged to a group, and what else there is of it. */
struct memory_cgroup_part {
	const char *name, *text;     /* "slab", and words */
	uint64_t bytes;
};
#define MEMORY_CGROUP_PARTS 10u
struct memory_cgroup_usage {
	uint64_t all;                /* the sum of the parts */
	struct memory_cgroup_part part[MEMORY_CGROUP_PARTS]; /* of 0 bytes, too */
	size_t count;
	uint64_t excess;             /* bytes of parts that all did not have: counters lag behind */
};
/*
 * @own: anonymous resident memory of one of its processes, which is a part. False if unknown, as of
 * the root of version 2.
 */
bool memory_cgroup_usage(const struct memory_cgroup *c, uint64_t own,
			 struct memory_cgroup_usage *out);

/*
 * The share of the last 10 seconds in which some task waited for memory, percent; false if unknown.
 */
bool memory_cgroup_pressure(const struct memory_cgroup *c, double *out);

#endif
