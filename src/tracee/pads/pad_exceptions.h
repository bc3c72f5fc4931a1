/* Exceptions inside calls that pads entered; calls/exceptions.c has an overview. */
#ifndef PTMEM_TRACEE_PADS_PAD_EXCEPTIONS_H
#define PTMEM_TRACEE_PADS_PAD_EXCEPTIONS_H

#include "arch/pad.h"
#include "base/types.h"

struct arch_regs;
struct target;
struct thread;

/* @th is about to create an exception; has thrown one. */
void pads_suspend(struct target *t, struct thread *th, const struct arch_regs *regs);
void pads_raise(struct thread *th, taddr_t exception);
/* @exception was caught in the frame at @sp. */
void pads_resume(struct thread *th, taddr_t exception, taddr_t sp);
/* The word in the return slot of the original during the call of @slot, which belongs to @th. */
taddr_t pads_return_to(const struct thread *th, const struct pad_slot *slot);

#endif
