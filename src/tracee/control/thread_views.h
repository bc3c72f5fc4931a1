/* The threads of a stopped process: where they are, and what unwinders need. */
#ifndef PTMEM_TRACEE_CONTROL_THREAD_VIEWS_H
#define PTMEM_TRACEE_CONTROL_THREAD_VIEWS_H

#include <sys/types.h>

#include "base/types.h"
#include "tracee/state/heap_event.h"

struct address_space;
struct target;

struct thread_view {
	pid_t tid;
	taddr_t pc, sp, thread_pointer;
	/* a watched function was entered by a breakpoint, and its event was not counted yet */
	bool has_call;
	bool has_returned;              /* from one, and is in its stub: the call is complete */
	const struct stack_view *stack; /* valid during the call; NULL: it is exiting */
};

/*
 * Calls @fn for each thread of @s; all are stopped. Of threads that the end of their process makes
 * exit it is known where they were (target_options.final_scan).
 */
void thread_views_each(struct target *t, struct address_space *s,
		       void (*fn)(void *ctx, const struct thread_view *view), void *ctx);

#endif
