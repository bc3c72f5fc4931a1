/*
 * Watched calls that go through stubs: which ones a thread is in, and their events.
 *
 * A call is inside another if its stack pointer is below that of the other. If it is above, the
 * other was left by longjmp or an exception. A signal handler that allocates while its thread is
 * inside a call is detected by unwinding (only if a signal came meanwhile).
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

/* Initializes an event of @th now. Its stack pointer is @sp if events need it (call_sp), else 0. */
struct heap_event call_event(const struct target *t, const struct thread *th,
			     enum heap_event_kind kind, const struct probe *probe, taddr_t sp);
void call_emit(struct target *t, struct thread *th, const struct heap_event *ev);

/* @th, with @regs at the entry of @trap's function, enters the stub: pushes the call. */
void call_enter(struct target *t, struct thread *th, const struct trap *trap,
		const struct arch_regs *regs);
/* @th has got a slot: pads must know of its calls, of which a signal may have interrupted some. */
void call_note_all(struct target *t, struct thread *th);
/*
 * @th is at the trap after a stub's call, at address @stub_return; its stack pointer at the entry
 * was @sp. Pops that call; false if there is none (it was entered under an earlier tracer).
 */
bool call_leave(struct target *t, struct thread *th, taddr_t sp, taddr_t stub_return,
		struct call *out);
/*
 * Drops the calls of @th whose frames were left: those at or below @sp; UINT64_MAX: all, at its
 * end.
 */
void call_drop(struct target *t, struct thread *th, taddr_t sp);
/*
 * Whether a call that enters at @regs is inside another one. Drops calls that were left. @where:
 * the stack; NULL = as at a function's entry.
 */
bool call_is_nested(struct target *t, struct thread *th, const struct arch_regs *regs,
		    const struct stack_view *where);

/* @left was left by an exception: reports a failed allocation. */
void call_emit_failure(struct target *t, struct thread *th, const struct thrown *left);

/* Sets the pc of @th, whose registers are @regs, to @pc. */
void call_continue_at(struct target *t, struct thread *th, struct arch_regs *regs, taddr_t pc);

#endif
