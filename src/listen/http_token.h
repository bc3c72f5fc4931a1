/* --listen-token: a secret that each request must contain. */
#ifndef PTMEM_LISTEN_HTTP_TOKEN_H
#define PTMEM_LISTEN_HTTP_TOKEN_H

#include "base/types.h"

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

#endif
