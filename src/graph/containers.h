/*
 * Containers of libraries: where a type that a description names keeps its elements. Hides: the
 * descriptions, which are a text that users can extend (doc/graph-containers.md).
 *
 *	PATTERN KIND KEY=VALUE...
 *	std::vector<* array begin=_M_impl._M_start end=_M_impl._M_finish
 */
#ifndef PTMEM_GRAPH_CONTAINERS_H
#define PTMEM_GRAPH_CONTAINERS_H

#include "graph/type_table.h"

enum container_kind {
	CONTAINER_NONE,
	CONTAINER_ARRAY,  /* elements from begin to end, or as many as size */
	CONTAINER_NODES,  /* one value in each node; nodes lead to others */
	CONTAINER_SWISS,  /* hashbrown: elements before a byte for each that says if it is there */
	CONTAINER_STRING, /* an array that is shown as one value */
	CONTAINER_OPTIONAL, /* one value at begin, if size is not 0 */
	CONTAINER_VARIANT, /* one value at begin: of the template argument that has number size */
	CONTAINER_WRAPPER, /* only has a container: its members are not shown */
	CONTAINER_POINTER, /* only has a pointer: likewise */
	CONTAINER_REFERENCE, /* a pointer, perhaps with flags, of another type than it says */
};

#define CONTAINER_PLACES 4u

/* How one type is a container. */
struct container {
	enum container_kind kind;
	uint32_t element;       /* type of an element; TYPE_NONE = unknown, as of void pointers */
	/* SWISS: begin leads to the control bytes, end is the mask; or slots to the elements */
	struct member_place begin, end, size, capacity, slots;
	/* bit 0: elements are in a block, else the other bits of its byte are their number */
	struct member_place in_block, in_object; /* and in_object is where they are */
	uint32_t before;        /* ARRAY: bytes of the block that are before begin */
	struct member_place root[CONTAINER_PLACES], also; /* NODES: the first nodes; a table */
	struct member_place table; /* NODES: leads to a block of pointers to nodes */
	uint32_t roots, node;   /* type of a node; of a block with a header and elements */
	/*
	 * A pointer to a header; its members' places are behind those of the container itself.
	 * Elements are in the same block, from @head on, unless begin is a pointer.
	 */
	struct member_place header;
	uint32_t header_type;   /* TYPE_NONE = there is none */
	uint32_t head;
	struct member_place first; /* number of the first element that is used */
};

struct containers;

/* The built-in descriptions. */
struct containers *containers_new(void);
void containers_free(struct containers *c);

/*
 * Adds the descriptions in @text, before those that are known: the first that matches counts.
 * Returns 0, or the number of the first line that is none; then *why_out is a message about it,
 * which the caller frees.
 */
uint32_t containers_add(struct containers *c, const char *text, char **why_out);

/*
 * Likewise those in the file at @path, of at most CONTAINERS_FILE_MAX bytes. False: it cannot be
 * read, or is none; the message names the line.
 */
#define CONTAINERS_FILE_MAX (1u << 20)
bool containers_add_file(struct containers *c, const char *path, char **why_out);
/* Whether that would work. */
bool containers_check_file(const char *path, char **why_out);

/*
 * What a path has instead of what is in @type: "[*]" of a container, "" of a string; NULL: it has
 * members as others have.
 */
const char *containers_whole(struct containers *c, struct type_table *t, uint32_t type);

/* How @type is a container; NULL: it is none, or lacks a member that its description needs. */
const struct container *containers_find(struct containers *c, struct type_table *t, uint32_t type);

#endif
