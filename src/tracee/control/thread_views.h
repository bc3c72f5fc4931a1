/* The threads of a stopped process with what unwinders need. */
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
	/* in a watched function entered by a breakpoint, whose event is not counted yet */
	bool has_call;
	bool has_returned;              /* from such a call, still in its stub: it is complete */
	const struct stack_view *stack; /* valid during the call; NULL: the thread is exiting */
};

/*
 * Calls @fn for each thread of @s; all are stopped. For threads that exit with their process the
 * position before the exit is known (watch_options.final_scan).
 */
void thread_views_each(struct target *t, struct address_space *s,
		       void (*fn)(void *ctx, const struct thread_view *view), void *ctx);

#endif
