/* --listen-token: the secret that a request must know. */
#ifndef PTMEM_LISTEN_HTTP_TOKEN_H
#define PTMEM_LISTEN_HTTP_TOKEN_H

#include "base/types.h"

/*
 * Reads @token from the first line of the file @path. NULL, or why not; then the caller frees
 * neither.
 */
const char *http_token_read(const char *path, char **token_out);

/*
 * Whether @header, the value of Authorization (NULL = there is none), is "Bearer TOKEN", or "Basic"
 * with TOKEN as the password. Takes as long for a wrong one as for the right one.
 */
bool http_token_is_right(const char *header, const char *token);

#endif
