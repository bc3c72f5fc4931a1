/*
 * The server of --listen: a separate process that is started before the program, and receives its
 * data from ptmem (listen_message.h). So no client can stall ptmem, which answers one question at a
 * time, at most every tenth of a second.
 *
 *	client -> http.h -> job -> ask ptmem -> its answer -> answer.h -> client
 *
 * It is not a child of ptmem, whose waits for any child would report it. It still ends when ptmem
 * does, or soon after: connected clients get the final state, and with --listen-linger all do.
 */
#ifndef PTMEM_LISTEN_SERVER_H
#define PTMEM_LISTEN_SERVER_H

#include "listen/http_access.h"
#include "symbols/filter.h"

struct server_options {
	int listening;                 /* of server_socket; the caller's */
	const char *token;             /* NULL = none */
	bool is_open;
	double linger;                 /* seconds for which it answers after the end */
	/* for source lines; the server has copies, which know nothing of the program */
	struct symbols *symbols;
	const struct filter *filter;
};

/* A socket that listens at @a, whose port is filled in; or -errno. */
int server_socket(struct listen_address *a);
/*
 * Starts a server, and returns the socket to it, or -errno. If the server is killed, another one
 * can be started: clients that connect meanwhile wait.
 */
int server_start(const struct server_options *o);
/* Waits until it runs: NULL, or the error message, which the caller frees. */
char *server_wait(int fd);

#endif
