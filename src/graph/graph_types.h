/*
 * What types say about a heap graph, as text, so that it needs neither the process nor its debug
 * information: names of words, and tables of containers and of padding.
 */
#ifndef PTMEM_GRAPH_GRAPH_TYPES_H
#define PTMEM_GRAPH_GRAPH_TYPES_H

#include "base/alloc.h"
#include "base/types.h"

/* The name of a word: "orders[*]" of blocks of a type, "by_user[*]" of a variable. */
struct graph_field {
	uint32_t of;            /* a type of blocks; or GRAPH_FIELDS_OWNER + index of an owner */
	uint32_t word;          /* its distance from the start, in words */
	char *name;             /* "": the type has no members. Owned */
};
#define GRAPH_FIELDS_OWNER (UINT32_C(1) << 16)

struct graph_container {
	char *name;             /* of its type; owned */
	uint64_t containers, empty;
	uint64_t used, capacity; /* bytes of elements, where they are in one block */
};

/* A type that has gaps. */
struct graph_padding {
	char *name;             /* owned */
	uint64_t objects;
	bool is_most;           /* there may be fewer */
	uint64_t size, padding; /* of each object */
	uint64_t best;          /* its size in the order below; as size: none is known */
	char *order;            /* "next, count, kind"; owned, NULL = none */
};

struct graph_types {
	VEC(uint32_t) words;    /* by type of blocks: of an array's element; 0 = of no array */
	VEC(struct graph_field) fields; /* ascending */
	VEC(struct graph_container) containers; /* most bytes that are not used first */
	VEC(struct graph_padding) padding; /* most bytes lost first */
};

void graph_types_free(struct graph_types *t); /* may be NULL */

/* What is known of word @word of what @of is; NULL = nothing. */
const struct graph_field *graph_types_find(const struct graph_types *t, uint32_t of,
					   uint32_t word);
/* Its name; NULL = unknown. */
const char *graph_types_field(const struct graph_types *t, uint32_t of, uint32_t word);

#endif
