/* Waits for stops and has them served by the event loop (t->hooks.serve_stop). */
#ifndef PTMEM_TRACEE_INJECT_STOPS_H
#define PTMEM_TRACEE_INJECT_STOPS_H

#include <stdbool.h>

struct target;
struct thread;

/* Waits for one stop and serves it. -EINTR: a signal came; -ECHILD: no thread is left. */
int stops_serve_next(struct target *t, bool no_wait);
/* Serves the stop of @th, which may be gone then. -EAGAIN: it runs; -ECHILD: it is not ours. */
int stops_serve_thread(struct target *t, struct thread *th);

#endif
