/* A realloc in two halves, for profile.c: in between the block is held, in no table. */
#ifndef PTMEM_PROFILE_REALLOC_H
#define PTMEM_PROFILE_REALLOC_H

#include "profile/event.h"

struct profile;

/* Whether @thread is in a realloc of the block at @addr, which was known. */
bool realloc_is_begun(const struct profile *p, uint32_t thread, taddr_t addr);
void realloc_begin(struct profile *p, const struct event *ev);
void realloc_end(struct profile *p, const struct event *ev);

/* Undo the first halves of @thread, or of all threads: their second halves will not come. */
void realloc_undo_thread(struct profile *p, uint32_t thread);
void realloc_undo_all(struct profile *p);

#endif
