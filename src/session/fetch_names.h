/* Debug files from debuginfod servers for the names of a session that ends. */
#ifndef PTMEM_FETCH_NAMES_H
#define PTMEM_FETCH_NAMES_H

struct session;

/*
 * Fetches those of the objects in the profiles of @s, unless a process is still traced: that would
 * wait meanwhile. Another SIGINT or SIGTERM to ptmem ends it.
 */
void fetch_names(struct session *s);

#endif
