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
 */
#include "tracee/calls/calls.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "tracee/inject/stub_area.h"
#include "tracee/state/custom_probe.h"
#include "tracee/state/module.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"

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

/* A breakpoint at the return address @pc. *why_out: for -ENOTSUP. */
static int add_trap(struct target *t, struct thread *th, taddr_t pc, const char **why_out)
{
	struct address_space *s = th->process->space;
	const struct module *m = space_find_module(s, pc);
	const struct stub_place place = {t, th, s, m};
	const struct trap *known = space_trap_find(s, pc);
	struct stub_area *area;
	uint8_t out[STUB_MAX];

	*why_out = "the caller is not in a file";
	if (known)
		return known->probe == &return_probe ? 0 : -EEXIST;
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
		drop_before(t, th, &call);
		if (!is_within(th, call.function))
			begin(t, th, &call); /* the table of traps may move */
	}
	call_continue_at(t, th, regs, next);
	return TRAP_RESUME;
}
