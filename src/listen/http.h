/*
 * The HTTP side of --listen: a thread of libmicrohttpd takes requests, refuses those that are not
 * allowed, and hands the others over as jobs. The thread that called http_start answers them, when
 * it can. A connection of a job waits without costing anything.
 *
 *	connection -> is it allowed? -> job -> http_take ... http_finish -> answer
 *
 * Allowed is (listen_address.h, peer_owner.h):
 *	with a token        who knows it: as Bearer, or as a password of Basic
 *	with --listen-open  anyone
 *	else                this user and root, on this machine
 *
 * Bounded are connections (if there are many, idle ones are closed), the size of a request, and the
 * bytes of all answers that clients have not read yet. No path of a request is one of a file.
 *
 * libmicrohttpd is loaded when it is needed: ptmem runs without it, and does not wait for what it
 * needs itself.
 */
#ifndef PTMEM_LISTEN_HTTP_H
#define PTMEM_LISTEN_HTTP_H

#include <stddef.h>

#include "base/types.h"

enum http_path {
	HTTP_REPORT, HTTP_JSON, HTTP_RECORDING, HTTP_HEAP, HTTP_ALLOCS, HTTP_METRICS, HTTP_HEALTH,
	HTTP_PATHS,
};

struct http_options {
	int fd;              /* a listening socket, which is the server's from now on */
	const char *token;   /* NULL = none */
	bool is_open;        /* anyone may ask */
	int wake_fd;         /* an eventfd, written when there is a job */
};

/* A request, and its answer. */
struct http_job {
	enum http_path path;
	uint32_t pid;             /* ?pid=; 0 = not given */
	uint32_t seconds;         /* ?seconds=; 0 = not given */
	bool takes_gzip, takes_openmetrics;

	unsigned status;          /* 200 */
	const char *type;         /* of the content */
	const char *file_name;    /* under which a browser saves it; NULL = it shows it */
	bool is_gzip;             /* the body is packed (Content-Encoding) */
	char *body;               /* malloc'ed; the job's */
	size_t size;

	struct http *http;        /* for http.c alone, as all below */
	void *connection;
	struct http_job *next;
};

#define HTTP_MAX_SECONDS 3600

/* Why not; NULL: it runs. */
const char *http_start(const struct http_options *o, struct http **out);

/* The next job, or NULL. */
struct http_job *http_take(struct http *h);
/* @job is answered, and not the caller's any more. */
void http_finish(struct http_job *job);

/* An answer that is a line of text. */
void http_say(struct http_job *job, unsigned status, const char *text);

#endif
