/*
 * Processes that go on independently of this one: it is not their parent, so its waits for any
 * child do not report them.
 */
#ifndef PTMEM_BASE_DAEMON_H
#define PTMEM_BASE_DAEMON_H

#include <sys/types.h>

/* Calls @run, which must not return, in a new process: 0, or -errno. */
int daemon_start(void (*run)(void *ctx), void *ctx);

/* Ignores all signals that are meant for ptmem: those of users and terminals, timers and files. */
void daemon_ignore_signals(void);

/*
 * Closes all files but @in, which becomes standard input, and @kept, which becomes DAEMON_KEPT;
 * -1 = none. Both are above standard error. Nothing is printed any more.
 */
void daemon_leave_files(int in, int kept);

#define DAEMON_KEPT 3

/*
 * Makes the calling process, a new daemon, independent of ptmem's terminal, files and directory:
 * it is named @name, signals for ptmem do not affect it, and @fd is its standard input.
 */
void daemon_become(int fd, const char *name);

/*
 * Calls @run, which must not return, in a daemon named @name whose standard input is connected to
 * the returned descriptor, which the caller closes; or -errno. *pid_out: its id.
 */
int daemon_start_connected(const char *name, void (*run)(void *ctx), void *ctx, pid_t *pid_out);

#endif
