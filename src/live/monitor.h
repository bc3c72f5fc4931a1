/*
 * --monitor: snapshots and more while the program runs (doc/massif.md 2.14). The server in a
 * running ptmem, the client, the directory of their sockets, and the commands.
 */
#ifndef PTMEM_LIVE_MONITOR_H
#define PTMEM_LIVE_MONITOR_H

#include <stdio.h>
#include <sys/types.h>

#include "base/types.h"

/*
 * The server of --monitor in a running ptmem: snapshots and more while the program runs
 * (doc/massif.md 2.14), requested through a socket or by SIGUSR1. It is an observer of the run.
 *
 *	ptmem --monitor=PID COMMAND [FILE]  ->  DIRECTORY/PTMEM-PID.sock  ->  monitor_command_run
 */

struct monitor;
struct run;

/* Opens the socket and catches SIGIO and SIGUSR1, which wake the loop. Without a socket, after a
 * verbose message, signals still work. */
struct monitor *monitor_open(struct run *run);
/* Accepts no new clients; monitor_close sends the remaining answers. */
void monitor_stop(struct monitor *m);
/* Gives clients a moment to read their answers. */
void monitor_close(struct monitor *m);

/* The client: ptmem --monitor=PID COMMAND [FILE]. */

/*
 * Sends a command to @pid's ptmem, or the one that traces @pid, and prints the answer. Returns the
 * exit status.
 */
int monitor_client_run(pid_t pid, char *const words[]);

/* The commands of --monitor. */

struct session;

/* The context of a command, and the directory for relative file names. */
struct monitor_request {
	struct run *run;
	struct session *session; /* NULL: no program is running */
	const char *directory;
	const char *file;        /* the second word; NULL = none */
	const char *path;        /* of the file that is being written */
	FILE *reply;
	int client;              /* the socket of the client; -1: the program itself */
	/* in a copy of ptmem: sends the reply to the client; @rc as of monitor_command_run */
	void (*answer)(void *ctx, int rc);
	void *answer_ctx;
	/* set by the command */
	bool wants_detach;
	bool is_deferred;        /* a copy of ptmem answers */
};

/*
 * Runs @line, a command and an optional file name; its first word may be abbreviated. The answer is
 * written to r->reply. 0; -EINVAL: unknown command; another -errno: the command failed.
 */
int monitor_command_run(struct monitor_request *r, const char *line);

/*
 * The program of @s sends @line itself (a client request). Accepts only Massif's commands, since
 * its thread is stopped in the middle of its work; the answer is logged. A program with fewer
 * rights than ptmem is refused: it could overwrite any file of the user who profiles it. Returns
 * whether the command exists.
 */
bool monitor_command_run_from_program(struct session *s, const char *line);

/*
 * The directory of the sockets: $XDG_RUNTIME_DIR/ptmem, else /tmp/ptmem-UID; mode 0700, owned by
 * the user. The peer of each connection must be that user or root.
 */

#endif
