/* Resource limits of ptmem itself. */
#ifndef PTMEM_TRACEE_OS_LIMIT_H
#define PTMEM_TRACEE_OS_LIMIT_H

#include <sys/resource.h>

/*
 * Raises the soft limit of resource @which to the hard one. *old_out: the old limits; zeros if
 * unknown. May be NULL.
 */
void limit_raise(int which, struct rlimit *old_out);

/*
 * @fd, a descriptor that stays open as long as a process lives; closed, and -1 with errno EMFILE,
 * if too few remained for files that are opened for a moment. -1 stays as it is.
 */
int limit_keep(int fd);

#endif
