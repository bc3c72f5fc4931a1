/*
 * Threads that stand in pads or the recorder, at the time when all pads go, run on to
 * the end of their pad: to breakpoints at its exits, which take two stops where
 * single steps would take hundreds. Text is restored already, so that a thread which
 * met one has left: it goes on in the original function or at its caller.
 */
#include "target/pads.h"
#include "target/ptrace.h"

/* Whether a thread whose pc is @pc will come through an exit. */
static bool is_before_exit(const struct pads *p, taddr_t pc)
{
	if (pc - p->blob < p->blob_size)
		return true;
	for (size_t i = 0; i < p->list.count; i++) {
		const struct pad *pad = &p->list.data[i];
		if (pc - pad->at < pad->size)
			return pc < pad->tail;
	}
	return false;
}

static int put_exits(struct target *t, struct space *s)
{
	int rc = 0;
	for (size_t i = 0; i < s->pads->list.count; i++) {
		for (unsigned k = 0; k < PAD_EXITS && rc == 0; k++) {
			const struct pad_exit *e = &s->pads->list.data[i].exit[k];
			struct trap trap = {.kind = TRAP_PAD_EXIT, .addr = e->at};
			trap.stub.jump = e->to;
			if (e->at)
				rc = space_trap_put(s, t->arch, &trap);
		}
	}
	return rc;
}

static void take_exits(struct target *t, struct space *s)
{
	for (size_t i = 0; i < s->traps.count; i++) {
		if (s->traps.data[i].kind == TRAP_PAD_EXIT)
			space_trap_take(s, t->arch, &s->traps.data[i]);
	}
}

static taddr_t find_exit(void *ctx, taddr_t addr)
{
	const struct trap *trap = space_trap_find(ctx, addr);
	return trap && trap->kind == TRAP_PAD_EXIT ? trap->stub.jump : 0;
}

void pads_run_out(struct target *t, struct space *s)
{
	bool is_armed = false;
	for (size_t i = 0; s->pads && i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		struct arch_regs regs;
		if (!th || th->process->space != s || th->is_exiting ||
		    ptrace_get_regs(th->tid, &regs) != 0 ||
		    !is_before_exit(s->pads, regs.word[t->arch->pc]))
			continue;
		if (!is_armed && put_exits(t, s) != 0)
			break;
		is_armed = true;
		inject_run_to_trap(t, th, find_exit, s);
	}
	take_exits(t, s);
}
