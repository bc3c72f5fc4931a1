/*
 * Exceptions inside of calls that pads entered; calls/exceptions.c has the picture.
 */
#ifndef PTMEM_TRACEE_PADS_PAD_EXCEPTIONS_H
#define PTMEM_TRACEE_PADS_PAD_EXCEPTIONS_H

#include "arch/pad.h"
#include "base/types.h"

struct arch_regs;
struct target;
struct thread;

/* An exception is about to be made by @th; or was thrown. */
void pads_suspend(struct target *t, struct thread *th, const struct arch_regs *regs);
void pads_raise(struct thread *th, taddr_t exception);
/* @exception was caught in the frame at @sp. */
void pads_resume(struct thread *th, taddr_t exception, taddr_t sp);
/* What is in the return slot of the original during the call of @slot, which is that of @th. */
taddr_t pads_return_to(const struct thread *th, const struct pad_slot *slot);

#endif
