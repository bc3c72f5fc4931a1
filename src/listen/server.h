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

#include "listen/listen_address.h"
#include "symbols/filter.h"

struct server_options {
	struct listen_address address; /* @address: the port is filled in once the server runs */
	const char *token;             /* NULL = none */
	bool is_open;
	double linger;                 /* seconds for which it answers after the end */
	/* for source lines; the server has copies, which know nothing of the program yet */
	struct symbols *symbols;
	const struct filter *filter;
};

/* Returns the socket to the server, or -errno and sets *why_out, which the caller frees. */
int server_start(struct server_options *o, char **why_out);

#endif
