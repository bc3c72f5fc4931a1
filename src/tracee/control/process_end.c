/* Releases what each layer keeps for an address space, in the order of dependencies. */
#include "tracee/control/process_end.h"

#include "base/proc.h"
#include "tracee/calls/requests.h"
#include "tracee/control/roots.h"
#include "tracee/pads/pad_delivery.h"
#include "tracee/pads/pads.h"
#include "tracee/state/event_sink.h"
#include "tracee/state/space.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

void process_leave_space(struct target *t, struct process *p, enum space_end why)
{
	struct address_space *s = p->space;
	if (--s->processes.users == 0) {
		pads_finish(t, s);
		if (s->sink.user)
			t->sink.space_end(t->sink.ctx, s, why);
		pads_free(t, s);
		if (t->loop.promote == s)
			t->loop.promote = NULL;
		requests_free(s);
		space_free(s);
	} else if (s->processes.reader == p->pid || proc_is_dead(s->processes.reader)) {
		process_move_reader(t, p);
	}
	p->space = NULL;
	if (t->sink.process_left)
		t->sink.process_left(t->sink.ctx, p->pid, why);
}

void process_remove(struct target *t, struct process *p, enum space_end why)
{
	process_unlink(t, p);
	process_leave_space(t, p, why);
	roots_forget_exits(p);
	free(p);
}
