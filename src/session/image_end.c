/* Decides what becomes of a session whose program has ended: a result, or nothing. */
#include "session/image_end.h"

#include <stdlib.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/signal_name.h"
#include "session/ended_forks.h"
#include "session/former_image.h"
#include "session/inspect_final.h"
#include "session/memusage_run.h"
#include "session/observer.h"
#include "session/recording_run.h"
#include "session/session.h"
#include "session/session_files.h"
#include "session/session_life.h"
#include "tracee/pads/pad_delivery.h"
#include "tracee/pads/pad_sampling.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/trap_table.h"

/* NULL: the process ended with an unknown status. The caller frees it. */
static char *describe_end(const struct address_space *space, enum space_end why)
{
	int status = space->processes.exit_status;

	if (why == SPACE_DETACHED)
		return xstrdup("detached");
	if (why != SPACE_EXITED)
		return xstrdup("executed another program");
	if (status < 0)
		return NULL;
	if (WIFEXITED(status))
		return xasprintf("exited %d", WEXITSTATUS(status));
	char name[SIGNAL_NAME_SIZE];

	return xasprintf("killed by %s", signal_name(WTERMSIG(status), name));
}

void image_end(void *ctx, struct address_space *space, enum space_end why)
{
	struct session *s = space->sink.user;
	(void)ctx;
	s->heap.sample.totals = (struct call_totals){0};
	pads_add_totals(space, &s->heap.sample.totals);
	space_count_probes(space, &s->end.probes.jumps, &s->end.probes.breakpoints);
	space_count_markers(space, &s->end.probes.marker_jumps, &s->end.probes.marker_breakpoints);
	space->sink.user = NULL;
	space->sink.unwinder = NULL;
	s->space = NULL;
	_cleanup_free_ char *end = describe_end(space, why);
	bool is_exec = why == SPACE_EXEC || why == SPACE_NEXT_IMAGE;
	s->image.has_executed = is_exec;
	s->image.is_superseded = why == SPACE_NEXT_IMAGE && !s->run->options->children.trace &&
				 !options_sample_only(s->run->options);
	s->image.has_next = why == SPACE_NEXT_IMAGE && !s->image.is_superseded;
	s->image.was_replaced = why == SPACE_EXEC && !s->run->options->children.trace;
	s->process.was_left = why == SPACE_DETACHED;
	s->process.exit_status = why == SPACE_EXITED ? space->processes.exit_status : -1;
	s->end.pauses = space->pauses;
	s->end.time_error_ns = pads_time_error(space);
	/* a fork that executes another program was counted in its parent's file */
	s->process.end_ns = clock_now_ns();
	recording_run_end(s, end);
	inspect_final_classify(s);
	observers_session_ended(s, is_exec);
	if (s->image.is_superseded) {
		former_image_keep(s);
		return;
	}
	if (s->image.is_abandoned && !is_exec) {
		ended_forks_abandon(s);
		return;
	}
	if (!s->image.is_own && !is_exec && ended_forks_wants(s)) {
		ended_forks_keep(s);
		return;
	}
	if (s->image.is_own)
		ended_forks_finish(s->run, s->image.serial);
	memusage_run_end(s, is_exec && (s->run->options->children.trace || !s->image.is_own));
	if (!is_exec || s->image.is_own) {
		session_finish(s, s->process.end_ns);
		session_files_end(s);
	} else {
		recording_run_drop(s);
	}
	observers_session_finished(s);
	session_free(s);
}
