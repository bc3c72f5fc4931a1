/*
 * The server of --listen: a process of its own, which is started before the program and knows only
 * what ptmem tells it (listen_message.h). So nothing that a client does can stop ptmem, which
 * answers one question at a time, at most every tenth of a second.
 *
 *	client -> http.h -> job -> ask ptmem -> its answer -> answer.h -> client
 *
 * It is not a child of ptmem, whose waits would find it. It ends when ptmem does, however.
 */
#ifndef PTMEM_LISTEN_SERVER_H
#define PTMEM_LISTEN_SERVER_H

#include "listen/listen_address.h"

struct server_options {
	struct listen_address address; /* with the port that was found, once it runs */
	const char *token;             /* NULL = none */
	bool is_open;
};

/* The socket to it, or -errno after *why_out, which the caller frees. */
int server_start(struct server_options *o, char **why_out);

#endif
