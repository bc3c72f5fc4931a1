/*
 * The HTTP side of --listen: a thread of libmicrohttpd takes requests, refuses those that are not
 * allowed, and queues the others as jobs. The thread that called http_start answers them when it
 * can. A connection that waits for its job costs nothing.
 *
 *	connection -> is it allowed? -> job -> http_take ... http_finish -> answer
 *
 * Allowed is (http_access.h, http_access.h):
 *	with a token        clients that send it: as Bearer token, or as Basic password
 *	with --listen-open  anyone
 *	else                this user and root, on this machine
 *
 * POST, which makes ptmem stop the program, is answered for HTTP_GRAPH, but not if anyone is
 * allowed, and not if another site's page sends it.
 *
 * Limits apply to the number of connections (idle ones are closed first), the size of a request,
 * and the bytes of all answers that clients have not read yet. Request paths are never used as file
 * paths.
 *
 * libmicrohttpd is loaded only when needed: ptmem runs without it, and does not load its
 * dependencies at each start.
 */
#ifndef PTMEM_LISTEN_HTTP_H
#define PTMEM_LISTEN_HTTP_H

#include <stddef.h>

#include "base/types.h"

enum http_path {
	HTTP_REPORT, HTTP_JSON, HTTP_RECORDING, HTTP_GRAPH, HTTP_HEAP, HTTP_ALLOCS, HTTP_METRICS,
	HTTP_HEALTH, HTTP_PATHS,
};

struct http_options {
	int fd;              /* a listening socket, owned by the server from then on */
	const char *token;   /* NULL = none */
	bool is_open;        /* anyone may send requests */
	int wake_fd;         /* an eventfd, written when there is a job */
};

/* A request and its answer. */
struct http_job {
	enum http_path path;
	uint32_t pid;             /* ?pid=; 0 = not given */
	uint32_t seconds;         /* ?seconds=; 0 = not given */
	bool takes_gzip, takes_openmetrics;
	bool is_post;             /* of HTTP_GRAPH only: a new graph is wanted */

	unsigned status;          /* 200 */
	const char *type;         /* MIME type */
	const char *file_name;    /* proposed to browsers for saving; NULL = display */
	bool is_gzip;             /* the body is compressed (Content-Encoding) */
	uint32_t graph;           /* number of the heap graph that it is; 0 = none */
	char *body;               /* malloc'ed; owned by the job */
	size_t size;

	struct http *http;        /* private to http.c, like all fields below */
	void *connection;
	bool is_queued;
	struct http_job *next;
};

#define HTTP_MAX_SECONDS 3600

/* NULL: the server runs; otherwise the error message. */
const char *http_start(const struct http_options *o, struct http **out);

/* Accepts no new connections: another server can use the address. */
void http_stop_listening(struct http *h);
/* The number of open connections. */
unsigned http_connections(const struct http *h);

/* Takes the next job, or NULL. */
struct http_job *http_take(struct http *h);
/* Whether the client of @job, which was taken, has closed its connection, or its half of it. */
bool http_is_abandoned(const struct http_job *job);
/* Sends the answer of @job, which the caller must not use any more. */
void http_finish(struct http_job *job);

/* Sets an answer of one line of text. */
void http_answer(struct http_job *job, unsigned status, const char *text);

#endif
