/* A walk's cache misses, ahead of time: most of what a walk through a large heap takes. */
#ifndef PTMEM_GRAPH_TYPED_AHEAD_H
#define PTMEM_GRAPH_TYPED_AHEAD_H

#include "graph/typed_walk.h"

/*
 * Before each step of @w, whose heap has find_soon and extent_soon: starts reading what the next
 * steps in the queue will need. Changes nothing.
 */
void typed_ahead(const struct typed_walk *w);

/*
 * The same within a step, for the elements that follow @data, a pointer of an array of which @bytes
 * are left: an array may have more pointers than there are other steps.
 */
void typed_ahead_element(const struct typed_walk *w, const uint8_t *data, uint64_t bytes);

#endif
