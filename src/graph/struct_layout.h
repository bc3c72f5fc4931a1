/*
 * How the members of a struct can be ordered so that it is smaller. Hides: the rules by which
 * compilers for the System V ABI (and, of C++, the Itanium ABI) place members.
 *
 *	struct { char kind; void *next; int count; char open; }      24 bytes
 *	order: next, count, kind, open                               16 bytes
 *
 * The rules are first applied to the order that the struct has: if they do not give what its debug
 * information says, something else was in play (packed structs, unnamed bit fields, members that
 * share bytes, another language), and no order is proposed. A bit field without a name that lies
 * in padding leaves no trace: it is not in the order, and has to stay in some padding.
 */
#ifndef PTMEM_GRAPH_STRUCT_LAYOUT_H
#define PTMEM_GRAPH_STRUCT_LAYOUT_H

#include "graph/type_table.h"

/* Bytes of @type that no member has, those of members' types included. */
uint64_t struct_layout_padding(struct type_table *t, uint32_t type);

/*
 * The size that @type has with its members in the order *@order_out: their names, separated by
 * ", ", which the caller frees. Bases stay first, and a flexible array last. 0: none is smaller, or
 * it cannot be said.
 */
uint64_t struct_layout_best(struct type_table *t, uint32_t type, char **order_out);

/* Whether an object of @type begins with a pointer to a table of virtual functions. */
bool struct_layout_has_table(struct type_table *t, uint32_t type);
/* Whether @type ends with an array of any number of elements. */
bool struct_layout_is_open(struct type_table *t, uint32_t type);

#endif
