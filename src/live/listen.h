/*
 * ptmem's side of --listen: starts the server (listen/server.h) and answers its questions between
 * events, as an observer of the run.
 */
#ifndef PTMEM_LIVE_LISTEN_H
#define PTMEM_LIVE_LISTEN_H

struct listen;
struct run;

/*
 * Starts the server and prints its address. 0 and *out, which is NULL without --listen, or -errno
 * after a message.
 */
int listen_open(struct run *run, struct listen **out);
/* The program runs: questions are answered from now on. NULL is ignored, also below. */
void listen_begin(struct listen *l);
/* ptmem is about to detach from all programs, whose final states are to be sent then. */
void listen_leave(struct listen *l);
/* Ends the server. */
void listen_close(struct listen *l);

#endif
