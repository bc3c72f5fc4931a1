/* glibc's parameters of malloc, mp_. */
#ifndef PTMEM_INSPECT_GLIBC_PARAMS_H
#define PTMEM_INSPECT_GLIBC_PARAMS_H

#include "inspect/glibc.h"

/*
 * Looks for mp_ near the main arena of @g, in the range of @data that contains the arena, and fills
 * in g->params.
 */
void glibc_params_find(struct inspect_memory *m, const struct glibc_range *data, size_t count,
		       struct glibc *g);

#endif
