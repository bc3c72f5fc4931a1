/* The client: ptmem --monitor=PID COMMAND [FILE]. */
#ifndef PTMEM_MONITOR_CLIENT_H
#define PTMEM_MONITOR_CLIENT_H

#include <sys/types.h>

/*
 * Sends a command to @pid's ptmem, or the one that traces @pid, and prints the answer. Returns the
 * exit status.
 */
int monitor_client_run(pid_t pid, char *const words[]);

#endif
