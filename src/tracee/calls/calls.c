/*
 * The list of a thread's watched calls.
 */
#include "tracee/calls/calls.h"

#include "arch/pad.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/heap_sampling.h"
#include "tracee/state/pad_hooks.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/stack_window.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"
#include "tracee/state/unwinder.h"

struct heap_event call_event(const struct target *t, const struct thread *th,
			     enum heap_event_kind kind, const struct probe *probe, taddr_t sp)
{
	return (struct heap_event){
		.time_ns = t->now_ns,
		.thread = (uint32_t)th->tid,
		.kind = (uint8_t)kind,
		.function = probe->function,
		.sp = t->options.events.stack_pointers ? sp + t->arch->return_size : 0,
	};
}

void call_emit(struct target *t, struct thread *th, const struct heap_event *ev)
{
	struct address_space *s = th->process->space;
	struct heap_event own = *ev;
	if (s->watch.is_profiled && s->watch.is_ready && !t->is_abandoned &&
	    heap_sampling_see(t, s, &own))
		t->sink.event(t->sink.ctx, s, &own);
}

void call_continue_at(struct target *t, struct thread *th, struct arch_regs *regs, taddr_t pc)
{
	regs->word[t->arch->pc] = pc;
	ptrace_set_word(th->tid, t->arch->pc, pc);
}

/*
 * Pads must know whether their thread is inside a watched call. If a signal has interrupted a pad,
 * it may be in the middle of a record: then all calls trap, whether inside of this one, or after a
 * longjmp out of it.
 */
static void note_in_slot(struct target *t, struct thread *th, struct call *call)
{
	struct pad_slot *slot = t->hooks.pads->slot(th);
	if (!slot)
		return;
	call->outer_return_at = slot->return_at;
	call->outer_return_to = slot->return_to;
	call->outer_kind = slot->kind;
	call->outer_dirty = slot->dirty;
	slot->return_at = call->return_at;
	slot->return_to = call->outer_return_at ? 0 : call->stub_return;
	slot->dirty |= call->outer_return_at != 0;
	slot->kind = call->probe->kind == PROBE_FREE ? PAD_DELETE : PAD_ALLOC;
}

void call_note_all(struct target *t, struct thread *th)
{
	for (size_t i = 0; i < th->calls.list.count; i++)
		note_in_slot(t, th, &th->calls.list.data[i]);
}

static void restore_slot(struct target *t, struct thread *th, const struct call *call)
{
	struct pad_slot *slot = t->hooks.pads->slot(th);
	if (!slot)
		return;
	slot->return_at = call->outer_return_at;
	slot->return_to = call->outer_return_to;
	slot->kind = call->outer_kind;
	slot->dirty = call->outer_dirty;
}

/*
 * The frame of @call was left without a return. If an exception is in flight, exceptions.c handles
 * it.
 */
static void save_thrown(struct thread *th, const struct call *call)
{
	if (call->raised && call->probe->kind == PROBE_ALLOC)
		*vec_add(&th->calls.thrown) = (struct thrown){
			.sp = call->sp,
			.probe = call->probe,
			.args = call->args,
			.raised = call->raised,
		};
}

/* @call's frame was left without a return: a realloc in progress keeps its block. */
static void abandon(struct target *t, struct thread *th, const struct call *call)
{
	restore_slot(t, th, call);
	save_thrown(th, call);
	if (call->probe->kind != PROBE_REALLOC || !call->args.block)
		return;
	struct heap_event ev = call_event(t, th, HEAP_REALLOC_END, call->probe, call->sp);
	ev.old_addr = call->args.block;
	ev.size = call->args.size ? call->args.size : 1;
	call_emit(t, th, &ev);
}

void call_drop(struct target *t, struct thread *th, taddr_t sp)
{
	while (th->calls.list.count > 0 && th->calls.list.data[th->calls.list.count - 1].sp <= sp)
		abandon(t, th, &th->calls.list.data[--th->calls.list.count]);
	if (th->calls.list.count == 0)
		th->calls.had_signal = false;
}

bool call_is_nested(struct target *t, struct thread *th, const struct arch_regs *regs,
		    const struct stack_view *where)
{
	if (th->calls.list.count == 0)
		return false;
	const struct call *call = call_state_innermost(&th->calls);
	taddr_t sp = regs->word[t->arch->sp], outer = call->sp;
	if (th->calls.had_signal) {
		struct stack_view view;
		if (where)
			view = *where;
		else
			stack_window_at_entry(t, th, regs, sp, &view);
		/*
		 * the stack pointer is that of the call before the stub's first instructions,
		 * too
		 */
		if (unwinder_in_signal(th->process->space->sink.unwinder, &view, outer + 1))
			return false;
	}
	if (sp < outer && call->is_suspended)
		return false;
	if (sp < outer) {
		t->stats.nested++;
		return true;
	}
	call_drop(t, th, sp);
	return th->calls.list.count > 0 && call_is_nested(t, th, regs, where);
}

void call_enter(struct target *t, struct thread *th, const struct trap *trap,
		const struct arch_regs *regs)
{
	struct call *call = vec_add(&th->calls.list);
	taddr_t sp = regs->word[t->arch->sp];
	*call = (struct call){.probe = trap->probe,
			      .sp = sp,
			      .return_at = sp - trap->stub.return_below,
			      .stub_return = trap->stub.trap};
	probe_read_call(trap->probe, t->arch, regs, &call->args);
	for (size_t i = 0; i < ARRAY_SIZE(call->saved); i++)
		call->saved[i] = regs->word[t->arch->dwarf_word[t->arch->dwarf_saved[i]]];
	note_in_slot(t, th, call);
	if (th->calls.list.count == 1)
		th->calls.had_signal = false;
	if (trap->probe->kind == PROBE_REALLOC && call->args.block) {
		struct heap_event ev = call_event(t, th, HEAP_REALLOC_BEGIN, trap->probe, sp);
		ev.old_addr = call->args.block;
		call_emit(t, th, &ev);
	}
}

bool call_leave(struct target *t, struct thread *th, taddr_t sp, taddr_t stub_return,
		struct call *out)
{
	/* calls deeper than this one were left by a longjmp */
	if (sp > 0)
		call_drop(t, th, sp - 1);
	if (th->calls.list.count == 0)
		return false;
	*out = th->calls.list.data[th->calls.list.count - 1];
	if (out->sp != sp || out->stub_return != stub_return)
		return false;
	th->calls.list.count--;
	restore_slot(t, th, out);
	if (th->calls.list.count == 0)
		th->calls.had_signal = false;
	return true;
}

void call_emit_failure(struct target *t, struct thread *th, const struct thrown *left)
{
	if (left->probe->kind != PROBE_ALLOC || !left->probe->may_throw)
		return;
	struct heap_event ev = call_event(t, th, HEAP_ALLOC, left->probe, left->sp);
	ev.size = left->args.size;
	ev.align = left->args.align;
	ev.is_chosen = left->return_to != 0; /* the pad has counted it */
	call_emit(t, th, &ev);
}
