/*
 * Handles stops at watched functions. The thread continues in its stub, at .call or .jump.
 *
 *	at the entry of   outermost         inside a call
 *	alloc, realloc    push it; .call    .jump
 *	free, delete      event; .jump      .jump
 *	mapping           push it; .call    .jump
 *	throw, catch      calls.c; .jump
 *	program's end     event; .jump
 *
 *	after the call   event with the result; the stub returns to the caller
 */
#include "tracee/calls/calls.h"

#include <signal.h>
#include <string.h>

#include "arch/pad.h"
#include "base/alloc.h"
#include "base/log.h"
#include "tracee/calls/client_request.h"
#include "tracee/calls/confirm.h"
#include "tracee/calls/pools.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pads.h"
#include "tracee/state/custom_probe.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"

static enum trap_answer resume_at_jump(struct target *t, struct thread *th, const struct trap *trap,
				       struct arch_regs *regs)
{
	call_continue_at(t, th, regs, trap->stub.jump);
	return TRAP_RESUME;
}

static enum trap_answer resume_at_call(struct target *t, struct thread *th, const struct trap *trap,
				       struct arch_regs *regs)
{
	call_enter(t, th, trap, regs);
	call_continue_at(t, th, regs, trap->stub.call);
	return TRAP_RESUME;
}

/* -- addresses of the user's -- */

/* Blocks of malloc are aligned, and all of their memory exists. */
static bool may_be_block(const struct address_space *s, taddr_t addr, uint64_t size)
{
	uint8_t byte;
	taddr_t last = addr + (size ? size - 1 : 0);
	return addr % sizeof(void *) == 0 && last >= addr &&
	       space_read(s, addr, &byte, 1) == 0 && space_read(s, last, &byte, 1) == 0;
}

/* @addr: a block that a call of @probe returned, or is given. */
static void confirm(struct thread *th, const struct probe *probe, taddr_t addr, uint64_t size)
{
	struct address_space *s = th->process->space;
	if (!custom_probe_is_guess(probe) || !addr || s->watch.is_unconfirmed ||
	    may_be_block(s, addr, size))
		return;
	s->watch.is_unconfirmed = true;
	log_error("process %d: --probe=%s: that is not %s: a call %s %#lx, where no block of %lu "
		  "bytes can be; there will be no profile", s->processes.pid, probe->custom->text,
		  probe->symbol, probe->kind == PROBE_FREE ? "was given" : "has returned",
		  (unsigned long)addr, (unsigned long)size);
}

/* -- allocation -- */

/* The enum pad_kind of the pad call that @th is in; 0 = none. */
static uint32_t outer_pad_kind(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	uint32_t kind = pads_outer_kind(t, th, regs);
	t->stats.nested += kind != 0;
	return kind;
}

static enum trap_answer serve_alloc(struct target *t, struct thread *th, struct trap *trap,
				    struct arch_regs *regs)
{
	if (outer_pad_kind(t, th, regs) || call_is_nested(t, th, regs, NULL))
		return resume_at_jump(t, th, trap, regs);
	th->calls.has_deleted = false;
	return resume_at_call(t, th, trap, regs);
}

/* -- pools of the user's probes -- */

struct pool_change {
	struct target *target;
	struct thread *thread;
	const struct probe *probe;
	taddr_t sp;
	struct heap_event *alloc;       /* complete but for its address and size */
	struct stack_view *free_stack; /* NULL = frees have none */
};

static void pool_block_added(void *ctx, taddr_t addr, uint64_t size)
{
	struct pool_change *c = ctx;
	c->alloc->addr = addr;
	c->alloc->size = size;
	call_emit(c->target, c->thread, c->alloc);
}

/* The block may be gone already: by a function that does not name the pool. */
static void pool_block_removed(void *ctx, taddr_t addr)
{
	struct pool_change *c = ctx;
	struct heap_event ev = call_event(c->target, c->thread, HEAP_FREE, c->probe, c->sp);
	ev.addr = addr;
	ev.is_inner = true;
	ev.stack = c->free_stack;
	call_emit(c->target, c->thread, &ev);
}

static void change_pool(struct pool_change *c, const struct request *r)
{
	struct address_space *s = c->thread->process->space;
	const struct pool_ops ops = {pool_block_added, pool_block_removed, c};
	if (!s->heap.pools)
		s->heap.pools = xcalloc(1, sizeof(*s->heap.pools));
	pools_apply(s->heap.pools, r, &ops);
}

static void release_in_pool(struct target *t, struct thread *th, struct trap *trap,
			    const struct arch_regs *regs)
{
	struct probe_call args;
	struct stack_view view;
	struct pool_change c = {.target = t, .thread = th, .probe = trap->probe,
				.sp = regs->word[t->arch->sp]};
	probe_read_call(trap->probe, t->arch, regs, &args);
	if (t->options.events.free_stacks) {
		stack_window_at_entry(t, th, regs, c.sp, &view);
		c.free_stack = &view;
	}
	const struct request r = {
		.kind = trap->probe->is_reset ? REQUEST_POOL_DESTROY : REQUEST_POOL_FREE,
		.pool = args.pool, .addr = args.block};
	change_pool(&c, &r);
}

/* -- free -- */

/* Whether @th, whose stack pointer is @sp, is still in the operator delete that it entered last. */
static bool is_in_delete(const struct thread *th, taddr_t sp)
{
	const struct deleted *d = &th->calls.deleted;
	uint64_t word = 0;
	return th->calls.has_deleted && sp <= d->sp &&
	       space_read(th->process->space, d->sp, &word, sizeof(word)) == 0 &&
	       word == d->return_pc;
}

taddr_t entry_delete_return(const struct thread *th, taddr_t sp)
{
	return is_in_delete(th, sp) ? th->calls.deleted.return_pc : 0;
}

bool entry_take_delete(const struct target *t, struct thread *th, taddr_t *block_out)
{
	struct arch_regs regs;
	bool is_inside = th->calls.has_deleted && ptrace_get_regs(th->tid, &regs) == 0 &&
			 is_in_delete(th, regs.word[t->arch->sp]);
	th->calls.has_deleted = false;
	if (is_inside)
		*block_out = th->calls.deleted.block;
	return is_inside;
}

/*
 * Whether an operator delete is entered as a call instead: with a slot, since pads do not report
 * when it is left; and where no word of the stack shows whether it was.
 */
static bool enters_delete(const struct target *t, const struct thread *th)
{
	return pads_slot(th) || !t->arch->return_size;
}

static void note_delete(struct target *t, struct thread *th, const struct trap *trap, taddr_t block,
			const struct arch_regs *regs)
{
	struct deleted *d = &th->calls.deleted;
	*d = (struct deleted){
		.trap = trap->addr, .block = block, .sp = regs->word[t->arch->sp]};
	th->calls.has_deleted = trap->probe->function == FUNCTION_DELETE &&
				!enters_delete(t, th) &&
				thread_read_return(t, th, regs, &d->return_pc) == 0;
}

static void free_event(struct target *t, struct thread *th, struct trap *trap,
		       const struct arch_regs *regs, bool is_inner)
{
	struct probe_call args;
	taddr_t sp = regs->word[t->arch->sp];
	probe_read_call(trap->probe, t->arch, regs, &args);
	confirm(th, trap->probe, args.block, 0);
	if (trap->guess)
		confirm_free(th->process->space, args.block, is_inner);
	/* operator delete frees by calling another delete or free: a single event */
	if (th->calls.has_deleted && th->calls.deleted.block == args.block &&
	    th->calls.deleted.trap != trap->addr && is_in_delete(th, sp)) {
		th->calls.has_deleted = trap->probe->function == FUNCTION_DELETE;
		return;
	}
	if (pads_take_deleted(t, th, args.block))
		return;
	note_delete(t, th, trap, args.block, regs);
	struct heap_event ev = call_event(t, th, HEAP_FREE, trap->probe, sp);
	ev.is_inner = is_inner;
	ev.addr = args.block;
	struct stack_view view;
	if (t->options.events.free_stacks && ev.addr) {
		stack_window_at_entry(t, th, regs, sp, &view);
		ev.stack = &view;
	}
	if (args.block || !is_inner) /* free(NULL) counts only if the program calls it */
		call_emit(t, th, &ev);
}

static void release(struct target *t, struct thread *th, struct trap *trap,
		    const struct arch_regs *regs, bool is_inner)
{
	if (trap->probe->pool)
		release_in_pool(t, th, trap, regs);
	else
		free_event(t, th, trap, regs, is_inner);
}

/*
 * A new-handler may free memory it had reserved, and a function of an allocator of the program's
 * own what was allocated outside of it. Inside another call, freeing a block that is not
 * live is not an event.
 */
static bool frees_inside(const struct thread *th, uint32_t outer_kind)
{
	if (outer_kind)
		return outer_kind != PAD_DELETE;
	const struct probe *outer = call_state_innermost(&th->calls)->probe;
	return outer->kind != PROBE_FREE || probe_is_own(outer);
}

static enum trap_answer serve_free(struct target *t, struct thread *th, struct trap *trap,
				   struct arch_regs *regs)
{
	uint32_t outer_kind = outer_pad_kind(t, th, regs);
	if (outer_kind || call_is_nested(t, th, regs, NULL)) {
		if (frees_inside(th, outer_kind))
			release(t, th, trap, regs, true);
		return resume_at_jump(t, th, trap, regs);
	}
	release(t, th, trap, regs, false);
	/* what it calls must not look like the program's own frees */
	if (probe_is_own(trap->probe))
		return resume_at_call(t, th, trap, regs);
	/* pads would record what it calls, unless they know that it is inside a call */
	if (trap->probe->function == FUNCTION_DELETE && enters_delete(t, th))
		return resume_at_call(t, th, trap, regs);
	return resume_at_jump(t, th, trap, regs);
}

/* -- mappings -- */

/* One object contains program and library: caller and callee are indistinguishable. */
static bool is_static(const struct address_space *s)
{
	size_t objects = 0;
	for (size_t i = 0; i < s->modules.count; i++)
		objects += !s->modules.data[i]->is_vdso;
	return objects == 1;
}

/*
 * Whether the program itself calls a mapping function: neither the allocator inside a watched call,
 * nor the library that contains the function (stacks of threads).
 */
static bool is_own_mapping(struct target *t, struct thread *th, const struct trap *trap,
			   const struct arch_regs *regs)
{
	struct address_space *s = th->process->space;
	struct pad_slot *slot = pads_slot(th);
	taddr_t sp = regs->word[t->arch->sp], caller = 0;
	if (call_is_nested(t, th, regs, NULL) || (slot && slot->return_at > sp) ||
	    thread_read_return(t, th, regs, &caller) != 0)
		return false;
	const struct module *own = space_find_module(s, trap->addr),
			    *from = space_find_module(s, caller);
	return own != from || is_static(s);
}

static enum trap_answer serve_mapping(struct target *t, struct thread *th, struct trap *trap,
				      struct arch_regs *regs)
{
	if (is_own_mapping(t, th, trap, regs))
		return resume_at_call(t, th, trap, regs);
	return resume_at_jump(t, th, trap, regs);
}

/* -- others -- */

static enum trap_answer serve_end(struct target *t, struct thread *th, struct trap *trap,
				  struct arch_regs *regs)
{
	struct heap_event ev = {.time_ns = t->now_ns, .thread = (uint32_t)th->tid,
				.kind = HEAP_PROGRAM_END, .function = FUNCTION_NONE};
	if (!th->process->is_vfork_child) /* its parent continues to run */
		call_emit(t, th, &ev);
	return resume_at_jump(t, th, trap, regs);
}

static enum trap_answer serve_exception(struct target *t, struct thread *th, struct trap *trap,
					struct arch_regs *regs)
{
	if (trap->probe->kind == PROBE_EXCEPTION)
		exceptions_begin(t, th, regs);
	else if (trap->probe->kind == PROBE_THROW)
		exceptions_raise(t, th, regs);
	else
		exceptions_catch(t, th, regs);
	if (trap->probe->kind == PROBE_CATCH)
		within_drop(t, th, regs->word[t->arch->sp]);
	return resume_at_jump(t, th, trap, regs);
}

trap_fn *entry_handler(const struct probe *probe)
{
	switch (probe->kind) {
	case PROBE_ALLOC:
	case PROBE_REALLOC:
		return serve_alloc;
	case PROBE_FREE:
		return serve_free;
	case PROBE_EXCEPTION:
	case PROBE_THROW:
	case PROBE_CATCH:
		return serve_exception;
	case PROBE_END:
		return serve_end;
	case PROBE_MAPPING:
		return serve_mapping;
	case PROBE_WITHIN:
		return within_serve_entry;
	}
	return NULL;
}

/* -- returns -- */

static taddr_t call_result(struct target *t, struct thread *th, const struct call *call,
			   const struct arch_regs *regs)
{
	uint64_t result = regs->word[t->arch->ret];
	if (!probe_has_succeeded(call->probe, result))
		return 0;
	if (call->probe->result_arg == PROBE_NO_ARG)
		return result;
	uint64_t block = 0;
	if (space_read(th->process->space, call->args.result, &block, sizeof(block)) != 0)
		return 0;
	return block;
}

/* The bytes of the string at @addr that can be read. */
static uint64_t string_size(const struct address_space *s, taddr_t addr)
{
	char text[256];
	uint64_t size = 0;

	for (;;) {
		ssize_t n = space_read_some(s, addr + size, text, sizeof(text));
		const char *end = n > 0 ? memchr(text, '\0', (size_t)n) : NULL;

		if (n <= 0)
			return size;
		if (end)
			return size + (uint64_t)(end - text) + 1;
		size += (uint64_t)n;
	}
}

static void emit_result(struct target *t, struct thread *th, const struct call *call,
			const struct arch_regs *regs)
{
	bool is_realloc = call->probe->kind == PROBE_REALLOC && call->args.block;
	struct heap_event ev = call_event(t, th, is_realloc ? HEAP_REALLOC_END : HEAP_ALLOC,
					  call->probe, call->sp);
	ev.addr = call_result(t, th, call, regs);
	if (call->guess)
		confirm_result(th->process->space, call, ev.addr);
	ev.size = call->probe->is_string && ev.addr ? string_size(th->process->space, ev.addr) :
						      call->args.size;
	confirm(th, call->probe, ev.addr, ev.size);
	ev.align = call->args.align;
	ev.old_addr = is_realloc ? call->args.block : 0;
	struct stack_view view;
	if ((ev.addr && !t->options.events.no_stacks) ||
	    (t->options.events.free_stacks && is_realloc)) {
		stack_window_at_entry(t, th, regs, call->sp, &view);
		ev.stack = &view;
	}
	if (call->probe->pool && ev.addr) {
		struct pool_change c = {.target = t, .thread = th, .probe = call->probe,
					.sp = call->sp, .alloc = &ev};
		const struct request r = {.kind = REQUEST_POOL_ALLOC, .pool = call->args.pool,
					  .addr = ev.addr, .size = ev.size};
		change_pool(&c, &r);
		return;
	}
	call_emit(t, th, &ev);
}

/* The program's call of mmap, mremap or munmap has returned; the largest results are errors. */
static void emit_mapping(struct target *t, struct thread *th, const struct call *call,
			 const struct arch_regs *regs)
{
	struct heap_event ev = call_event(t, th, HEAP_MAPPING_CALL, call->probe, call->sp);
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
	call_emit(t, th, &ev);
}

enum trap_answer entry_serve_return(struct target *t, struct thread *th, struct trap *trap,
				    struct arch_regs *regs)
{
	taddr_t sp = regs->word[t->arch->sp] + trap->stub.trap_below;
	struct call call;
	if (!call_leave(t, th, sp, trap->addr, &call))
		return TRAP_RESUME;
	if (!t->arch->return_size) /* for the stack, which is that of the entry */
		regs->word[t->arch->link] = call.link;
	if (call.probe->kind == PROBE_MAPPING)
		emit_mapping(t, th, &call, regs);
	else if (call.probe->kind != PROBE_FREE)
		emit_result(t, th, &call, regs);
	return TRAP_RESUME;
}

/*
 * Dispatch of stops at breakpoints.
 */

/* Number of stops after which a space gets pads. */
#define HOT_HITS 16

static void count_hit(struct target *t, struct address_space *s, struct trap *trap)
{
	uint32_t hot = t->options.probes.promote_at_once ? 1 : HOT_HITS;
	trap->hits++;
	if (!probe_may_be_hot(trap->probe) || trap->is_cold || !s->watch.is_ready ||
	    ++s->promotion.hits < hot)
		return;
	s->promotion.hits = 0;
	if (s->watch.is_profiled && !s->promotion.is_impossible && !t->options.probes.no_promotion)
		t->loop.promote = s;
}

/*
 * Handles a breakpoint that a dead ptmem left at @addr. If it was removed meanwhile, the original
 * instruction is there.
 */
static bool serve_for_guardian(struct target *t, struct thread *th, taddr_t addr)
{
	struct address_space *s = th->process->space;
	taddr_t to = journal_resume_address(s, addr);
	uint8_t now[sizeof(t->arch->trap)];
	if (!to)
		return journal_has_moved(s, addr + t->arch->trap_pc_offset);
	if (space_read(s, addr, now, t->arch->trap_size) == 0 &&
	    memcmp(now, t->arch->trap, t->arch->trap_size) != 0)
		to = addr;
	ptrace_set_word(th->tid, t->arch->pc, to);
	return true;
}

static enum trap_answer serve(struct target *t, struct thread *th, struct trap *trap,
			      struct arch_regs *regs)
{
	struct address_space *s = th->process->space;
	t->stats.trap_stops++;
	s->pauses.trap_stops++;
	t->hooks.restore_mask(t, th);
	if (trap->kind == TRAP_ENTRY || trap->kind == TRAP_RETURN)
		pads_catch_up(t, s);
	if (trap->kind == TRAP_ENTRY)
		count_hit(t, s, trap);
	if (trap->kind == TRAP_ENTRY && trap->probe->custom)
		trap->probe->custom->is_called = true;
	if (t->arch->trap_pc_offset != t->arch->trap_size) {
		/* it would hit the trap again; if ptmem dies now, its handler knows this address */
		ptrace_set_word(th->tid, t->arch->pc, journal_trap_resume(t->arch, trap));
		regs->word[t->arch->pc] = trap->addr + t->arch->trap_size;
	}
	return trap->serve(t, th, trap, regs);
}

enum trap_answer trap_serve(struct target *t, struct thread *th)
{
	struct arch_regs regs;
	siginfo_t info;
	if (ptrace_get_regs(th->tid, &regs) != 0)
		return TRAP_RESUME; /* gone: its end is reported later */
	if (ptrace_get_siginfo(th->tid, &info) != 0 || info.si_code <= 0)
		return TRAP_NOT_OURS;
	taddr_t addr = regs.word[t->arch->pc] - t->arch->trap_pc_offset;
	if (step_is_left_over(t, th))
		return TRAP_RESUME;
	if (t->recovery.is_guardian)
		return serve_for_guardian(t, th, addr) ? TRAP_RESUME : TRAP_NOT_OURS;
	struct trap *trap = space_trap_find(th->process->space, addr);
	return trap ? serve(t, th, trap, &regs) : TRAP_NOT_OURS;
}
