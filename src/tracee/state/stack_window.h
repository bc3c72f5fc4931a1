/*
 * The part of a stopped thread's stack that was copied, and views of the stack for unwinders. A
 * walk goes up the stack: what follows the copy is read along, the more the longer it continues.
 */
#ifndef PTMEM_TRACEE_STATE_STACK_WINDOW_H
#define PTMEM_TRACEE_STATE_STACK_WINDOW_H

#include "arch/arch.h"
#include "base/types.h"

struct stack_view;
struct target;
struct thread;

struct stack_window {
	uint8_t *copy;              /* of the top of the stack */
	size_t size, capacity;
	taddr_t start;              /* where the copy begins */
	/* bytes to copy next time: as deep as an unwinder looked so far */
	size_t want;
	/* what else was read during this stop; NULL = nothing ever was */
	uint8_t *above;
	taddr_t above_start;
	size_t above_size;
};
void stack_window_deinit(struct stack_window *w);

/*
 * The view of @th at a function's entry, with @regs, where @sp is the address of the return
 * address: frame 0 is left out. It is valid until the next one of @th.
 */
void stack_window_at_entry(struct target *t, struct thread *th, const struct arch_regs *regs,
			   taddr_t sp, struct stack_view *view);
/* The view of a thread stopped anywhere: its own registers, nothing left out. */
void stack_window_at_stop(struct target *t, struct thread *th, const struct arch_regs *regs,
			  struct stack_view *view);

#endif
