/* The kind of object that a frame belongs to: each has a colour in flame graphs. */
#ifndef PTMEM_OUTPUT_FRAME_KIND_H
#define PTMEM_OUTPUT_FRAME_KIND_H

#include "symbols/standard_library.h"

enum frame_kind {
	FRAME_PROGRAM,         /* the executable, and frames of unknown objects */
	FRAME_LIBC,            /* libc and the loader */
	FRAME_STANDARD,        /* the standard libraries of C++ and Rust, also inlined */
	FRAME_LIBRARY,         /* any other shared object, and headers of packages */
	FRAME_NONE,            /* not a function: "[below threshold]" */
	FRAME_KINDS,
};

enum frame_kind frame_kind(const struct frame_text *frame);

#endif
