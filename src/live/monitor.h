/*
 * The server of --monitor in a running ptmem: snapshots and more while the program runs
 * (doc/massif.md 2.14), requested through a socket or by SIGUSR1. It is an observer of the run.
 *
 *	ptmem --monitor=PID COMMAND [FILE]  ->  DIRECTORY/PTMEM-PID.sock  ->  monitor_command_run
 */
#ifndef PTMEM_MONITOR_H
#define PTMEM_MONITOR_H

struct monitor;
struct run;

/* Opens the socket and catches SIGIO and SIGUSR1, which wake the loop. Without a socket, after a
 * verbose message, signals still work. */
struct monitor *monitor_open(struct run *run);
/* Accepts no new clients; monitor_close sends the remaining answers. */
void monitor_stop(struct monitor *m);
/* Gives clients a moment to read their answers. */
void monitor_close(struct monitor *m);

#endif
