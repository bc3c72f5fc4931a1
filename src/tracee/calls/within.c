/*
 * Calls of functions of --within and --label. The stack stays as it is: nothing is wrapped, so
 * exceptions, longjmp, backtraces and arguments on the stack are those of the program.
 *
 *	breakpoint at                 of the thread
 *	the function's entry          notes the stack pointer and the return address, to which it
 *	                              adds a breakpoint, once
 *	a return address              if the stack pointer is that of a call behind its return, that
 *	                              call has ended
 *
 * Of a function that only marks a moment (--limit='... between a and b') the entries count.
 * Otherwise the outermost call of a thread counts. A call that is left by longjmp or an exception
 * is noticed when an exception is caught above it, when the function is entered above it, or by the
 * session, at the next event of the thread above it (session/within.h).
 *
 * A hot function of --label gets a pad (PAD_LABELLED of arch/pad.h), which traps only for calls
 * from places that it does not know. Of these, direct calls of the function are known from then on;
 * all others are followed here.
 */
#include "tracee/calls/calls.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "tracee/inject/stub_area.h"
#include "tracee/pads/pads.h"
#include "tracee/state/custom_probe.h"
#include "tracee/state/module.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"
#include "unwind/unwind.h"

/* -- the ends of calls -- */

static void end(struct target *t, struct thread *th, size_t i)
{
	struct address_space *s = th->process->space;
	const struct custom_probe *function = th->calls.within.data[i].function;

	memmove(&th->calls.within.data[i], &th->calls.within.data[i + 1],
		(--th->calls.within.count - i) * sizeof(*th->calls.within.data));
	if (s->watch.is_profiled && s->watch.is_ready && s->sink.user && !t->is_abandoned)
		t->sink.within_end(t->sink.ctx, s, th->tid, function);
}

void within_drop(struct target *t, struct thread *th, taddr_t sp)
{
	for (size_t i = th->calls.within.count; i-- > 0;)
		if (within_is_above(th->calls.within.data[i].sp, sp))
			end(t, th, i);
}

void within_forget(struct target *t, const struct address_space *s, pid_t tid,
		   const struct custom_probe *function)
{
	struct thread *th = thread_find(t, tid);

	for (size_t i = 0; th && th->process->space == s && i < th->calls.within.count; i++) {
		struct within_call *call = &th->calls.within.data[i];

		if (call->function != function)
			continue;
		*call = th->calls.within.data[--th->calls.within.count];
		return;
	}
}

/* Whether a call that breakpoints follow returns to @pc. */
static bool is_awaited(struct target *t, const struct address_space *s, taddr_t pc)
{
	struct thread *th;

	for_each_thread_in(t, s, th)
		for (size_t i = 0; i < th->calls.within.count; i++)
			if (th->calls.within.data[i].return_pc == pc)
				return true;
	return false;
}

/* If pads follow the calls that return to @trap now, its breakpoint is taken out. */
static void rest(struct target *t, struct address_space *s, struct trap *trap)
{
	if (!trap->is_idle && pads_has_call_site(s, trap->addr) && !is_awaited(t, s, trap->addr))
		trap->is_idle = space_write(s, trap->addr, trap->original, trap->patch_size) == 0;
}

static enum trap_answer serve_return(struct target *t, struct thread *th, struct trap *trap,
				     struct arch_regs *regs)
{
	taddr_t addr = trap->addr, next = trap->stub.jump;
	taddr_t sp = regs->word[t->arch->sp] - t->arch->return_size;

	for (size_t i = th->calls.within.count; i-- > 0;) {
		const struct within_call *call = &th->calls.within.data[i];

		if (call->return_pc == addr && call->sp == sp)
			end(t, th, i);
	}
	rest(t, th->process->space, trap);
	call_continue_at(t, th, regs, next);
	return TRAP_RESUME;
}

/* -- return addresses -- */

static const struct probe return_probe = {
	.symbol = "a return address", .kind = PROBE_WITHIN_END, .size_arg = PROBE_NO_ARG,
	.count_arg = PROBE_NO_ARG, .align_arg = PROBE_NO_ARG, .block_arg = PROBE_NO_ARG,
	.result_arg = PROBE_NO_ARG,
};

/* Assembles a copy of the instruction at @m->from, and a jump behind it, in @m->out. */
static int make_copy(const struct stub_place *place, struct arch_move *m)
{
	uint8_t code[ARCH_MAX_INSN];
	size_t n = sizeof(code);

	while (n > 0 && space_read_text(place->space, m->from, code, n) != 0)
		n--;
	m->code = code;
	m->code_size = n;
	m->min_bytes = 1;
	m->is_inside = true;
	int rc = n > 0 ? place->target->arch->relocate(m) : -EFAULT;

	m->code = NULL;
	return rc;
}

/* The breakpoint @trap, which may have been taken out, is there again. */
static int wake(struct target *t, struct address_space *s, struct trap *trap)
{
	int rc = trap->is_idle ? space_write(s, trap->addr, t->arch->trap, t->arch->trap_size) : 0;

	trap->is_idle = rc != 0;
	return rc;
}

/* A breakpoint at the return address @pc. *why_out: for -ENOTSUP. */
static int add_trap(struct target *t, struct thread *th, taddr_t pc, const char **why_out)
{
	struct address_space *s = th->process->space;
	const struct module *m = space_find_module(s, pc);
	const struct stub_place place = {t, th, s, m};
	struct trap *known = space_trap_find(s, pc);
	struct stub_area *area;
	uint8_t out[STUB_MAX];

	*why_out = "the caller is not in a file";
	if (known && known->probe == &return_probe)
		return wake(t, s, known);
	if (known)
		return -EEXIST;
	if (!m || !m->file || m->is_vdso)
		return -ENOTSUP;
	int rc = stub_area_get(&place, pc, &area);

	if (rc != 0)
		return rc;
	struct arch_move move = {.from = pc, .to = area->start + area->used, .out = out,
				 .out_size = sizeof(out), .why = "no room for its stub"};

	rc = make_copy(&place, &move);
	*why_out = move.why;
	if (rc == 0)
		rc = space_write(s, move.to, out, move.size);
	if (rc != 0)
		return rc;
	stub_area_use(area, (uint32_t)move.size);
	stub_area_write_headers(s);
	const struct trap trap = {
		.kind = TRAP_ENTRY, .serve = serve_return, .probe = &return_probe, .addr = pc,
		.entry = pc, .module = m->id, .code_size = (uint32_t)move.moved, .is_cold = true,
		.why_cold = "each stop counts",
		.stub = {.call = move.to, .jump = move.to, .size = (uint32_t)move.size,
			 .patch = pc, .moved = (uint32_t)move.moved,
			 .pushes_return = move.pushes_return}};

	return space_trap_put(s, t->arch, &trap);
}

/* The return at @pc gets no breakpoint: then the end of the call is seen late. */
static void report_return(struct address_space *s, const struct custom_probe *function, taddr_t pc,
			  const char *why)
{
	const struct module *m = space_find_module(s, pc);

	if (!s->watch.has_late_returns)
		log_warn("process %d: --within=%s: a call that returns to %#lx%s%s ends when its "
			 "thread allocates or releases next: %s", s->processes.pid, function->text,
			 (unsigned long)(m ? pc - m->bias : pc), m ? " in " : "", m ? m->path : "",
			 why);
	s->watch.has_late_returns = true;
}

/* -- entries -- */

static bool is_within(const struct thread *th, const struct custom_probe *function)
{
	for (size_t i = 0; i < th->calls.within.count; i++)
		if (th->calls.within.data[i].function == function)
			return true;
	return false;
}

static void begin(struct target *t, struct thread *th, const struct within_call *call)
{
	struct address_space *s = th->process->space;
	const char *why = NULL;

	if (!s->watch.is_profiled || !s->watch.is_ready || !s->sink.user || t->is_abandoned)
		return;
	if (!custom_probe_has_ends(call->function)) {
		t->sink.within_begin(t->sink.ctx, s, th->tid, call);
		return;
	}
	int rc = add_trap(t, th, call->return_pc, &why);

	if (rc != 0 && rc != -ESRCH)
		report_return(s, call->function, call->return_pc,
			      rc == -ENOTSUP ? why : strerror(-rc));
	*vec_add(&th->calls.within) = *call;
	t->sink.within_begin(t->sink.ctx, s, th->tid, call);
}

/*
 * Ends calls whose frame is gone, since @call was entered at or above it. If another function
 * continues as this one, by a jump, both return together.
 */
static void drop_before(struct target *t, struct thread *th, const struct within_call *call)
{
	for (size_t i = th->calls.within.count; i-- > 0;) {
		const struct within_call *old = &th->calls.within.data[i];
		bool is_jump = old->function != call->function && old->sp == call->sp &&
			       old->return_pc == call->return_pc;

		if (!is_jump && within_is_above(old->sp, call->sp))
			end(t, th, i);
	}
}

/* Whether the call that returns to @pc can only be one of the function of @trap. */
static bool is_direct_call(const struct target *t, const struct address_space *s,
			   const struct trap *trap, taddr_t pc)
{
	const struct module *m = space_find_module(s, pc);
	uint8_t bytes[ARCH_MAX_INSN];
	const struct arch_code code = {.bytes = bytes, .size = t->arch->jump_size,
				       .at = pc - t->arch->jump_size};

	if (!m || !m->file || m->is_vdso || code.size > sizeof(bytes) ||
	    space_read_text(s, code.at, bytes, code.size) != 0)
		return false;
	for (size_t i = 0; i < code.size; i++) {
		const struct trap *inside = space_trap_find(s, code.at + i);

		if (inside && inside->probe == &return_probe)
			bytes[i] = inside->original[0];
	}
	return t->arch->has_call(&code, trap->entry) || t->arch->has_call(&code, trap->addr);
}

/* Whether the pad of @trap, in which the thread is, can note its call if it tries again. */
static bool may_retry(const struct target *t, struct address_space *s, const struct trap *trap,
		      const struct arch_regs *regs, taddr_t return_pc)
{
	return trap->pad && pads_is_at_entry(s, trap, regs->word[t->arch->pc] -
							     t->arch->trap_pc_offset) &&
	       is_direct_call(t, s, trap, return_pc) && pads_add_call_site(s, return_pc);
}

#define OUTER_FRAMES 1024

/*
 * Whether the stack of @th, which has entered the function at @entry with @regs, leads to the call
 * @outer; or ends before that, for lack of rules. Pads know these rules from then on.
 */
static bool may_be_inside(struct target *t, struct thread *th, const struct arch_regs *regs,
			  taddr_t entry, const struct pad_label_value *outer)
{
	struct unwind *u = th->process->space->sink.unwind;
	struct arch_regs at_entry = *regs;
	taddr_t pc[OUTER_FRAMES], sp[OUTER_FRAMES];
	struct stack_view view;
	enum unwind_end end;

	if (!u)
		return true;
	at_entry.word[t->arch->pc] = entry;
	stack_window_at_stop(t, th, &at_entry, &view);
	unwind_keep_sp(u, sp);
	size_t count = unwind_walk_stopped(u, &view, pc, OUTER_FRAMES, &end);

	unwind_keep_sp(u, NULL);
	for (size_t i = 0; i < count; i++)
		if (pc[i] == outer->return_pc && sp[i] == outer->sp + t->arch->return_size)
			return true;
	return end != UNWIND_COMPLETE;
}

/* Whether the call @call of @th is inside of another one that a pad has noted. */
static bool is_in_noted(struct target *t, struct thread *th, const struct arch_regs *regs,
			const struct within_call *call)
{
	struct address_space *s = th->process->space;
	uint64_t pointer = regs->word[t->arch->thread_pointer];
	struct pad_label_value outer;

	for (uint32_t i = 0; s->pads && i < PAD_LABELS; i++) {
		if (s->label[i].base != PAD_LABEL_CALL || s->label[i].function != call->entry)
			continue;
		pads_read_call(s, pointer, i, &outer);
		if (!outer.sp || outer.sp == call->sp)
			return false;
		return may_be_inside(t, th, regs, call->entry, &outer);
	}
	return false;
}

/* @call is the outermost one of its function, unless it is inside of one that a pad has noted. */
static void enter(struct target *t, struct thread *th, const struct arch_regs *regs,
		  const struct within_call *call)
{
	if (is_in_noted(t, th, regs, call))
		return;
	if (th->process->space->pads)
		pads_forget_calls(th->process->space, regs->word[t->arch->thread_pointer],
				  call->entry);
	begin(t, th, call);
}

enum trap_answer within_serve_entry(struct target *t, struct thread *th, struct trap *trap,
				    struct arch_regs *regs)
{
	struct within_call call = {.function = trap->probe->custom, .entry = trap->entry,
				   .sp = regs->word[t->arch->sp]};
	taddr_t next = trap->stub.jump;

	for (size_t i = 0; i < ARRAY_SIZE(call.arg); i++)
		call.arg[i] = regs->word[t->arch->arg[i]];
	if (!th->process->is_vfork_child &&
	    thread_read_return(t, th, regs, &call.return_pc) == 0) {
		if (may_retry(t, th->process->space, trap, regs, call.return_pc))
			return TRAP_RESUME;
		drop_before(t, th, &call);
		if (!is_within(th, call.function))
			enter(t, th, regs, &call); /* the table of traps may move */
	}
	call_continue_at(t, th, regs, next);
	return TRAP_RESUME;
}
