/*
 * A program whose ptmem is stopped (SIGSTOP, Ctrl-Z) must not stop with it for long: standby.c has
 * an overview.
 */
#ifndef PTMEM_TRACEE_CONTROL_STANDBY_H
#define PTMEM_TRACEE_CONTROL_STANDBY_H

#include <stdbool.h>
#include <sys/types.h>

struct target;

/* Starts the watcher, unless it runs. A failure is logged: then the program waits for ptmem. */
void standby_start(struct target *t);
/* Ends it. */
void standby_free(struct target *t);

/* Handles what the watcher continued ptmem for, and stops ptmem again. */
void standby_follow(struct target *t);
/* ptmem stops itself, because the program is stopped: it is not to be continued for that one. */
void standby_set_paused(struct target *t, bool is_paused);

#endif
