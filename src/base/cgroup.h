/* The control group of a process, and the container that its path names. Parsers are pure. */
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

#endif
