/* Handles one stop at a time; stops that were seen during other work come first. */
#include "tracee/inject/stops.h"

#include "base/clock.h"
#include "tracee/os/stop.h"
#include "tracee/os/wait.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

/* @rc: the result of taking @stop. */
static int serve_now(struct target *t, int rc, struct wait_report stop)
{
	if (rc != 0)
		return rc;
	t->now_ns = clock_now_ns();
	t->hooks.serve_stop(t, stop.tid, stop.status);
	return 0;
}

int stops_serve_next(struct target *t, bool no_wait)
{
	struct wait_report stop = {0};
	int rc = 0;
	if (!pending_stops_take_deferred(&t->pending, &stop))
		rc = wait_peek(0, no_wait, &stop);
	return serve_now(t, rc, stop);
}

int stops_serve_thread(struct target *t, struct thread *th)
{
	struct wait_report stop = {0};
	int rc = wait_peek(th->tid, true, &stop);
	return serve_now(t, rc, stop);
}
