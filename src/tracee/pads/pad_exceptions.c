/* Pad calls in which exceptions are created, or which exceptions leave. */
#include "tracee/pads/pad_exceptions.h"

#include "tracee/pads/pad_threads.h"
#include "tracee/pads/pads_internal.h"
#include "tracee/state/space_memory.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

/* The pad call that @slot is in, among those in which exceptions were created. */
static struct thrown *find_thrown(const struct thread *th, const struct pad_slot *slot)
{
	return slot ? call_state_find_thrown(&th->calls, slot->return_at + PAD_RETURN_BELOW) : NULL;
}

taddr_t pads_return_to(const struct thread *th, const struct pad_slot *slot)
{
	const struct thrown *thrown = slot->return_to ? NULL : find_thrown(th, slot);
	return thrown ? thrown->return_to : slot->return_to;
}

/* The probe of the pad whose calls return to @after. */
static const struct probe *find_probe(const struct address_space *s, taddr_t after)
{
	const struct trap *trap = pads_find_entry(s->pads, s, after);
	return trap ? trap->probe : NULL;
}

/*
 * Calls inside must trap from now on, since only ptmem knows that they count: no word matches this
 * return_to.
 */
void pads_suspend(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	struct address_space *s = th->process->space;
	struct pad_slot *slot = pads_slot(th);
	uint64_t word = 0;
	if (!slot || !slot->return_at || !slot->return_to)
		return;
	struct thrown thrown = {
		.sp = slot->return_at + PAD_RETURN_BELOW,
		.return_to = slot->return_to,
	};
	if (call_state_innermost(&th->calls)) {
		slot->return_to = 0;
		return;
	}
	thrown.probe = find_probe(s, slot->return_to);
	if (!thrown.probe || regs->word[t->arch->sp] >= slot->return_at ||
	    space_read(s, slot->return_at, &word, sizeof(word)) != 0 || word != slot->return_to)
		return;
	struct arch_regs at_entry = *regs;
	for (int i = 0; i < 3; i++)
		at_entry.word[t->arch->arg[i]] = slot->arg[i];
	probe_read_call(thrown.probe, t->arch, &at_entry, &thrown.args);
	call_state_add_thrown(&th->calls, &thrown);
	slot->return_to = 0;
}

void pads_raise(struct thread *th, taddr_t exception)
{
	const struct address_space *s = th->process->space;
	struct pad_slot *slot = pads_slot(th);
	struct thrown *thrown = find_thrown(th, slot);
	if (slot)
		slot->has_thrown |= thrown || call_state_innermost(&th->calls);
	if (!thrown || thrown->raised || slot->return_to || call_state_innermost(&th->calls))
		return;
	thrown->raised = exception;
	space_write(s, slot->return_at, &s->unwind_through.pc, sizeof(s->unwind_through.pc));
}

/* The pad call continues: it will return to the pad. */
static void restore(struct thread *th, struct pad_slot *slot, struct thrown *thrown)
{
	struct address_space *s = th->process->space;
	uint64_t word = 0;
	slot->return_to = thrown->return_to;
	if (thrown->raised && space_read(s, slot->return_at, &word, sizeof(word)) == 0 &&
	    word == s->unwind_through.pc)
		space_write(s, slot->return_at, &slot->return_to, sizeof(slot->return_to));
	thrown->raised = 0;
}

void pads_resume(struct thread *th, taddr_t exception, taddr_t sp)
{
	struct pad_slot *slot = pads_slot(th);
	if (!slot)
		return;
	const struct call *call = call_state_innermost(&th->calls);
	if (call && slot->return_at == call->return_at && !call->is_suspended)
		slot->return_to = call->stub_return;
	struct thrown *thrown = slot->return_to || call ? NULL : find_thrown(th, slot);
	bool is_of_another = thrown && thrown->raised && thrown->raised != exception;
	if (!call && sp >= slot->return_at)
		slot->return_at = 0;
	else if (thrown && !is_of_another)
		restore(th, slot, thrown);
	slot->has_thrown = call_state_has_raised(&th->calls, exception);
}
