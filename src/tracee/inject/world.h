/* Stops and resumes all threads of all processes. */
#ifndef PTMEM_TRACEE_INJECT_WORLD_H
#define PTMEM_TRACEE_INJECT_WORLD_H

#include "base/types.h"

struct address_space;
struct target;
struct thread;

/* Stops all threads of all processes; resumes them. */
void world_stop(struct target *t);
/*
 * All threads are stopped. A thread of @s that was interrupted before the signal of a breakpoint of
 * ours is moved to the stop for that signal, which is handled: work for us would consume the
 * signal, and with it what keeps the thread alive if ptmem dies; and after a detach the signal
 * would be unknown. Stop and continue signals of its process come first and are handled, too. @s
 * may be gone afterwards.
 */
void world_serve_traps(struct target *t, struct address_space *s);
void world_start(struct target *t);
/*
 * Tells the space with number @only (0: all) that the stop of all threads lasted until @end_ns: for
 * those that ptmem leaves before world_start, which does so otherwise.
 */
void world_note_stop(struct target *t, uint32_t only, uint64_t end_ns);

#endif
