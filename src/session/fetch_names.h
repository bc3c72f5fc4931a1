/* Debug files from debuginfod servers for the names of a session that ends. */
#ifndef PTMEM_FETCH_NAMES_H
#define PTMEM_FETCH_NAMES_H

struct session;

/*
 * Fetches those of the objects in the profiles of @s, unless a process is still traced: that would
 * wait meanwhile. Another SIGINT or SIGTERM to ptmem ends it. If there are any, @prepare is called
 * before.
 */
void fetch_names(struct session *s, void (*prepare)(struct session *s));

#endif
