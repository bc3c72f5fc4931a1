/* The start and end of a session. */
#ifndef PTMEM_SESSION_LIFE_H
#define PTMEM_SESSION_LIFE_H

#include "base/types.h"

struct address_space;
struct run;
struct session;

/* A session of @pid without an address space, starting at @start_ns. Owned by the run until
 * session_free. */
struct session *session_new(struct run *run, uint32_t pid, uint64_t start_ns);
/* The session of @space, a forked child: inherits everything that @parent has counted so far. */
struct session *session_fork(struct session *parent, struct address_space *space);
/* Attaches @s to its address space and creates the unwinder. */
void session_bind(struct session *s, struct address_space *space);
void session_free(struct session *s);
/* Removes @s from the run's sessions. */
void session_unlist(struct session *s);
/* Ends the profile, writes its files and prints the summary. */
void session_finish(struct session *s, uint64_t now_ns);

#endif
