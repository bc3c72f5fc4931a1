/* The commands of --monitor. */
#ifndef PTMEM_MONITOR_COMMAND_H
#define PTMEM_MONITOR_COMMAND_H

#include <stdio.h>

#include "base/types.h"

struct run;
struct session;

/* What a command is about, and the directory of its relative file names. */
struct monitor_request {
	struct run *run;
	struct session *session; /* NULL: no program runs yet, or no more */
	const char *directory;
	const char *file;        /* the second word; NULL = none */
	FILE *reply;
	bool wants_detach;       /* set by the command */
};

/*
 * Runs @line, a command and perhaps a file name; its first word may be shortened. The answer is
 * written to r->reply. 0; -EINVAL: no such command; another -errno: the command failed.
 */
int monitor_command_run(struct monitor_request *r, const char *line);

/*
 * The program of @s requests @line itself (a client request). Massif's commands alone, since its
 * thread is stopped in the middle of its work; the answer is a message. A program that has fewer
 * rights than ptmem is refused: it could overwrite any file of the user who profiles it. Whether
 * there is such a command.
 */
bool monitor_command_run_from_program(struct session *s, const char *line);

#endif
