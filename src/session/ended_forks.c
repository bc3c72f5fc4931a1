/* Keeps sessions of forked children until it is known whether their program was a wrapper. */
#include "session/ended_forks.h"

#include <string.h>

#include "base/clock.h"
#include "session/memusage_run.h"
#include "session/observer.h"
#include "session/recording_run.h"
#include "session/session.h"
#include "session/session_files.h"
#include "session/session_life.h"
#include "tracee/control/left_children.h"
#include "tracee/control/timers.h"

#define WRAPPER_NS 10000000000ull /* a program that has run for longer is no wrapper */
#define MOST_BYTES (UINT64_C(64) << 20)

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

bool ended_forks_wants(const struct session *s)
{
	const struct options *o = s->run->options;
	const struct session *program = find_program(s->run, s->image.serial);

	return o->children.follow_exec && !o->children.trace && !options_sample_only(o) &&
	       program && s->process.end_ns < program->process.start_ns + WRAPPER_NS;
}

static void finish(struct session *s)
{
	memusage_run_end(s, false);
	session_finish(s, s->process.end_ns);
	observers_session_finished(s);
	session_free(s);
}

void ended_forks_abandon(struct session *s)
{
	left_children_note_ended(s->run->target);
	memusage_run_end(s, true);
	recording_run_drop(s);
	observers_session_finished(s);
	session_free(s);
}

static uint64_t bytes_of(const struct session *s)
{
	return profile_memory(s->heap.profile) +
	       calltree_memory(profile_calltree(s->heap.profile)) +
	       blocks_memory(profile_blocks(s->heap.profile));
}

static struct session *take(struct run *run, size_t i)
{
	struct session *s = run->ended_forks.data[i];

	run->ended_fork_bytes -= bytes_of(s);
	memmove(&run->ended_forks.data[i], &run->ended_forks.data[i + 1],
		(--run->ended_forks.count - i) * sizeof(*run->ended_forks.data));
	return s;
}

void ended_forks_keep(struct session *s)
{
	struct run *run = s->run;

	session_files_end(s); /* another process may get this id meanwhile */
	session_unlist(s);
	*vec_add(&run->ended_forks) = s;
	run->ended_fork_bytes += bytes_of(s);
	timers_tick_by(run->target, clock_now_ns() + WRAPPER_NS);
	while (run->ended_fork_bytes > MOST_BYTES)
		finish(take(run, 0));
}

static void end_all(struct run *run, uint32_t program, void (*end)(struct session *s))
{
	for (size_t i = 0; i < run->ended_forks.count;) {
		if (run->ended_forks.data[i]->image.serial == program)
			end(take(run, i));
		else
			i++;
	}
}

void ended_forks_finish(struct run *run, uint32_t program)
{
	end_all(run, program, finish);
}

void ended_forks_drop(struct run *run, uint32_t program)
{
	end_all(run, program, ended_forks_abandon);
	for (size_t i = 0; i < run->sessions.count; i++) {
		struct session *s = run->sessions.data[i];

		s->image.is_abandoned |= !s->image.is_own && s->image.serial == program;
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
			finish(take(run, i));
		} else {
			next = MIN(next, end_ns);
			i++;
		}
	}
	return next;
}
