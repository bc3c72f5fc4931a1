/*
 * What happens at our breakpoints.
 *
 *	at the entry of   outermost              inside a call
 *	alloc, realloc    note it; go by .call   go by .jump
 *	free, delete      event; go by .jump     go by .jump
 *	loader            look for modules if they changed; go by .jump
 *	throw, catch      mend stacks; go by .jump
 *	marker            requests.c; go on behind it
 *	program's end     event; go by .jump
 *
 *	behind the call   event with the result; the stub's return goes to the caller
 *
 * A call is inside another when its stack pointer lies below that of the noted
 * one. One above it means that the noted call was left by longjmp or an
 * exception. Signal handlers that allocate while their thread is inside a call
 * are told apart by unwinding (only when a signal came meanwhile).
 *
 * Exceptions: operator new may throw, and the stub's frame between it and its
 * caller has no CFI. So when a throw begins inside a noted call, the stub's
 * return address on the stack is exchanged for one whose CFI is that of a
 * function at its entry, which is what the stub's frame looks like; when the
 * exception is caught inside that call, it is put back.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/log.h"
#include "target/ptrace.h"
#include "target/guard.h"
#include "target/loader.h"
#include "target/pads.h"
#include "target/requests.h"
#include "target/thread.h"

#define STACK_COPY_MIN 1024u
#define STACK_COPY_MAX 65536u
#define STACK_MAX (1ull << 30)
#define FAR_SIZE 65536u
#define FAR_SIZE_MIN 2048u
#define SIGNAL_BIT(sig) (1ull << ((sig) - 1))
/* Signals that no program can block, or that libc keeps for itself. */
#define NEVER_BLOCKED (SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP) | SIGNAL_BIT(32) | SIGNAL_BIT(33))

static struct heap_event new_event(const struct target *t, const struct thread *th, int kind,
				   int function)
{
	return (struct heap_event){
		.time_ns = t->now_ns, .thread = (uint32_t)th->tid, .kind = (uint8_t)kind,
		.function = (uint8_t)function,
	};
}

/* The caller's stack pointer at a call whose return slot is @at, if events shall have it. */
static taddr_t caller_sp(const struct target *t, taddr_t at)
{
	return t->options.stack_pointers ? at + sizeof(uint64_t) : 0;
}

static void emit(struct target *t, struct thread *th, const struct heap_event *ev)
{
	struct space *s = th->process->space;
	if (s->is_profiled && s->is_ready && !t->is_abandoned)
		t->sink.event(t->sink.ctx, s, ev);
}

/* -- the stack -- */

struct view_source {
	struct target *target;
	struct thread *thread;
	struct stack_view *view;
};

/* A walk goes up the stack: what follows is read along, the more the longer it goes on. */
static bool read_far(struct thread *th, taddr_t addr, void *buf, size_t size)
{
	if (addr < th->far_start || addr - th->far_start + size > th->far_size) {
		if (!th->far)
			th->far = xmalloc(FAR_SIZE);
		size_t want = MIN(MAX(2 * th->far_size, FAR_SIZE_MIN), FAR_SIZE);
		ssize_t n = space_read_some(th->process->space, addr, th->far, want);
		th->far_start = addr;
		th->far_size = n > 0 ? (size_t)n : 0;
	}
	if (addr - th->far_start + size > th->far_size)
		return false;
	memcpy(buf, th->far + (addr - th->far_start), size);
	return true;
}

/* Serves what lies outside the copy; deeper stacks are copied whole next time, but the deepest. */
static int read_outside(void *ctx, taddr_t addr, void *buf, size_t size)
{
	struct thread *th = ctx;
	taddr_t end =
		addr + size - th->stack_start; /* wraps to a large one below the stack pointer */
	if (end > th->stack_want && end <= STACK_COPY_MAX)
		th->stack_want = ROUND_UP(end, (size_t)STACK_COPY_MIN);
	if (end > STACK_COPY_MAX && end <= STACK_MAX && read_far(th, addr, buf, size))
		return 0;
	return space_read(th->process->space, addr, buf, size);
}

static void copy_stack(struct thread *th, taddr_t sp, struct stack_view *view)
{
	size_t want = MAX(th->stack_want, STACK_COPY_MIN);
	th->stack_start = sp;
	th->far_size = 0;
	th->stack = xgrow(th->stack, &th->stack_capacity, want, 1);
	ssize_t n = space_read_some(th->process->space, sp, th->stack, want);
	th->stack_size = n > 0 ? (size_t)n : 0;
	*view = (struct stack_view){
		.start = sp, .data = th->stack, .size = th->stack_size,
		.read = read_outside, .read_ctx = th,
	};
}

void trap_fill_stopped_view(struct target *t, struct thread *th, const struct arch_regs *regs,
			    struct stack_view *view)
{
	copy_stack(th, regs->word[t->arch->sp], view);
	arch_unwind_regs(t->arch, regs, &view->regs);
}

void trap_fill_view(struct target *t, struct thread *th, const struct arch_regs *regs, taddr_t sp,
		    struct stack_view *view)
{
	copy_stack(th, sp, view);
	arch_unwind_regs(t->arch, regs, &view->regs);
	uint64_t pc = 0;
	if (th->stack_size >= sizeof(pc))
		memcpy(&pc, th->stack, sizeof(pc));
	view->regs.reg[t->arch->dwarf_pc] = pc;
	view->regs.reg[t->arch->dwarf_sp] = sp + sizeof(pc);
}

/* -- calls -- */

/* Pads must know that their thread is inside a watched call, and when it is not any more. */
static void set_guard(struct thread *th, struct call *call)
{
	struct pad_slot *slot = pads_slot(th);
	if (!slot)
		return;
	call->outer_guard = slot->guard;
	call->outer_guard_pc = slot->guard_pc;
	slot->guard = call->return_at;
	slot->guard_pc = call->stub_return;
	slot->kind = call->probe->kind == PROBE_FREE ? PAD_DELETE : PAD_ALLOC;
}

static void restore_guard(struct thread *th, const struct call *call)
{
	struct pad_slot *slot = pads_slot(th);
	if (!slot)
		return;
	slot->guard = call->outer_guard;
	slot->guard_pc = call->outer_guard_pc;
}

/* @call's frame is gone without a return: a realloc that had begun keeps its block. */
static void abandon_call(struct target *t, struct thread *th, const struct call *call)
{
	restore_guard(th, call);
	if (call->probe->kind != PROBE_REALLOC || !call->args.block)
		return;
	struct heap_event ev = new_event(t, th, HEAP_REALLOC_END, call->probe->function);
	ev.sp = caller_sp(t, call->sp);
	ev.old_addr = call->args.block;
	ev.size = call->args.size ? call->args.size : 1;
	emit(t, th, &ev);
}

void trap_drop_calls(struct target *t, struct thread *th, taddr_t sp)
{
	while (th->calls.count > 0 && th->calls.data[th->calls.count - 1].sp <= sp)
		abandon_call(t, th, &th->calls.data[--th->calls.count]);
	if (th->calls.count == 0)
		th->had_signal = false;
}

bool trap_is_nested(struct target *t, struct thread *th, const struct arch_regs *regs,
		    const struct stack_view *where)
{
	if (th->calls.count == 0)
		return false;
	taddr_t sp = regs->word[t->arch->sp], outer = th->calls.data[th->calls.count - 1].sp;
	if (th->had_signal) {
		struct stack_view view;
		if (where)
			view = *where;
		else
			trap_fill_view(t, th, regs, sp, &view);
		/* before the stub's first instructions the stack pointer is the call's, and nothing stands below */
		if (t->sink.in_signal(t->sink.ctx, th->process->space, &view, outer + 1))
			return false;
	}
	if (sp < outer) {
		t->stats.nested++;
		return true;
	}
	trap_drop_calls(t, th, sp);
	return th->calls.count > 0 && trap_is_nested(t, th, regs, where);
}

static void enter_call(struct target *t, struct thread *th, struct trap *trap,
		       const struct arch_regs *regs)
{
	struct call *call = vec_add(&th->calls);
	taddr_t sp = regs->word[t->arch->sp];
	*call = (struct call){.probe = trap->probe,
			      .sp = sp,
			      .return_at = sp - trap->stub.return_below,
			      .stub_return = trap->stub.trap};
	probe_read_call(trap->probe, t->arch, regs, &call->args);
	for (size_t i = 0; i < ARRAY_SIZE(call->saved); i++)
		call->saved[i] = regs->word[t->arch->dwarf_word[t->arch->dwarf_saved[i]]];
	set_guard(th, call);
	if (th->calls.count == 1)
		th->had_signal = false;
	if (trap->probe->kind == PROBE_REALLOC && call->args.block) {
		struct heap_event ev = new_event(t, th, HEAP_REALLOC_BEGIN, trap->probe->function);
		ev.sp = caller_sp(t, call->sp);
		ev.old_addr = call->args.block;
		emit(t, th, &ev);
	}
}

bool trap_is_in_delete(const struct thread *th, taddr_t sp)
{
	uint64_t word = 0;
	return th->has_deleted && sp <= th->deleted.sp &&
	       space_read(th->process->space, th->deleted.sp, &word, sizeof(word)) == 0 &&
	       word == th->deleted.return_pc;
}

static void note_delete(struct thread *th, const struct trap *trap, taddr_t block, taddr_t sp)
{
	/* a thread that pads know enters a call instead: they do not tell it that it was left */
	th->has_deleted = trap->probe->function == FUNCTION_DELETE && !pads_slot(th);
	th->deleted.trap = trap->addr;
	th->deleted.block = block;
	th->deleted.sp = sp;
	if (th->has_deleted && space_read(th->process->space, sp, &th->deleted.return_pc,
					  sizeof(th->deleted.return_pc)) != 0)
		th->has_deleted = false;
}

static void free_event(struct target *t, struct thread *th, struct trap *trap,
		       const struct arch_regs *regs, bool is_inner)
{
	struct probe_call args;
	taddr_t sp = regs->word[t->arch->sp];
	probe_read_call(trap->probe, t->arch, regs, &args);
	/* operator delete frees by calling another delete or free: one event */
	if (th->has_deleted && th->deleted.block == args.block && th->deleted.trap != trap->addr &&
	    trap_is_in_delete(th, sp)) {
		th->has_deleted = trap->probe->function == FUNCTION_DELETE;
		return;
	}
	note_delete(th, trap, args.block, sp);
	struct heap_event ev = new_event(t, th, HEAP_FREE, trap->probe->function);
	ev.sp = caller_sp(t, sp);
	ev.is_inner = is_inner;
	ev.addr = args.block;
	struct stack_view view;
	if (t->options.free_stacks && ev.addr) {
		trap_fill_view(t, th, regs, sp, &view);
		ev.stack = &view;
	}
	if (args.block || !is_inner) /* free(NULL) counts only as a call of the program's */
		emit(t, th, &ev);
}

void trap_enter_inner_free(struct target *t, struct thread *th, struct trap *trap,
			   const struct arch_regs *regs)
{
	free_event(t, th, trap, regs, true);
}

/* -- exceptions -- */

/* How far into an allocation function a row as after one push is looked for. */
#define ROW_SEARCH 64u

/* A place in a C function (no personality) where the CFI is that of a stub's frame. */
static taddr_t find_throw_through(struct target *t, struct space *s)
{
	taddr_t found = 0;
	for (size_t i = 0; i < s->traps.count && !found; i++) {
		const struct trap *trap = &s->traps.data[i];
		bool is_c = trap->probe && trap->probe->function && !trap->probe->may_throw &&
			    trap->probe->function != FUNCTION_DELETE;
		if (trap->kind == TRAP_ENTRY && is_c && !trap->is_removed && s->user)
			found = t->sink.find_row(t->sink.ctx, s, trap->entry,
						 trap->entry + MIN(trap->code_size, ROW_SEARCH),
						 &s->throw_saved);
	}
	return found;
}

static void exchange_return(struct target *t, struct thread *th, bool to_stub)
{
	struct space *s = th->process->space;
	if (th->calls.count > 0 && !s->throw_through)
		s->throw_through = find_throw_through(t, s);
	for (size_t i = 0; i < th->calls.count; i++) {
		const struct call *call = &th->calls.data[i];
		uint64_t now = 0, want = to_stub ? call->stub_return : s->throw_through;
		uint64_t other = to_stub ? s->throw_through : call->stub_return;
		if (call->probe->may_throw && other && want &&
		    space_read(s, call->return_at, &now, sizeof(now)) == 0 && now == other) {
			space_write(s, call->return_at, &want, sizeof(want));
			if (s->throw_saved >= 0)
				space_write(s, call->return_at + sizeof(want),
					    &call->saved[s->throw_saved], sizeof(want));
		}
	}
}

/* One object holds program and library: who calls whom cannot be told. */
static bool is_static(const struct space *s)
{
	size_t objects = 0;
	for (size_t i = 0; i < s->modules.count; i++)
		objects += !s->modules.data[i]->is_vdso;
	return objects == 1;
}

/*
 * Whether the program itself calls a mapping function: not the allocator from inside a
 * watched call, and not the library that the function belongs to (stacks of threads).
 */
static bool is_own_mapping(struct target *t, struct thread *th, const struct trap *trap,
			   const struct arch_regs *regs)
{
	struct space *s = th->process->space;
	struct pad_slot *slot = pads_slot(th);
	taddr_t sp = regs->word[t->arch->sp], caller = 0;
	if (trap_is_nested(t, th, regs, NULL) || (slot && slot->guard > sp) ||
	    space_read(s, sp, &caller, sizeof(caller)) != 0)
		return false;
	const struct module *own = space_find_module(s, trap->addr),
			    *from = space_find_module(s, caller);
	return own != from || is_static(s);
}

void trap_enter(struct target *t, struct thread *th, struct trap *trap, struct arch_regs *regs)
{
	taddr_t next = trap->stub.jump, sp = regs->word[t->arch->sp];
	uint8_t kind = trap->probe->kind;
	struct space *s = th->process->space;
	if (probe_is_marker(trap->probe)) {
		requests_serve(t, th, trap, regs);
	} else if (kind == PROBE_LOADER) {
		taddr_t addr = trap->addr;
		if (loader_has_changed(s, trap))
			install_update(t, s, th);
		trap = space_trap_find(s, addr); /* the table may have moved */
		next = trap ? trap->stub.jump : next;
	} else if (kind == PROBE_END) {
		const struct heap_event ev = new_event(t, th, HEAP_PROGRAM_END, FUNCTION_NONE);
		if (!th->process->is_vfork_child) /* its parent goes on */
			emit(t, th, &ev);
	} else if (kind == PROBE_THROW) {
		trap_drop_calls(t, th, sp);
		exchange_return(t, th, false);
		pads_throw(th);
	} else if (kind == PROBE_CATCH) {
		trap_drop_calls(t, th, sp);
		exchange_return(t, th, true);
		pads_catch(t, th, regs);
	} else if (kind == PROBE_MAPPING) {
		if (is_own_mapping(t, th, trap, regs)) {
			enter_call(t, th, trap, regs);
			next = trap->stub.call;
		}
	} else if (pads_is_nested(t, th, regs)) {
		t->stats.nested++;
		if (kind == PROBE_FREE && pads_slot(th)->kind != PAD_DELETE)
			trap_enter_inner_free(t, th, trap, regs);
	} else if (trap_is_nested(t, th, regs, NULL)) {
		/* a new-handler may free what it had kept; what is not live is no event */
		if (kind == PROBE_FREE &&
		    th->calls.data[th->calls.count - 1].probe->kind != PROBE_FREE)
			trap_enter_inner_free(t, th, trap, regs);
	} else {
		if (kind == PROBE_FREE) {
			free_event(t, th, trap, regs, false);
			/* pads record what it calls, unless they see that it is inside a call */
			if (trap->probe->function == FUNCTION_DELETE && pads_slot(th)) {
				enter_call(t, th, trap, regs);
				next = trap->stub.call;
			}
		} else {
			th->has_deleted = false;
			enter_call(t, th, trap, regs);
			next = trap->stub.call;
		}
	}
	regs->word[t->arch->pc] = next;
	ptrace_set_word(th->tid, t->arch->pc, next);
}

/* -- returns -- */

static taddr_t call_result(struct target *t, struct thread *th, const struct call *call,
			   const struct arch_regs *regs)
{
	uint64_t result = regs->word[t->arch->ret];
	if (!call->args.result)
		return result;
	uint64_t block = 0;
	if ((uint32_t)result != 0 ||
	    space_read(th->process->space, call->args.result, &block, sizeof(block)) != 0)
		return 0;
	return block;
}

static void leave_call(struct target *t, struct thread *th, const struct call *call,
		       const struct arch_regs *regs)
{
	bool is_realloc = call->probe->kind == PROBE_REALLOC && call->args.block;
	struct heap_event ev =
		new_event(t, th, is_realloc ? HEAP_REALLOC_END : HEAP_ALLOC, call->probe->function);
	ev.addr = call_result(t, th, call, regs);
	ev.size = call->args.size;
	ev.align = call->args.align;
	ev.old_addr = is_realloc ? call->args.block : 0;
	ev.sp = caller_sp(t, call->sp);
	struct stack_view view;
	if ((ev.addr && !t->options.no_stacks) || (t->options.free_stacks && is_realloc)) {
		trap_fill_view(t, th, regs, call->sp, &view);
		ev.stack = &view;
	}
	emit(t, th, &ev);
}

/* The program's call of mmap, mremap or munmap returned; the largest results are errors. */
static void leave_mapping(struct target *t, struct thread *th, const struct call *call,
			  const struct arch_regs *regs)
{
	struct heap_event ev = new_event(t, th, HEAP_MAPPING_CALL, call->probe->function);
	uint64_t result = regs->word[t->arch->ret];
	bool is_munmap = call->probe->function == FUNCTION_MUNMAP;
	ev.old_addr = call->args.block;
	ev.size = call->args.size;
	ev.align = call->probe->function == FUNCTION_MMAP ?
		   (call->args.prot & UINT32_MAX) | call->args.flags << 32 : call->args.align;
	if (is_munmap)
		ev.addr = (uint32_t)result == 0 ? call->args.block : 0;
	else
		ev.addr = result >= -(uint64_t)PAGE_SIZE_MIN ? 0 : result;
	ev.sp = caller_sp(t, call->sp);
	emit(t, th, &ev);
}

static void serve_return(struct target *t, struct thread *th, struct trap *trap,
			 struct arch_regs *regs)
{
	taddr_t sp = regs->word[t->arch->sp] + trap->stub.trap_below;
	/* calls noted deeper than this one were left by a jump */
	if (sp > 0)
		trap_drop_calls(t, th, sp - 1);
	if (th->calls.count == 0)
		return; /* entered under an earlier tracer */
	struct call call = th->calls.data[th->calls.count - 1];
	if (call.sp != sp || call.stub_return != trap->addr)
		return;
	th->calls.count--;
	restore_guard(th, &call);
	if (th->calls.count == 0)
		th->had_signal = false;
	if (call.probe->kind == PROBE_MAPPING)
		leave_mapping(t, th, &call, regs);
	else if (call.probe->kind != PROBE_FREE)
		leave_call(t, th, &call, regs);
}

/*
 * The kernel unblocks SIGTRAP when a breakpoint is met with it blocked. A mask
 * that holds everything else had held it too: give it back.
 */
static void mend_mask(struct target *t, struct thread *th)
{
	uint64_t mask, all = ~NEVER_BLOCKED & ~SIGNAL_BIT(SIGTRAP);
	if (ptrace_get_sigmask(th->tid, &mask) != 0 || (mask & all) != all ||
	    mask & SIGNAL_BIT(SIGTRAP))
		return;
	ptrace_set_sigmask(th->tid, mask | SIGNAL_BIT(SIGTRAP));
	t->stats.masks_mended++;
}

/* A space whose breakpoints are met often gets pads. */
#define HOT_HITS 16

static void count_hit(struct target *t, struct space *s, const struct trap *trap)
{
	const char *why;
	uint32_t hot = t->options.promote_at_once ? 1 : HOT_HITS;
	if (!probe_may_be_hot(trap->probe) || trap->is_cold || !s->is_ready || ++s->hits < hot)
		return;
	s->hits = 0;
	if (s->is_profiled && pads_are_possible(t, s, &why))
		t->promote = s;
}

static bool is_left_over(const struct arch *arch, const siginfo_t *info, const struct arch_regs *regs)
{
	return info->si_signo == SIGTRAP &&
	       (info->si_code == SIGTRAP ||
		(info->si_code == TRAP_TRACE && !(regs->word[arch->flags] & arch->step_flag)));
}

bool trap_is_left_over(const struct target *t, const struct thread *th)
{
	struct arch_regs regs;
	siginfo_t info;
	return t->is_guardian && ptrace_get_siginfo(th->tid, &info) == 0 &&
	       ptrace_get_regs(th->tid, &regs) == 0 && is_left_over(t->arch, &info, &regs);
}

/* A breakpoint that ptmem had put there. It may be out again: then the instruction itself stands there. */
static bool serve_for_guardian(struct target *t, struct thread *th, taddr_t addr)
{
	struct space *s = th->process->space;
	taddr_t to = guard_resume_address(s, addr);
	uint8_t first;
	if (!to)
		return guard_has_moved(s, addr + t->arch->trap_pc_offset);
	if (space_read(s, addr, &first, 1) == 0 && first != t->arch->trap[0])
		to = addr;
	ptrace_set_word(th->tid, t->arch->pc, to);
	return true;
}

enum trap_answer trap_serve(struct target *t, struct thread *th)
{
	struct arch_regs regs;
	siginfo_t info;
	if (ptrace_get_regs(th->tid, &regs) != 0)
		return TRAP_GO_ON; /* gone: its end will be reported */
	taddr_t addr = regs.word[t->arch->pc] - t->arch->trap_pc_offset;
	struct trap *trap = space_trap_find(th->process->space, addr);
	if (ptrace_get_siginfo(th->tid, &info) != 0 || info.si_code <= 0)
		return TRAP_FOREIGN;
	if (t->is_guardian && is_left_over(t->arch, &info, &regs))
		return TRAP_GO_ON;
	if (t->is_guardian)
		return serve_for_guardian(t, th, addr) ? TRAP_GO_ON : TRAP_FOREIGN;
	if (!trap)
		return TRAP_FOREIGN;
	struct space *s = th->process->space;
	t->stats.trap_stops++;
	s->pauses.trap_stops++;
	mend_mask(t, th);
	switch (trap->kind) {
	case TRAP_ENTRY:
		pads_catch_up(t, s);
		count_hit(t, s, trap);
		trap_enter(t, th, trap, &regs);
		break;
	case TRAP_RETURN:
		pads_catch_up(t, s);
		serve_return(t, th, trap, &regs);
		break;
	case TRAP_SYSCALL:
		syscalls_serve_site(t, th, trap, &regs);
		break;
	case TRAP_START:
		space_trap_take(th->process->space, t->arch, trap);
		ptrace_set_word(th->tid, t->arch->pc, addr);
		install_at_start(t, th);
		break;
	case TRAP_PAD_EXIT:
		ptrace_set_word(th->tid, t->arch->pc, trap->stub.jump);
		break;
	case TRAP_PAD_ENTRY:
	case TRAP_PAD_LEAVE:
	case TRAP_PAD_FULL:
		return pads_serve(t, th, trap, &regs) ? TRAP_GO_ON : TRAP_WAIT;
	}
	return TRAP_GO_ON;
}
