/* Objects, frames and nodes of a recording, made when a leaf needs them. */
#ifndef PTMEM_RECORDING_RECORDING_NAMES_H
#define PTMEM_RECORDING_RECORDING_NAMES_H

#include "recording/recording_build.h"

/* What FRAME_KIND says. */
enum recording_kind { KIND_PROGRAM, KIND_LIBRARY, KIND_ALLOCATOR, KIND_STANDARD };

/* The row + 1 of node @node of the call tree; 0 at the root. */
uint32_t recording_names_node(struct recording_builder *b, uint32_t node);

#endif
