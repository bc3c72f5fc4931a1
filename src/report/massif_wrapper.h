/*
 * symbols/wrapper.h's ranks for frames of massif files.
 */
#ifndef PTMEM_REPORT_MASSIF_WRAPPER_H
#define PTMEM_REPORT_MASSIF_WRAPPER_H

#include "report/massif_file.h"
#include "symbols/wrapper.h"

enum frame_rank massif_wrapper_rank(const struct massif_frame *frame);

/* Whether the function allocates by its name. */
bool massif_wrapper_is_allocator(const struct massif_frame *frame);

#endif
