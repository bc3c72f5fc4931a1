/*
 * Of what types the blocks are that owners retain: "40,000 Order and 2,000 Session". One pass over
 * the tree for all rows.
 */
#ifndef PTMEM_GRAPH_GRAPH_CONTENTS_H
#define PTMEM_GRAPH_GRAPH_CONTENTS_H

#include "graph/graph_view.h"

struct graph_content {
	uint32_t row;           /* index in the rows */
	uint32_t type;
	uint64_t blocks, bytes;
};

struct graph_contents {
	VEC(struct graph_content) list; /* by row, most bytes first */
	size_t at;              /* the caller's: what it has shown */
};

/* Of the owners on level 0 of @rows. Free @out with vec_deinit. */
void graph_contents_find(const struct heap_graph *g, const struct graph_rows *rows,
			 struct graph_contents *out);

#endif
