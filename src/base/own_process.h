/*
 * ptmem's own processes: the stack that main runs on, processes that go on independently of ptmem,
 * and copies of it that work while it goes on.
 */
#ifndef PTMEM_BASE_OWN_PROCESS_H
#define PTMEM_BASE_OWN_PROCESS_H

#include <sys/types.h>

#include "base/types.h"

/*
 * A stack of our own. elfutils has large frames, but the stack that ptmem was started with may be
 * small (ulimit -s), and the program to be profiled must get that limit, not a larger one.
 */

/*
 * Returns what @fn returns, which runs with at least 8 MiB of stack: on another one if that of the
 * process is limited to less. Threads created from then on have as much.
 */
int own_stack_call(int (*fn)(int argc, char **argv), int argc, char **argv);

/*
 * Processes that go on independently of this one: it is not their parent, so its waits for any
 * child do not report them.
 */

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

/*
 * Work in a copy of this process (fork), which takes as long as it needs while the original goes
 * on. The copy sees everything as it was at that moment; what it changes is lost, except for files
 * and messages. It is no child of the original, whose waits for any child would report it.
 */

struct background_job {
	int (*work)(void *ctx);    /* in the copy; the result, 0 or -errno */
	void *ctx;
	/* a socket that the copy needs, -1 = none: others are closed, so that their peers notice
	 * the end of the original */
	int socket;
};

/* Starts the copy. Returns a descriptor for background_result, or -errno. */
int background_start(const struct background_job *job);

/*
 * -EAGAIN: the copy is still working, unless @wait. 0: *out is the result, -ECHILD if it was
 * killed, and @fd is closed.
 */
int background_result(int fd, bool wait, int *out);

#endif
