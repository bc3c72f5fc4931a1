/*
 * Settings of ptmem's own process that are changed while it traces: resource limits, SIGCHLD,
 * real-time priority for a moment. A program that it starts must not inherit them.
 */
#ifndef PTMEM_TRACEE_OS_OWN_SETTINGS_H
#define PTMEM_TRACEE_OS_OWN_SETTINGS_H

#include <stdbool.h>
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

/*
 * While all threads are stopped for us, each thread that is resumed competes for the CPU: it would
 * take ours, and the others would wait for milliseconds longer than the work takes.
 */

struct rt_boost {
	bool is_on;
	int policy, priority; /* old policy and parameters */
};

/*
 * Until rt_boost_end no other thread preempts this one, if permitted (root). The work in between
 * must take milliseconds at most.
 */
void rt_boost_begin(struct rt_boost *b);
void rt_boost_end(struct rt_boost *b);

struct own_settings;

/*
 * Blocks SIGCHLD, and raises the limit of open files. Returns the old settings; the caller frees
 * them.
 */
struct own_settings *own_settings_change(void);
/* In a child: restores the old settings. */
void own_settings_restore(const struct own_settings *old);

#endif
