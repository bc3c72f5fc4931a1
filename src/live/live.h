/*
 * Components beside the loop of a run that have no header of their own. Each is started with the
 * run's options, works as an observer, and is NULL if it is not asked for, which is ignored.
 */
#ifndef PTMEM_LIVE_LIVE_H
#define PTMEM_LIVE_LIVE_H

struct listen;
struct run;
struct triggers;

/*
 * ptmem's side of --listen: starts the server (listen/server.h) and answers its questions between
 * events.
 */

/* Starts the server and prints its address. 0 and *out, or -errno after a message. */
int listen_open(struct run *run, struct listen **out);
/* The program runs: questions are answered from now on. */
void listen_begin(struct listen *l);
/* ptmem is about to detach from all programs, whose final states are to be sent then. */
void listen_leave(struct listen *l);
/* Ends the server. */
void listen_close(struct listen *l);

/*
 * --when: conditions that are checked several times a second while programs are profiled, from
 * ptmem's own timer. A condition acts when it begins to hold for a process, and again after it has
 * not held in between, but not too often (condition_note).
 */

/* 0 and *@out, or -errno after a message. */
int triggers_open(struct run *run, struct triggers **out);
void triggers_close(struct triggers *t);

#endif
