/* Keeps the session of a program until the profile of its successor begins. */
#include "session/former_image.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/proc.h"
#include "session/ended_forks.h"
#include "session/memusage_run.h"
#include "session/observer.h"
#include "session/recording_run.h"
#include "session/session.h"
#include "session/session_files.h"
#include "session/session_life.h"
#include "tracee/state/space.h"

/* Returns what is kept for @pid, now the caller's, or NULL. */
static struct session *take(struct run *run, pid_t pid)
{
	struct process_files *p = run_process(run, (uint32_t)pid);
	struct session *s = p->former;

	p->former = NULL;
	return s;
}

static void note_successor(struct session *s)
{
	free(s->image.successor);
	s->image.successor = proc_read_link((pid_t)s->process.pid, "exe");
}

void former_image_keep(struct session *s)
{
	session_unlist(s);
	note_successor(s);
	run_process(s->run, s->process.pid)->former = s;
}

void former_image_refused(void *ctx, struct address_space *space, const char *why)
{
	struct session *s = run_process(ctx, (uint32_t)space->processes.pid)->former;

	if (!s)
		return;
	note_successor(s);
	free(s->image.successor_problem);
	s->image.successor_problem = xstrdup(why);
}

void former_image_supersede(struct run *run, pid_t pid)
{
	struct session *s = take(run, pid);

	if (!s)
		return;
	ended_forks_drop(run, s->image.serial);
	memusage_run_end(s, true);
	recording_run_drop(s);
	session_files_supersede(s);
	observers_session_finished(s);
	session_free(s);
}

void former_image_process_left(void *ctx, pid_t pid, enum space_end why)
{
	struct session *s = why == SPACE_NEXT_IMAGE ? NULL : take(ctx, pid);

	if (!s)
		return;
	s->image.is_superseded = false;
	s->image.was_replaced = true;
	ended_forks_finish(s->run, s->image.serial);
	memusage_run_end(s, false);
	session_finish(s, s->process.end_ns);
	session_files_end(s);
	observers_session_finished(s);
	session_free(s);
}
