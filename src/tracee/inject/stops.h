/* Waits for stops and has the event loop handle them (t->hooks.serve_stop). */
#ifndef PTMEM_TRACEE_INJECT_STOPS_H
#define PTMEM_TRACEE_INJECT_STOPS_H

#include <stdbool.h>

struct target;
struct thread;

/* Waits for one stop and handles it. -EINTR: a signal arrived; -ECHILD: no thread is left. */
int stops_serve_next(struct target *t, bool no_wait);
/*
 * Handles the stop of @th, which may be gone afterwards. -EAGAIN: it is running; -ECHILD: it is not
 * ours.
 */
int stops_serve_thread(struct target *t, struct thread *th);

#endif
