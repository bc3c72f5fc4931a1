/*
 * One step outwards for frames that no rule can describe: CFI rows with expressions, signal
 * frames, code without CFI.
 */
#ifndef PTMEM_UNWIND_SLOW_H
#define PTMEM_UNWIND_SLOW_H

#include "unwind/frame.h"

enum slow_way { SLOW_CFI, SLOW_SIGNAL, SLOW_FRAME_POINTER };

/*
 * Replaces *frame by its caller. 0: *way_out says how. 1: the frame is the
 * outermost. -ENODATA: nothing explains it; -EFAULT: memory could not be read.
 */
int slow_step(const struct arch *arch, const struct unwind_ops *ops, const struct stack_view *view,
	      struct frame *frame, enum slow_way *way_out);

/* The same by the CFI of @module alone; -ENOENT where it has none. */
int slow_step_in(const struct arch *arch, const struct module *module,
		 const struct stack_view *view,
		 struct frame *frame);

/* Whether @pc can be a return address: a call precedes it, or it is a signal trampoline, or 0. */
bool slow_is_return_address(const struct unwind_ops *ops, const struct stack_view *view,
			    taddr_t pc);

#endif
