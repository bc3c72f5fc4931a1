/*
 * symbols/wrapper.h's ranks for frames of massif files, and the call sites of their stacks.
 */
#ifndef PTMEM_REPORT_MASSIF_WRAPPER_H
#define PTMEM_REPORT_MASSIF_WRAPPER_H

#include "report/massif_frame.h"
#include "symbols/wrapper.h"

/* By what the user says, too: @file->my_code. */
enum frame_rank massif_wrapper_rank(const struct massif_file *file,
				    const struct massif_frame *frame);

/* Whether the function is an allocator by its name. */
bool massif_wrapper_is_allocator(const struct massif_frame *frame);

/*
 * The call site (symbols/stack_site.h) of the stack that ends with @outermost: the number of frames
 * inside it. The root is a frame only if it is the whole stack.
 */
size_t massif_wrapper_site(const struct massif_file *file, uint32_t outermost);

#endif
