/*
 * The list of a thread's watched calls.
 */
#include "tracee/calls/calls.h"

#include "arch/pad.h"
#include "tracee/calls/confirm.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/heap_sampling.h"
#include "tracee/pads/pads.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/module.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "unwind/unwind.h"

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

void call_emit(struct target *t, struct thread *th, struct heap_event *ev)
{
	struct address_space *s = th->process->space;
	if (s->watch.is_profiled && s->watch.is_ready && !t->is_abandoned &&
	    heap_sampling_see(t, s, ev))
		t->sink.event(t->sink.ctx, s, ev);
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
	struct pad_slot *slot = pads_slot(th);
	if (!slot)
		return;
	call->outer_return_at = slot->return_at;
	call->outer_return_to = slot->return_to;
	call->outer_kind = slot->kind;
	call->outer_dirty = slot->dirty;
	slot->return_at = call->return_at;
	/* an exception's allocations count: they must trap, as in pads_suspend */
	slot->return_to = call->outer_return_at || call->is_suspended ? 0 : call->stub_return;
	slot->dirty |= call->outer_return_at != 0;
	slot->kind = call->probe->kind == PROBE_FREE && !probe_is_own(call->probe) ? PAD_DELETE :
										     PAD_ALLOC;
}

void call_note_all(struct target *t, struct thread *th)
{
	for (size_t i = 0; i < th->calls.list.count; i++)
		note_in_slot(t, th, &th->calls.list.data[i]);
}

static void restore_slot(struct target *t, struct thread *th, const struct call *call)
{
	struct pad_slot *slot = pads_slot(th);
	if (!slot)
		return;
	slot->return_at = call->outer_return_at;
	slot->return_to = call->outer_return_to;
	slot->kind = call->outer_kind;
	slot->dirty = call->outer_dirty;
}

/*
 * The frame of @call was left without a return. If an exception is in flight, calls.c handles
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
		if (unwind_in_signal(th->process->space->sink.unwind, &view, outer + 1))
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
			      .guess = trap->guess,
			      .sp = sp,
			      .return_at = sp - trap->stub.return_below,
			      .stub_return = trap->stub.trap};
	if (!t->arch->return_size)
		call->link = regs->word[t->arch->link];
	probe_read_call(trap->probe, t->arch, regs, &call->args);
	for (size_t i = 0; i < ARRAY_SIZE(call->saved); i++)
		call->saved[i] = regs->word[t->arch->dwarf_word[t->arch->dwarf_saved[i]]];
	note_in_slot(t, th, call);
	if (th->calls.list.count == 1)
		th->calls.had_signal = false;
	if (trap->guess && trap->probe->kind == PROBE_REALLOC)
		confirm_realloc(th->process->space, call->args.block);
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

/* @left was left by an exception: reports a failed allocation. */
static void call_emit_failure(struct target *t, struct thread *th, const struct thrown *left)
{
	if (left->probe->kind != PROBE_ALLOC || !left->probe->may_throw)
		return;
	struct heap_event ev = call_event(t, th, HEAP_ALLOC, left->probe, left->sp);
	ev.size = left->args.size;
	ev.align = left->args.align;
	ev.is_chosen = left->return_to != 0; /* the pad has counted it */
	call_emit(t, th, &ev);
}

/*
 * C++ exceptions that are created and thrown inside watched calls: operator new may throw.
 *
 *	at the entry of             a call further up the stack (of a stub or a pad)
 *	__cxa_allocate_exception    is suspended: allocations from here on outlive it (the
 *	                            exception, its members, the unwinder's data), so they are no
 *	                            longer inside the call
 *	_Unwind_RaiseException      is unwound: its return address is replaced by one with CFI, or
 *	                            by the caller's
 *	__cxa_begin_catch           below the catch: it was left, and has failed; above: it
 *	                            continues
 *
 * The frame of a stub, between operator new and its caller, has no CFI. So the stub's return
 * address on the stack is replaced by an address in a function of the program just before it
 * restores its only saved register and returns: the CFI there describes the stub's frame. If the
 * exception is caught inside the call, the original address is restored. Pads have the same frame.
 *
 * ptmem may detach or die before the catch. The call then returns to that code, which has the same
 * effect as the stub's. On detach, calls that have not thrown get the address, too. (If ptmem dies
 * it cannot do that: an exception thrown later by such a call terminates the program.)
 *
 * Several exceptions may be in flight: a destructor may throw and catch its own. A call belongs to
 * the exception that was thrown inside it.
 *
 * The failure of a call that was left is reported at the catch: until then destructors run, and may
 * call watched functions.
 */

/* How far into an allocation function to search for a CFI row like the one after a single push. */
#define ROW_SEARCH 64u

/* Whether @trap is at the entry of a C function (no personality routine). */
static bool is_in_c(const struct trap *trap)
{
	const struct probe *p = trap->probe;
	return trap->kind == TRAP_ENTRY && !trap->is_removed && p && p->function &&
	       !p->may_throw && p->function != FUNCTION_DELETE && !p->custom;
}

/*
 * Finds code with the CFI of a stub's frame that also leaves the frame as a stub does: a return to
 * it is harmless. Searches the C allocator's object first, which is never unmapped.
 */
static taddr_t find_epilogue(struct address_space *s)
{
	struct unwind *u = s->sink.unwind;
	const struct module *last = NULL;
	taddr_t found = 0;
	int *saved_reg = &s->unwind_through.saved_reg;
	for (size_t i = 0; i < s->traps.count && !found; i++) {
		const struct module *m = is_in_c(&s->traps.data[i]) ?
						 space_find_module(s, s->traps.data[i].entry) :
						 NULL;
		if (m && m != last)
			found = unwind_find_stub_epilogue(u, m, saved_reg);
		last = m ? m : last;
	}
	for (size_t i = 0; i < s->modules.count && !found; i++)
		found = unwind_find_stub_epilogue(u, s->modules.data[i], saved_reg);
	return found;
}

/* Finds a place in a C function (no personality routine) with the CFI of a stub's frame. */
static taddr_t find_row(struct address_space *s)
{
	taddr_t found = 0;
	for (size_t i = 0; i < s->traps.count && !found; i++) {
		const struct trap *trap = &s->traps.data[i];
		if (is_in_c(trap))
			found = unwind_find_stub_row(s->sink.unwind, trap->entry,
						     trap->entry + MIN(trap->code_size, ROW_SEARCH),
						     &s->unwind_through.saved_reg);
	}
	return found;
}

bool exceptions_find_row(struct target *t, struct address_space *s)
{
	if (!s->unwind_through.pc && s->sink.user)
		s->unwind_through.pc = find_epilogue(s);
	if (!s->unwind_through.pc && s->sink.user)
		s->unwind_through.pc = find_row(s);
	return s->unwind_through.pc != 0;
}

/* Where the frame of @call's stub has the register that code with its CFI restores. */
static void write_saved(struct target *t, struct address_space *s, const struct call *call,
			bool to_stub)
{
	taddr_t at = call->return_at + t->arch->return_size;
	int saved_reg = s->unwind_through.saved_reg;
	bool is_mark = to_stub && !t->arch->return_size; /* which the stub has there */
	if (saved_reg >= 0)
		space_write(s, at, is_mark ? &call->stub_return : &call->saved[saved_reg],
			    sizeof(uint64_t));
}

static void exchange_return(struct target *t, struct thread *th, bool to_stub)
{
	struct address_space *s = th->process->space;
	struct arch_regs regs;
	for (size_t i = 0; i < th->calls.list.count; i++) {
		const struct call *call = &th->calls.list.data[i];
		if (!call->probe->may_throw || !exceptions_find_row(t, s))
			continue;
		uint64_t now = 0, want = to_stub ? call->stub_return : s->unwind_through.pc;
		uint64_t other = to_stub ? s->unwind_through.pc : call->stub_return;
		if (to_stub && call->raised)
			continue; /* another exception is in flight */
		if (!other || !want)
			continue;
		if (!t->arch->return_size) {
			if (ptrace_get_regs(th->tid, &regs) != 0)
				return;
			space_replace_words(s, ROUND_DOWN(regs.word[t->arch->sp], (taddr_t)8),
				      call->return_at, other, want);
			write_saved(t, s, call, to_stub);
		} else if (space_read(s, call->return_at, &now, sizeof(now)) == 0 && now == other) {
			space_write(s, call->return_at, &want, sizeof(want));
			write_saved(t, s, call, to_stub);
		}
	}
}

void exceptions_release_threads(struct target *t, struct address_space *s)
{
	struct thread *th;
	for_each_thread_in(t, s, th) {
		struct arch_regs regs;
		if (th->calls.list.count == 0 || ptrace_get_regs(th->tid, &regs) != 0)
			continue;
		call_drop(t, th, regs.word[t->arch->sp]);
		exchange_return(t, th, false);
	}
}

void exceptions_begin(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	call_drop(t, th, regs->word[t->arch->sp]);
	for (size_t i = 0; i < th->calls.list.count; i++)
		th->calls.list.data[i].is_suspended = true;
	pads_suspend(t, th, regs);
}

void exceptions_raise(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	taddr_t exception = regs->word[t->arch->arg[0]];
	exceptions_begin(t, th, regs);
	for (size_t i = 0; i < th->calls.list.count; i++) {
		struct call *call = &th->calls.list.data[i];
		if (!call->raised && call->probe->may_throw)
			call->raised = exception;
	}
	exchange_return(t, th, false);
	pads_raise(th, exception);
}

/*
 * @exception was caught below these calls: they continue. Another destructor's may still be in
 * flight.
 */
static void resume_calls(struct thread *th, taddr_t exception)
{
	for (size_t i = 0; i < th->calls.list.count; i++) {
		struct call *call = &th->calls.list.data[i];
		if (call->raised && call->raised != exception)
			continue;
		call->is_suspended = false;
		call->raised = 0;
	}
}

static void emit_failures(struct target *t, struct thread *th, taddr_t exception)
{
	size_t left = 0;
	for (size_t i = 0; i < th->calls.thrown.count; i++) {
		const struct thrown thrown = th->calls.thrown.data[i];
		if (thrown.raised == exception)
			call_emit_failure(t, th, &thrown);
		else if (thrown.raised)
			th->calls.thrown.data[left++] = thrown;
	}
	th->calls.thrown.count = left;
}

void exceptions_catch(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	taddr_t exception = regs->word[t->arch->arg[0]], sp = regs->word[t->arch->sp];
	call_drop(t, th, sp);
	resume_calls(th, exception);
	exchange_return(t, th, true);
	pads_resume(th, exception, sp);
	emit_failures(t, th, exception);
}
