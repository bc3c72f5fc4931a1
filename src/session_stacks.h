/*
 * The stacks of threads. memusage is told where the first one's begins.
 *
 * --stacks=yes: from stack pointers (at every event, and by the clock) to the bytes of
 * stack in the profile (spec/massif.md 2.10).
 *
 *	a stack pointer -> struct stacks -> EVENT_STACK, where the sum changed -> profile
 *
 * A stack pointer that comes with an event of the heap counts before that event.
 */
#ifndef PTMEM_SESSION_STACKS_H
#define PTMEM_SESSION_STACKS_H

#include "options.h"
#include "profile/stacks.h"
#include "target/target.h"

struct session;

/* What the target must do for it, after all others have said theirs. */
void session_stacks_fill(const struct options *o, struct target_options *to,
			 struct target_sink *sink);

/* @s begins, or goes on in a forked child: nothing is known of any stack. */
void session_stacks_init(struct session *s);
/* Looks at the stack pointer of @he, if it has one. */
void session_stacks_see(struct session *s, const struct heap_event *he);
/* The process ends, or stack_gone has told of it. */
void session_stacks_thread_exit(struct session *s, uint32_t thread);

#endif
