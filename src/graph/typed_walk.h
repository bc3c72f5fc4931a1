/*
 * The types of blocks by how they are reached: from variables of known types, through pointers and
 * containers (containers.h), to blocks.
 *
 *	struct session *sessions[8];    variable, each word a pointer to struct session
 *	  -> block of 104 bytes         struct session, if that has 104 bytes or some less
 *	       orders.begin             -> block: order[], begin to end
 *
 * What a pointer says must fit the block: its size, the words where pointers should be, the table
 * of virtual functions. What contradicts stays without a type. Where two pointers disagree, the
 * better fit wins: a container's, the whole block, an array, only its beginning.
 *
 * Memory is read from a copy, or a stopped process, and may hold anything.
 */
#ifndef PTMEM_GRAPH_TYPED_WALK_H
#define PTMEM_GRAPH_TYPED_WALK_H

#include "base/hash.h"
#include "graph/containers.h"
#include "graph/type_table.h"
#include "malloc/memory.h"

#define TYPED_NO_BLOCK UINT32_MAX

struct typed_extent {
	taddr_t start;
	uint64_t size;          /* usable */
};

/* What the walk is given. */
struct typed_heap {
	struct type_table *types;
	struct containers *containers; /* NULL = none are known */
	struct debug_units *near;      /* of the program: names are looked up there first */
	struct inspect_memory *memory;
	uint32_t blocks;
	/* number of the block that contains @addr, below blocks, or TYPED_NO_BLOCK */
	uint32_t (*find)(void *ctx, taddr_t addr);
	void (*extent)(void *ctx, uint32_t block, struct typed_extent *out);
	/* start reading what find and extent will need; NULL = do nothing */
	void (*find_soon)(void *ctx, taddr_t addr);
	void (*extent_soon)(void *ctx, uint32_t block);
	void *ctx;
};

/* How well a block's type fits, ascending. */
enum typed_fit {
	FIT_NONE,
	FIT_START,      /* it is larger than the type */
	FIT_NUMBERS,    /* an array of numbers or characters */
	FIT_ARRAY,
	FIT_WHOLE,
	FIT_CONTAINER,  /* elements or a node of a container, or by the table of its class */
};

/* What containers hold, by the type of the container. */
struct container_sum {
	uint32_t type;
	uint64_t containers, empty;
	uint64_t used, capacity; /* bytes of elements, of arrays and strings */
};

/* Bytes of a block that a string or an array of bytes uses. */
struct typed_string {
	uint32_t block;
	uint64_t bytes;
};

/* A block that was given a type; @bytes of it are in use. */
struct typed_step {
	uint32_t block;
	uint64_t bytes;
};

struct typed_walk {
	const struct typed_heap *heap;
	uint32_t *type;         /* by block; TYPE_NONE = unknown */
	uint8_t *fit;           /* by block: enum typed_fit */
	VEC(struct container_sum) sums;
	VEC(struct typed_string) strings; /* ascending, each block once, when it has walked */
	/* while it walks */
	VEC(struct typed_step) queue;
	size_t next;
	VEC(struct typed_places) places;
	HASH(uint32_t) by_places; /* blocks that had some */
	HASH(struct known_table) tables;
	HASH(uint32_t) by_type; /* numbers of sums */
	VEC(uint8_t) leads;     /* by type: whether it has pointers; 0 = not known yet */
	uint64_t budget;        /* members of this block that may still be looked at */
	bool is_checking, is_contradicted; /* only looks whether pointers are plausible */
};

/* @heap must outlive @w. */
void typed_walk_init(struct typed_walk *w, const struct typed_heap *heap);
void typed_walk_deinit(struct typed_walk *w);

/* What [@addr, @addr + size of @type) has leads to blocks. */
void typed_walk_add_root(struct typed_walk *w, taddr_t addr, uint32_t type);

/* Follows everything. */
void typed_walk_run(struct typed_walk *w);

/*
 * What is at @offset of @type: "orders[*]"; all that is in a container is one. Malloc'ed; NULL: it
 * is behind a struct, the head of its block.
 */
char *typed_walk_path(const struct typed_walk *w, uint32_t type, uint64_t offset);

#endif
