/* The stack machine of DWARF (DWARF 5, section 2.5), as far as call frame information uses it. */
#ifndef PTMEM_UNWIND_EXPRESSION_H
#define PTMEM_UNWIND_EXPRESSION_H

#include <elfutils/libdw.h>

#include "unwind/frame.h"

struct expression_input {
	const struct stack_view *view;
	const struct frame *frame;
	uint64_t cfa; /* used by DW_OP_call_frame_cfa */
};

enum expression_kind {
	EXPRESSION_VALUE,    /* *value_out is the value (DW_OP_stack_value, a register) */
	/* *value_out is the address where the value is, or a plain result */
	EXPRESSION_LOCATION,
};

/*
 * Runs the @count operations at @ops. Returns 0, -EFAULT if memory could not be read, -EINVAL for
 * an unknown register or operation, stack under- or overflow, or too many steps.
 */
int expression_run(const Dwarf_Op *ops, size_t count, const struct expression_input *in,
		   enum expression_kind *kind_out, uint64_t *value_out);

#endif
