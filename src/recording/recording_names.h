/* Objects, frames and nodes of a recording, added when a leaf needs them. */
#ifndef PTMEM_RECORDING_RECORDING_NAMES_H
#define PTMEM_RECORDING_RECORDING_NAMES_H

#include "recording/recording_build.h"

/* Values of FRAME_KIND. */
enum recording_kind { KIND_PROGRAM, KIND_LIBRARY, KIND_ALLOCATOR, KIND_STANDARD };

/* An address in a program, as its frames are shown. */
struct recording_place {
	uint64_t object;             /* FRAME_OBJECT */
	taddr_t address;
	const struct filter *filter; /* of allocation functions */
};

/*
 * Whether @symbol is of a function that only calls main. It has a name, and neither a source file
 * nor inlined calls: the debug information of libc, which takes 40 ms to read, is not read for it.
 */
bool recording_names_is_startup(const struct symbol *symbol);
/* Adds a frame for each function at @place: the outermost, then those inlined there. */
void recording_names_add(struct recording *r, const struct recording_place *place,
			 const struct symbol *symbol);

/* Adds the executable, if it is known, as an object. */
void recording_names_program(struct recording_builder *b);

/* The row + 1 of node @node of the call tree; 0 for the root. */
uint32_t recording_names_node(struct recording_builder *b, uint32_t node);

#endif
