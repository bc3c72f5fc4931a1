/* Decides when reports are made, without details of leaks or graphs. */
#include "session/session_output.h"

#include "session/inspect/cold_watch.h"
#include "session/inspect/copy_ahead.h"
#include "session/inspect/final_scan.h"
#include "session/inspect/inspect_session.h"
#include "session/inspect/leak_report.h"
#include "session/session.h"
#include "session/signals.h"
#include "tracee/control/target.h"

/* The part of it that SIGUSR1 triggers, too. */
static void finish(struct session *s, uint64_t time_ns, bool is_running)
{
	copy_ahead_unwatch(s);
	if (options_report_leaks(s->run->options))
		leak_report_finish(s, time_ns, is_running);
	if (s->run->options->inspect.at_exit)
		inspect_final_finish(s);
	copy_ahead_forget(s);
}

void reports_finish(struct session *s, uint64_t time_ns)
{
	for (int k = 0; k < SOURCE_COUNT; k++) {
		if (s->source[k].is_traced)
			path_report_write(&s->source[k]);
	}
	if (!s->end.is_draft)
		finish(s, time_ns, s->process.was_left);
}

/* -- scans -- */

struct sessions {
	VEC(struct session *) list;
};

void reports_prepare_scan(void *ctx, uint32_t only)
{
	final_scan_prepare(ctx, only);
}

static void scan(struct session *s, bool is_last)
{
	if (s->run->options->leaks.check)
		final_scan_run(s);
	if (s->run->options->inspect.at_exit)
		inspect_final_read(s, is_last);
}

void reports_final_scan(void *ctx, struct address_space *space)
{
	(void)ctx;
	scan(space->sink.user, true);
}

static void scan_and_note(void *ctx, struct address_space *space)
{
	struct sessions *all = ctx;

	cold_watch_find(space->sink.user, space); /* before its memory is read */
	scan(space->sink.user, false);
	*vec_add(&all->list) = space->sink.user;
}

static void make_reports(struct run *run)
{
	struct sessions all = {0};
	uint64_t before = run->lost_bytes;

	final_scan_prepare(run, 0);
	target_inspect(run->target, scan_and_note, &all);
	for (size_t i = 0; i < all.list.count; i++)
		finish(all.list.data[i], clock_now_ns(), true);
	run->lost_bytes = before; /* the end decides about the exit status */
	vec_deinit(&all.list);
}

void reports_poll(struct run *run, bool is_leaving)
{
	bool is_due;

	if (!run->target || !options_report_on_signal(run->options))
		return;
	is_due = !is_leaving && signals_take_report();
	if (run->options->inspect.cold > 0)
		is_due = cold_watch_poll(run, is_due, is_leaving);
	if (is_due)
		make_reports(run);
}
