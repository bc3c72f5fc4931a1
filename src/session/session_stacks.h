/*
 * The stacks of threads: their ranges for memusage, their use for the profile (--stacks=yes,
 * doc/massif.md 2.10). Stack pointers come with events, and from samples.
 *
 *	a stack pointer -> struct stacks -> EVENT_STACK, where the sum changed -> profile
 *
 * A stack pointer that comes with an event of the heap counts before that event.
 */
#ifndef PTMEM_SESSION_STACKS_H
#define PTMEM_SESSION_STACKS_H

#include "profile/stacks.h"
#include "tracee/state/event_sink.h"

struct session;

/* A thread of @s begins, or existed when @s began. */
void session_stacks_new(struct session *s, const struct thread_stack_info *info);
/* A thread has ended while others continue. */
void session_stacks_gone(struct session *s, pid_t tid);

/* @s begins, or is a forked child: no stacks are known. */
void session_stacks_init(struct session *s);
/* Updates the stacks with the stack pointer of @he, if it has one. */
void session_stacks_see(struct session *s, const struct heap_event *he);
/* A thread has ended: after session_stacks_gone, or with its process. */
void session_stacks_thread_exit(struct session *s, uint32_t thread);

#endif
