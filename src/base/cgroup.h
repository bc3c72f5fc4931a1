/* The control group of a process, and the container that its path names. Parsers are pure. */
#ifndef PTMEM_BASE_CGROUP_H
#define PTMEM_BASE_CGROUP_H

#include <sys/types.h>

#include "base/types.h"

/*
 * The path in @text, the content of /proc/PID/cgroup (cgroups(7)): that of version 2; where only
 * version 1 is in use, that of systemd's hierarchy or the first. NULL if there is none. The caller
 * frees it.
 */
char *cgroup_parse(const char *text);
/* The same of process @pid. */
char *cgroup_read(pid_t pid);

/* Whether @path is @group or below it. */
bool cgroup_is_within(const char *path, const char *group);
/* Whether a component of @path equals @name, as that of a systemd unit does. */
bool cgroup_has_component(const char *path, const char *name);

#define CONTAINER_ID_SIZE 65
/*
 * The id of the container: the last 64 hexadecimal digits in a row, with which Docker, containerd,
 * CRI-O and Podman name their groups. "" if there are none.
 */
void cgroup_container(const char *path, char id_out[CONTAINER_ID_SIZE]);

#endif
