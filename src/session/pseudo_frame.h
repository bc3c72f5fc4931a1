/*
 * Frames for memory without code: [anonymous], [file NAME], [stack], [shared memory], [minor
 * fault], [major fault], [truncated]. Their addresses are outside of any program's range and all
 * modules.
 */
#ifndef PTMEM_PSEUDO_FRAME_H
#define PTMEM_PSEUDO_FRAME_H

#include "profile/calltree.h"
#include "symbols/symbols.h"

/* The outermost frame of an incomplete stack. */
#define PSEUDO_TRUNCATED "[truncated]"

/*
 * The frame called @name, added if it is new. Its address is a hash of @object, or of the name if
 * that is NULL, so it is the same in all call trees.
 */
uint32_t pseudo_frame_get(struct symbols *symbols, struct calltree *tree, const char *name,
			  const char *object);
/* The frame called @name; 0 if it does not exist. */
uint32_t pseudo_frame_find(const struct calltree *tree, const char *name);

#endif
