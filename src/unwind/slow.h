/*
 * One step outwards for frames that no rule can describe: CFI rows with expressions, signal
 * frames, code without CFI.
 */
#ifndef PTMEM_UNWIND_SLOW_H
#define PTMEM_UNWIND_SLOW_H

#include "unwind/frame.h"

enum slow_way { SLOW_CFI, SLOW_SIGNAL, SLOW_FRAME_POINTER };

/*
 * Replaces *frame with its caller. Returns 0 and sets *way_out; 1 if the frame is the outermost;
 * -ENODATA if no method applies; -EFAULT if memory could not be read.
 */
int slow_step(const struct arch *arch, const struct unwind_ops *ops, const struct stack_view *view,
	      struct frame *frame, enum slow_way *way_out);

/* The same by the CFI of @module only; -ENOENT if it has none. */
int slow_step_in(const struct arch *arch, const struct module *module,
		 const struct stack_view *view,
		 struct frame *frame);

/* Whether @pc can be a return address: it follows a call, is a signal trampoline, or is 0. */
bool slow_is_return_address(const struct unwind_ops *ops, const struct stack_view *view,
			    taddr_t pc);

#endif
