/*
 * Talking to a running ptmem: snapshots and more while the program runs
 * (spec/massif.md 2.14), asked for through a socket or by SIGUSR1.
 *
 *	ptmem --monitor=PID COMMAND [FILE]  ->  DIRECTORY/PTMEM-PID.sock  ->  monitor_run
 *
 * The directory is $XDG_RUNTIME_DIR/ptmem, else /tmp/ptmem-UID: mode 0700, owned by
 * the user, and the peer of each connection must be that user or root.
 */
#ifndef PTMEM_MONITOR_H
#define PTMEM_MONITOR_H

#include "session.h"

#define MONITOR_REQUEST_MAX 65536

struct monitor;

/*
 * Opens the socket and takes SIGIO and SIGUSR1, which wake the loop. NULL after a
 * message where that is not possible: the profile goes on without.
 */
struct monitor *monitor_open(struct run *run);
/* Nobody is served any more; who has been waits for monitor_close. */
void monitor_stop(struct monitor *m);
/* Those whose answers are on their way have a moment to read them. */
void monitor_close(struct monitor *m);

/*
 * Serves what has come; to be called from the loop, between events. True: a client asked to detach.
 */
bool monitor_serve(struct monitor *m);

/* What a command is about, and where its relative file names stand. */
struct monitor_request {
	struct run *run;
	struct session *session; /* NULL: nothing runs yet, or no more */
	const char *directory;
	const char *file;        /* the second word; NULL = none */
	FILE *reply;
	bool wants_detach;       /* set by the command */
};

/*
 * Runs @line, a command and perhaps a file name; its first word may be shortened.
 * What there is to say goes to r->reply. 0; -EINVAL: no such command; another
 * -errno: the command failed.
 */
int monitor_run(struct monitor_request *r, const char *line);

/*
 * For a sink, ctx is the run: the program of @space itself says @line (a client request). Massif's
 * commands alone, since it stands still in the middle of its work; what there is to say is a
 * message. Whether there is such a command.
 */
bool monitor_from_program(void *ctx, struct space *space, const char *line);

/*
 * The directory of the sockets of user @uid, the @i-th
 * place to look; NULL: no more. The caller frees it.
 */
char *monitor_directory(uid_t uid, unsigned i);

/* The client: asks @pid's ptmem, or that which traces @pid. Returns the exit status. */
int monitor_client(pid_t pid, char *const words[]);

#endif
