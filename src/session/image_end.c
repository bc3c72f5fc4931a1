/*
 * The end of a program. Its session, and those of its forks that have ended, are kept until it is
 * known whether another program's profile takes their place.
 */
#include "session/runtimes/code_names.h"
#include "session/runtimes/runtime_system.h"
#include "session/session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/proc.h"
#include "base/text.h"
#include "session/inspect/inspect_session.h"
#include "session/memusage_run.h"
#include "session/observer.h"
#include "session/out.h"
#include "session/record/recording_run.h"
#include "tracee/calls/confirm.h"
#include "tracee/control/left_children.h"
#include "tracee/control/timers.h"
#include "tracee/pads/heap_sampling.h"
#include "tracee/pads/pads.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/trap_table.h"

#define WRAPPER_NS 10000000000ull /* a program that has run for longer is no wrapper */
#define MOST_BYTES (UINT64_C(64) << 20)
#define FORK_BYTES (UINT64_C(1) << 20) /* allocated by a fork, before it executes another program */

/* The session of @program itself: its process runs it, or what it executed is not profiled. */
static const struct session *find_program(const struct run *run, uint32_t program)
{
	for (size_t i = 0; i < run->sessions.count; i++) {
		const struct session *s = run->sessions.data[i];

		if (s->image.is_own && s->image.serial == program)
			return s;
	}
	for (size_t i = 0; i < run->processes.count; i++) {
		const struct session *s = run->processes.data[i].former;

		if (s && s->image.serial == program)
			return s;
	}
	return NULL;
}

/*
 * Whether @s, a forked child that has ended, is to be kept. Its program, as any wrapper script,
 * began not long ago.
 */
static bool ended_forks_wants(const struct session *s)
{
	const struct options *o = s->run->options;
	const struct session *program = find_program(s->run, s->image.serial);

	return o->children.follow_exec && !o->children.trace && !options_sample_only(o) &&
	       program && s->process.end_ns < program->process.start_ns + WRAPPER_NS;
}

/*
 * The end of @s: its files are written if it @is_result. @is_replaced: it executed another program
 * that is counted as well (memusage_run_end).
 */
static void end_profile(struct session *s, bool is_result, bool is_replaced)
{
	const struct observer *o;

	memusage_run_end(s, is_replaced);
	if (is_result) {
		session_finish(s, s->process.end_ns);
		out_end(s);
	} else {
		recording_run_drop(s);
	}
	observers_each(o, s->run, session_finished)
		o->session_finished(o->ctx, s);
	session_free(s);
}

static uint64_t bytes_of(const struct session *s)
{
	return profile_memory(s->heap.profile) +
	       calltree_memory(profile_calltree(s->heap.profile)) +
	       blocks_memory(profile_blocks(s->heap.profile));
}

static struct session *take_fork(struct run *run, size_t i)
{
	struct session *s = run->ended_forks.data[i];

	run->ended_fork_bytes -= bytes_of(s);
	memmove(&run->ended_forks.data[i], &run->ended_forks.data[i + 1],
		(--run->ended_forks.count - i) * sizeof(*run->ended_forks.data));
	return s;
}

/* Takes @s over; it is no longer among the run's sessions. */
static void ended_forks_keep(struct session *s)
{
	struct run *run = s->run;

	out_end(s); /* another process may get this id meanwhile */
	session_unlist(s);
	*vec_add(&run->ended_forks) = s;
	run->ended_fork_bytes += bytes_of(s);
	timers_tick_by(run->target, clock_now_ns() + WRAPPER_NS);
	while (run->ended_fork_bytes > MOST_BYTES)
		end_profile(take_fork(run, 0), true, false);
}

/* Program @program (session_image.serial) has ended: what its forks had is a result, or nothing. */
static void end_forks(struct run *run, uint32_t program, bool is_result)
{
	for (size_t i = 0; i < run->ended_forks.count;) {
		if (run->ended_forks.data[i]->image.serial != program) {
			i++;
			continue;
		}
		if (!is_result)
			left_children_note_ended(run->target);
		end_profile(take_fork(run, i), is_result, !is_result);
	}
}

uint64_t ended_forks_tick(struct run *run, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < run->ended_forks.count;) {
		const struct session *s = run->ended_forks.data[i];
		const struct session *program = find_program(run, s->image.serial);
		uint64_t end_ns = program ? program->process.start_ns + WRAPPER_NS : 0;

		if (now_ns >= end_ns) {
			end_profile(take_fork(run, i), true, false);
		} else {
			next = MIN(next, end_ns);
			i++;
		}
	}
	return next;
}

/* Keeps the session of a program until the profile of its successor begins. */

/* Returns what is kept for @pid, now the caller's, or NULL. */
static struct session *take_former(struct run *run, pid_t pid)
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

/* @s has ended by exec (image.is_superseded). Takes it over. */
static void former_image_keep(struct session *s)
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
	if (s->image.successor)
		out_list_name(&s->image.passed, &s->image.passed_count,
			      text_base_name(s->image.successor));
}

void former_image_supersede(struct run *run, pid_t pid)
{
	struct session *s = take_former(run, pid);

	if (!s)
		return;
	end_forks(run, s->image.serial, false);
	for (size_t i = 0; i < run->sessions.count; i++) {
		struct session *fork = run->sessions.data[i];

		fork->image.is_abandoned |=
			!fork->image.is_own && fork->image.serial == s->image.serial;
	}
	out_supersede(s);
	end_profile(s, false, true);
}

void former_image_process_left(void *ctx, pid_t pid, enum space_end why)
{
	struct session *s = why == SPACE_NEXT_IMAGE ? NULL : take_former(ctx, pid);

	if (!s)
		return;
	s->image.is_superseded = false;
	s->image.was_replaced = true;
	end_forks(s->run, s->image.serial, true);
	end_profile(s, true, false);
}

/* Decides what becomes of a session whose program has ended: a result, or nothing. */

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

/*
 * With malloc's family at addresses of the user's: all that it releases must be its own.
 */
/*
 * Whether all that is released must have been allocated before: glibc's threads release what is in
 * their caches once more.
 */
static bool must_know_frees(const struct session *s)
{
	return !s->image.was_attached && (s->end.guess == GUESS_MUSL ||
					  s->end.guess == GUESS_JEMALLOC ||
					  custom_probes_have_guesses(&s->run->probes));
}

static bool frees_are_confirmed(const struct session *s)
{
	const struct profile_totals *p = profile_totals(s->heap.profile);
	uint64_t unknown = p->unknown_frees;

	const struct custom_probe *unused = custom_probes_unused_free(&s->run->probes);
	if (unused && p->allocations > 0) {
		log_error("process %u: --probe=%s: it was never called, although there are blocks; "
			  "there will be no profile", s->process.pid, unused->text);
		return false;
	}
	if (!unknown || !must_know_frees(s))
		return true;
	log_error("process %u: %s: %" PRIu64 " of %" PRIu64 " frees are of blocks that were "
		  "not allocated by the functions at these addresses: one is wrong, or is "
		  "missing; there will be no profile", s->process.pid,
		  s->end.guess ? "malloc as found by its code" : "--probe", unknown,
		  p->frees + unknown);
	return false;
}

/*
 * Whether @s is a result. Of a fork that executes another program mostly its parent's profile has
 * all: shells allocate a little in theirs. One that needs much has a profile, if the other program
 * has one, too: else the largest process may be in none.
 */
static bool is_result(const struct session *s, bool is_exec)
{
	uint64_t bytes = profile_totals(s->heap.profile)->allocated_bytes;

	return !is_exec || s->image.is_own ||
	       (s->run->options->children.trace && s->image.has_next &&
		bytes - s->process.inherited.totals.allocated_bytes >= FORK_BYTES);
}

void image_end(void *ctx, struct address_space *space, enum space_end why)
{
	struct session *s = space->sink.user;
	const struct observer *o;
	(void)ctx;
	s->heap.sample.totals = (struct call_totals){0};
	heap_sampling_add_totals(space, &s->heap.sample.totals);
	space_count_probes(space, &s->end.probes.jumps, &s->end.probes.breakpoints);
	space_count_markers(space, &s->end.probes.marker_jumps, &s->end.probes.marker_breakpoints);
	code_names_finish(s);
	if (why == SPACE_DETACHED)
		runtime_system_measure(s, space->processes.reader);
	space->sink.user = NULL;
	space->sink.unwind = NULL;
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
	s->end.guess = space->watch.guess;
	/* a fork that executes another program was counted in its parent's file */
	s->process.end_ns = space->pauses.left_ns ? space->pauses.left_ns : clock_now_ns();
	recording_run_end(s, end);
	inspect_final_classify(s);
	observers_each(o, s->run, session_ended)
		o->session_ended(o->ctx, s, is_exec);
	if (space->watch.is_unconfirmed || space->watch.is_disproved ||
	    (!is_exec && !confirm_has_profile(space)) || !frees_are_confirmed(s)) {
		s->run->files_failed++;
		end_profile(s, false, true);
	} else if (s->image.is_superseded) {
		former_image_keep(s);
	} else if (s->image.is_abandoned && !is_exec) {
		left_children_note_ended(s->run->target);
		end_profile(s, false, true);
	} else if (!s->image.is_own && !is_exec && ended_forks_wants(s)) {
		ended_forks_keep(s);
	} else {
		if (s->image.is_own)
			end_forks(s->run, s->image.serial, true);
		end_profile(s, is_result(s, is_exec),
			    is_exec && (s->run->options->children.trace || !s->image.is_own));
	}
}
