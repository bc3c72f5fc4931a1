/* All objects with a frame are looked up first: their names may not have been needed so far. */
#include "session/fetch_names.h"

#include "session/session.h"
#include "session/signals.h"
#include "symbols/debuginfod.h"
#include "tracee/control/target.h"

static bool was_asked_again(void *ctx)
{
	const unsigned *before = ctx;

	return signals_leave_count() != *before;
}

static void note_objects(struct run *run, const struct calltree *tree)
{
	uint32_t last = 0;

	for (uint32_t i = 1; i <= calltree_frame_count(tree); i++) {
		uint32_t id = calltree_frame(tree, i)->module;

		if (id && id != last)
			symbols_note(run->symbols, run_module(run, id));
		last = id;
	}
}

void fetch_names(struct session *s, void (*prepare)(struct session *s))
{
	struct run *run = s->run;
	unsigned count = signals_leave_count();

	if (!run->options->names.debuginfod || !debuginfod_is_configured() ||
	    (run->target && target_is_tracing(run->target)))
		return;
	for (int k = 0; k < SOURCE_COUNT; k++) {
		if (s->source[k].is_traced)
			note_objects(run, profile_calltree(s->source[k].profile));
	}
	if (!symbols_wants_fetch(run->symbols))
		return;
	prepare(s);
	symbols_fetch(run->symbols, was_asked_again, &count);
}
