/*
 * Who may ask the server for what: the address that it listens at, the target of a request, the
 * token, and the user at the other end of a connection.
 */
#ifndef PTMEM_LISTEN_HTTP_ACCESS_H
#define PTMEM_LISTEN_HTTP_ACCESS_H

#include <netinet/in.h>
#include <sys/types.h>

#include "base/types.h"
#include "listen/http.h"

/*
 * --listen=ADDRESS:PORT: where the server listens, and which host names requests may use for it.
 *
 *	(nothing)          127.0.0.1, a free port
 *	8080               127.0.0.1, this port
 *	localhost:8080     the same
 *	[::1]:8080         IPv6
 *	10.0.0.7:8080      any other address of this machine; 0.0.0.0 and [::] are all of them
 *
 * Names are not looked up. Port 0 is a free port.
 */

struct listen_address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
	socklen_t size;
};

/* Parses @text. Returns NULL, or the error message. */
const char *listen_address_parse(const char *text, struct listen_address *out);

/* Whether only this machine can reach it. */
bool listen_address_is_loopback(const struct listen_address *a);

/* "http://127.0.0.1:8080/"; the caller frees it. */
char *listen_address_url(const struct listen_address *a);

/*
 * Whether @host, the Host header of a request, is a name for this server that no web site can
 * claim: an address, "localhost", or @own_name. In DNS rebinding, a site's name is made to resolve
 * to this address, but the browser still sends that name. The port is ignored, since it may be
 * forwarded.
 */
bool listen_address_is_own_host(const char *host, const char *own_name);

/*
 * The target of a request: "/path", or "http://host/path", which servers must accept, too (RFC
 * 9112, section 3.2.2).
 */

#define HTTP_TARGET_HOST 256

struct http_target {
	const char *path;            /* part of what was parsed */
	char host[HTTP_TARGET_HOST]; /* "" = none */
};

/* @text: decoded, without arguments. False: its host is too long. */
bool http_target_parse(const char *text, struct http_target *out);

/* HTTP_PATHS: there is no such path. */
enum http_path http_target_find(const char *path);

/* All paths, a line each, for those who look for one. */
extern const char http_target_list[];

/* Parses an argument, a number up to @most; NULL is 0. False if it is malformed. */
bool http_target_number(const char *text, uint32_t most, uint32_t *out);

/*
 * Whether @text, as received, is what libmicrohttpd can handle: it leaves a request with many
 * arguments without an answer (0.9.75), and takes an encoded NUL for the end of a text.
 */
bool http_target_is_sound(const char *text);

/* --listen-token: a secret that each request must contain. */

/*
 * Reads @token from the first line of the file @path. Returns NULL, or the error message; the
 * caller frees neither.
 */
const char *http_token_read(const char *path, char **token_out);

/*
 * Whether @header, the value of Authorization (NULL = there is none), is "Bearer TOKEN", or "Basic"
 * with TOKEN as the password. The comparison takes constant time.
 */
bool http_token_is_right(const char *header, const char *token);

/* Finds the user at the other end of a connection within this machine. */

/*
 * The owner of the other end of the TCP connection @fd, if that is on this machine, by
 * sock_diag(7). Returns 0 or -errno; -ENOENT if there is no such socket (any more).
 */
int peer_owner_find(int fd, uid_t *out);

#endif
