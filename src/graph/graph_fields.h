/*
 * What each field of a heap graph's types holds: "Session.orders" of all sessions.
 *
 *	retained  blocks that the field of some object holds alone: all ways to them pass it.
 *	          Each counts once in a row, also if it is behind a chain of the same field
 *	          ("node.next"), but in the rows of all fields on the way: rows contain each
 *	          other
 *	own       blocks whose last holder is that field: no other row has them. The own bytes of
 *	          all rows are those of all blocks
 *
 * What an object holds by several of its fields only together, as the nodes between "first" and
 * "last", is in a row of that type.
 */
#ifndef PTMEM_GRAPH_GRAPH_FIELDS_H
#define PTMEM_GRAPH_GRAPH_FIELDS_H

#include "graph/heap_graph.h"

struct graph_field_row {
	char *text;             /* "Session.orders", "cache.by_user[*]"; owned */
	uint64_t bytes, blocks; /* retained */
	uint64_t own_bytes, own_blocks;
};

struct graph_field_rows {
	VEC(struct graph_field_row) list; /* most retained bytes first */
};

/*
 * @g has kept its edges and has types. @shared names the row of what several owners lead to. Takes
 * 16 bytes a block while it searches.
 */
void graph_fields_find(const struct heap_graph *g, const char *shared,
		       struct graph_field_rows *out);
void graph_fields_deinit(struct graph_field_rows *rows);

#endif
