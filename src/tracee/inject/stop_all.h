/*
 * Waits for stops and has the event loop handle them (t->hooks.serve_stop); stops and resumes all
 * threads of all processes.
 */
#ifndef PTMEM_TRACEE_INJECT_STOP_ALL_H
#define PTMEM_TRACEE_INJECT_STOP_ALL_H

#include <stdbool.h>

#include "base/types.h"

struct target;
struct thread;

/* Waits for one stop and handles it. -EINTR: a signal arrived; -ECHILD: no thread is left. */
int stops_serve_next(struct target *t, bool no_wait);

/* Stops and resumes all threads of all processes. */

struct address_space;

/* Stops all threads of all processes; resumes them. */
void stop_all(struct target *t);
/*
 * All threads are stopped. A thread of @s that was interrupted before the signal of a breakpoint of
 * ours is moved to the stop for that signal, which is handled: work for us would consume the
 * signal, and with it what keeps the thread alive if ptmem dies; and after a detach the signal
 * would be unknown. Stop and continue signals of its process come first and are handled, too. @s
 * may be gone afterwards.
 */
void stop_all_serve_traps(struct target *t, struct address_space *s);
void resume_all(struct target *t);
/*
 * Tells the space with number @only (0: all) that the stop of all threads lasted until @end_ns: for
 * those that ptmem leaves before world_start, which does so otherwise.
 */
void stop_all_note(struct target *t, uint32_t only, uint64_t end_ns);

#endif
