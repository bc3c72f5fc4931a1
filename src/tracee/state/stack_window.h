/*
 * The copied part of a stopped thread's stack, and views of it for unwinders. A walk goes up the
 * stack, so memory after the copy is read ahead, in growing amounts.
 */
#ifndef PTMEM_TRACEE_STATE_STACK_WINDOW_H
#define PTMEM_TRACEE_STATE_STACK_WINDOW_H

#include "arch/arch.h"
#include "base/types.h"

struct stack_view;
struct target;
struct thread;

struct stack_window {
	uint8_t *copy;              /* copy of the top of the stack */
	size_t size, capacity;
	taddr_t start;              /* address of the copy */
	/* bytes to copy next time: the depth that unwinders have needed so far */
	size_t want;
	/* other memory read during this stop; NULL = none yet */
	uint8_t *above;
	taddr_t above_start;
	size_t above_size;
};
void stack_window_deinit(struct stack_window *w);

/*
 * The view of @th at a function's entry, with @regs; @sp is the address of the return address:
 * frame 0 is left out. Valid until the next view of @th.
 */
void stack_window_at_entry(struct target *t, struct thread *th, const struct arch_regs *regs,
			   taddr_t sp, struct stack_view *view);
/* The view of a thread stopped anywhere: its current registers, nothing left out. */
void stack_window_at_stop(struct target *t, struct thread *th, const struct arch_regs *regs,
			  struct stack_view *view);

#endif
