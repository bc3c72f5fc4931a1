/*
 * Watched calls that go through stubs: which ones a thread is inside of, and their events.
 *
 * A call is inside another when its stack pointer lies below that of the noted
 * one. One above it means that the noted call was left by longjmp or an
 * exception. Signal handlers that allocate while their thread is inside a call
 * are found by unwinding (only when a signal came meanwhile).
 */
#ifndef PTMEM_TRACEE_CALLS_CALLS_H
#define PTMEM_TRACEE_CALLS_CALLS_H

#include "tracee/state/heap_event.h"

struct call;
struct probe;
struct target;
struct thread;
struct thrown;
struct trap;

/* An event of @th now. Its stack pointer is @sp if events need it (call_sp), else 0. */
struct heap_event call_event(const struct target *t, const struct thread *th,
			     enum heap_event_kind kind, const struct probe *probe, taddr_t sp);
void call_emit(struct target *t, struct thread *th, const struct heap_event *ev);

/* @th, with @regs at the entry of @trap's function, goes through its stub: notes the call. */
void call_enter(struct target *t, struct thread *th, const struct trap *trap,
		const struct arch_regs *regs);
/*
 * @th is at the trap after the call of a stub, at the address @stub_return, and its stack pointer
 * was @sp at the entry. Takes that call off the list: false if there is none (an earlier tracer
 * noted it).
 */
bool call_leave(struct target *t, struct thread *th, taddr_t sp, taddr_t stub_return,
		struct call *out);
/* Calls of @th whose frames are gone, those at or below @sp; UINT64_MAX: all, at its end. */
void call_drop(struct target *t, struct thread *th, taddr_t sp);
/*
 * Whether a call that enters at @regs is part of one that is noted. Drops what is gone. @where: the
 * stack, NULL = as at a function's entry.
 */
bool call_is_nested(struct target *t, struct thread *th, const struct arch_regs *regs,
		    const struct stack_view *where);

/* @left was left by an exception: a failed allocation. */
void call_emit_failure(struct target *t, struct thread *th, const struct thrown *left);

/* Sends @th, whose registers are @regs, to @pc. */
void call_continue_at(struct target *t, struct thread *th, struct arch_regs *regs, taddr_t pc);

#endif
