/* Exceptions that are created inside watched calls, or leave them; exceptions.c has an overview. */
#ifndef PTMEM_TRACEE_CALLS_EXCEPTIONS_H
#define PTMEM_TRACEE_CALLS_EXCEPTIONS_H

#include "arch/arch.h"

struct target;
struct thread;
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

#endif
