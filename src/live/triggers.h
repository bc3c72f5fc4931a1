/*
 * --when: conditions that are checked several times a second while programs are profiled, from
 * ptmem's own timer. A condition acts when it begins to hold for a process, and again after it has
 * not held in between, but not too often (condition_note).
 */
#ifndef PTMEM_LIVE_TRIGGERS_H
#define PTMEM_LIVE_TRIGGERS_H

struct run;
struct triggers;

/* 0 and *@out, which is NULL without --when, or -errno after a message. */
int triggers_open(struct run *run, struct triggers **out);
void triggers_close(struct triggers *t); /* NULL is ignored */

#endif
