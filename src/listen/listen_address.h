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
#ifndef PTMEM_LISTEN_LISTEN_ADDRESS_H
#define PTMEM_LISTEN_LISTEN_ADDRESS_H

#include <netinet/in.h>

#include "base/types.h"

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

#endif
