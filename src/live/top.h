/*
 * --top: the table of call sites, refreshed while the program runs. On a terminal and
 * with -p it is a screen with keys; else a table goes to stderr at each interval.
 */
#ifndef PTMEM_TOP_H
#define PTMEM_TOP_H

struct run;
struct top;

/* Starts it if requested (else NULL): observes @run, wakes the loop, opens the screen. */
struct top *top_start(struct run *run);
/* Ends it. NULL is ignored. */
void top_stop(struct top *top);

#endif
