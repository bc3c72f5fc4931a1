/* Watched calls that exceptions are made in, and leave; exceptions.c has the picture. */
#ifndef PTMEM_TRACEE_CALLS_EXCEPTIONS_H
#define PTMEM_TRACEE_CALLS_EXCEPTIONS_H

#include "arch/arch.h"

struct target;
struct thread;
struct address_space;

/* Finds s->unwind_through.pc, by which exceptions pass frames of stubs and pads. */
bool exceptions_find_row(struct target *t, struct address_space *s);
/*
 * ptmem leaves @s, whose threads are stopped: calls that may throw return past their stubs from now
 * on, since no exception could pass those.
 */
void exceptions_release_threads(struct target *t, struct address_space *s);
/*
 * @th, with @regs at a function's entry, is about to make an exception, to throw one, has caught
 * one.
 */
void exceptions_begin(struct target *t, struct thread *th, const struct arch_regs *regs);
void exceptions_raise(struct target *t, struct thread *th, const struct arch_regs *regs);
void exceptions_catch(struct target *t, struct thread *th, const struct arch_regs *regs);

#endif
