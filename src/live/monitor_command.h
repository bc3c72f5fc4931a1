/* The commands of --monitor. */
#ifndef PTMEM_MONITOR_COMMAND_H
#define PTMEM_MONITOR_COMMAND_H

#include <stdio.h>

#include "base/types.h"

struct run;
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

#endif
