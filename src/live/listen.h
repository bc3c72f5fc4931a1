/*
 * --listen in ptmem: starts the server (listen/server.h) and answers its questions between events.
 * It observes the run.
 */
#ifndef PTMEM_LIVE_LISTEN_H
#define PTMEM_LIVE_LISTEN_H

struct listen;
struct run;

/*
 * Starts the server and prints its address. 0 and *out, NULL if --listen is not asked for, or
 * -errno after a message.
 */
int listen_open(struct run *run, struct listen **out);
/* The program is there: questions are answered from now on. NULL is nothing, as below. */
void listen_begin(struct listen *l);
/* The server ends. */
void listen_close(struct listen *l);

#endif
