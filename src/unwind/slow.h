/*
 * One step outwards where no rule can say it: CFI rows with expressions, signal
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

/*
 * Whether somebody can return to @pc: a call stands before it, or it is a signal trampoline, or 0.
 */
bool slow_is_return_address(const struct unwind_ops *ops, const struct stack_view *view,
			    taddr_t pc);

#endif
