/*
 * Stops at our breakpoints (the module that installs one registers its handler in struct trap),
 * and the watched calls that go through stubs: which ones a thread is in, their events, and
 * exceptions that are created inside them or leave them (calls.c has an overview). A call is
 * inside another if its stack pointer is below that of the other. If it is above, the other was
 * left by longjmp or an exception. A signal handler that allocates while its thread is inside a
 * call is detected by unwinding (only if a signal came meanwhile).
 */
#ifndef PTMEM_TRACEE_CALLS_CALLS_H
#define PTMEM_TRACEE_CALLS_CALLS_H

#include "arch/arch.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/space.h"

struct call;
struct custom_probe;
struct probe;
struct target;
struct thread;
struct thrown;
struct trap;

/* Initializes an event of @th now. Its stack pointer is @sp if events need it (call_sp), else 0. */
struct heap_event call_event(const struct target *t, const struct thread *th,
			     enum heap_event_kind kind, const struct probe *probe, taddr_t sp);
void call_emit(struct target *t, struct thread *th, struct heap_event *ev);

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

/* Sets the pc of @th, whose registers are @regs, to @pc. */
void call_continue_at(struct target *t, struct thread *th, struct arch_regs *regs, taddr_t pc);

/* Exceptions that are created inside watched calls, or leave them; calls.c has an overview. */

struct address_space;

/* Finds s->unwind_through.pc, which lets exceptions unwind through frames of stubs and pads. */
bool exceptions_find_row(struct target *t, struct address_space *s);
/*
 * ptmem detaches from @s, whose threads are stopped: calls that may throw will bypass their stubs
 * when they return, since no exception could unwind those.
 */
void exceptions_release_threads(struct target *t, struct address_space *s);
/*
 * @th, with @regs at a function's entry, is about to create an exception, to throw one, or has
 * caught one.
 */
void exceptions_begin(struct target *t, struct thread *th, const struct arch_regs *regs);
void exceptions_raise(struct target *t, struct thread *th, const struct arch_regs *regs);
void exceptions_catch(struct target *t, struct thread *th, const struct arch_regs *regs);

/* Traps at the entries of watched functions, and after the calls in their stubs. */

/* The handler for the entry of @probe's function; NULL: another module's (the loader, markers). */
trap_fn *entry_handler(const struct probe *probe);
/* Handles the trap in a stub after its call. */
trap_fn entry_serve_return;

/*
 * If @th, whose stack pointer is @sp, seems to be in the operator delete that it entered last at a
 * breakpoint, where that returns to; else 0. The event was counted at the entry, but the block may
 * not be free yet. It is certain only if the stack has a frame of that address: a stack keeps what
 * was written below its pointer.
 */
taddr_t entry_delete_return(const struct thread *th, taddr_t sp);

/*
 * Pads are about to follow @th. Whether it is inside an operator delete whose own free is not an
 * event; *block_out is that block.
 */
bool entry_take_delete(const struct target *t, struct thread *th, taddr_t *block_out);

/*
 * Stops at our breakpoints. The module that installs a breakpoint registers its handler in struct
 * trap.
 */

/* Handles a SIGTRAP of @th. */
enum trap_answer trap_serve(struct target *t, struct thread *th);

/*
 * Calls of functions of --within, from the entry to the return: a breakpoint at the entry, and one
 * at each address to which such a call returns (within.c). Neither changes the stack.
 */

trap_fn within_serve_entry;
/* Calls of @th that were entered below @sp were left, by longjmp or an exception. */
void within_drop(struct target *t, struct thread *th, taddr_t sp);
/* The call of @function that thread @tid of @s is in was left, as its events show. */
void within_forget(struct target *t, const struct address_space *s, pid_t tid,
		   const struct custom_probe *function);

/* Promotion of hot functions from breakpoints to pads. */

/* What promotion needs to know, and what takes long to find, while the threads of @s run. */
void promote_prepare(struct target *t, struct address_space *s);

/*
 * Promotes every watched function of @s whose entry is still a breakpoint; all threads are stopped,
 * @th is one of them. Called again for functions found later. 0 or -errno.
 */
int promote_functions(struct target *t, struct address_space *s, struct thread *th);

#endif
