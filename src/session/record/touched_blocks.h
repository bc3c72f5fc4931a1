/*
 * How much of its large blocks a program has touched, for the file of events: ptmem-report
 * --what-if repeats that. Hides: when their pages are read, and that a measurement does not count
 * for the block that came after.
 */
#ifndef PTMEM_SESSION_RECORD_TOUCHED_BLOCKS_H
#define PTMEM_SESSION_RECORD_TOUCHED_BLOCKS_H

#include "profile/event.h"

struct run;
struct session;
struct touched_blocks;

/* Of a session whose file of events has begun; NULL: it has none, or samples only. */
struct touched_blocks *touched_blocks_new(const struct session *s);
void touched_blocks_free(struct touched_blocks *t); /* may be NULL */

/* Before @ev is written. */
void touched_blocks_event(struct session *s, const struct event *ev);
/* When it has to be called again. */
uint64_t touched_blocks_tick(struct run *run, uint64_t now_ns);
/* The process ends, but still has its memory. */
void touched_blocks_end(struct session *s);

#endif
