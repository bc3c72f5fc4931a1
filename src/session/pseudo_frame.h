/*
 * Frames for what has no code of its own: [anonymous], [file NAME], [stack], [shared memory],
 * [minor fault], [major fault], [truncated]. Their addresses lie where no program has any, outside
 * all modules.
 */
#ifndef PTMEM_PSEUDO_FRAME_H
#define PTMEM_PSEUDO_FRAME_H

#include "profile/calltree.h"
#include "symbols/symbols.h"

/* The outermost frame of a stack that is not whole. */
#define PSEUDO_TRUNCATED "[truncated]"

/*
 * The frame called @name, added if it is new. Its address is made of @object, or of the name if
 * that is NULL, so that it is the same in all call trees.
 */
uint32_t pseudo_frame_get(struct symbols *symbols, struct calltree *tree, const char *name,
			  const char *object);
/* The frame called @name; 0 = there is none. */
uint32_t pseudo_frame_find(const struct calltree *tree, const char *name);

#endif
