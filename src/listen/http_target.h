/*
 * The target of a request: "/path", or "http://host/path", which servers must accept, too (RFC
 * 9112, section 3.2.2).
 */
#ifndef PTMEM_LISTEN_HTTP_TARGET_H
#define PTMEM_LISTEN_HTTP_TARGET_H

#include "base/types.h"
#include "listen/http.h"

#define HTTP_TARGET_HOST 256

struct http_target {
	const char *path;            /* part of what was parsed */
	char host[HTTP_TARGET_HOST]; /* "" = none */
};

/* @text: decoded, without arguments. False: its host is too long. */
bool http_target_parse(const char *text, struct http_target *out);

/* HTTP_PATHS: there is no such path. */
enum http_path http_target_find(const char *path);

/* Parses an argument, a number up to @most; NULL is 0. False if it is malformed. */
bool http_target_number(const char *text, uint32_t most, uint32_t *out);

/*
 * Whether @text, as received, is what libmicrohttpd can handle: it leaves a request with many
 * arguments without an answer (0.9.75), and takes an encoded NUL for the end of a text.
 */
bool http_target_is_sound(const char *text);

#endif
