/*
 * The heap graph: all blocks in use, what holds them, and how much each holds alone.
 *
 *	owner     a variable, the rest of a section, a thread's variables, stack or frame,
 *	          the registers, a mapping; and one for all that nothing leads to
 *	edge      a word of an owner or a block that points into a block, to its start or inside
 *	retained  the bytes of a block and of all blocks that are reached only through it: what
 *	          would be free without it
 *
 * A block's dominator is the last thing that every path to it passes. Blocks without one are
 * shared: several owners lead to them. All that is dominated by an owner is exclusively its. So
 * the owners' bytes and the shared ones add up to the heap.
 *
 * Owners have ranks. What variables lead to is theirs, even if others have pointers to it: what
 * runs through a stack is borrowed most often. So a stack or frame retains what no variable leads
 * to, registers what no stack does either, and a mapping what remains (graph_owner_rank). Python's
 * own variables, which are caches or lists of all there is, come after those of modules.
 *
 * Nodes are numbered: blocks by address from 0 on, then owners. Sizes are what the allocator gave
 * (malloc_usable_size), not what was asked for.
 */
#ifndef PTMEM_GRAPH_HEAP_GRAPH_H
#define PTMEM_GRAPH_HEAP_GRAPH_H

#include <sys/types.h>

#include "base/alloc.h"
#include "base/types.h"
#include "graph/dominators.h"
#include "graph/graph_sites.h"
#include "graph/graph_types.h"
#include "inspect/cold.h"
#include "leak/block_index.h"

enum graph_owner_kind {
	OWNER_VARIABLE,
	OWNER_SECTION,          /* what has no variable's name, by section */
	OWNER_TLS,              /* variables of a thread */
	OWNER_STACK,            /* of a thread; its frames are under it */
	OWNER_FRAME,
	OWNER_REGISTERS,        /* of all threads */
	OWNER_MAPPING,          /* other memory, as it was mapped */
	OWNER_GLOBAL,           /* a variable of a module of Python */
	OWNER_INTERPRETER,      /* a variable or a section of the interpreter that runs these */
	OWNER_LOST,             /* nothing: leaked blocks are under it */
	OWNER_KINDS,
};
extern const char *const graph_owner_kind_name[OWNER_KINDS]; /* "variable" */

#define GRAPH_RANKS 6u /* LOST has the last one */
uint32_t graph_owner_rank(enum graph_owner_kind kind);

struct graph_owner {
	enum graph_owner_kind kind;
	uint32_t under;         /* FRAME: index + 1 of its stack; 0 = none */
	pid_t tid;              /* TLS, STACK, FRAME */
	taddr_t addr;           /* where it begins; FRAME: its code */
	taddr_t word;           /* VARIABLE, SECTION: a word of it */
	/* "cache", ".data", a function, a file, "app: cache"; owned, NULL = none */
	char *name;
	char *object;           /* base name of the program or library; owned, NULL = none */
};

#define GRAPH_BITS 48u /* of addresses and sizes */

struct graph_block {
	/* type: an index in the types; 0 if they are not wanted */
	uint64_t addr : GRAPH_BITS, type : 16;
	uint64_t size : GRAPH_BITS, is_leader : 1; /* is_leader: definitely lost */
};
#define GRAPH_TYPE_MAX 0xffffu
#define GRAPH_BLOCKS_MAX (UINT32_C(1) << 30)

/* Words of a node: their distance from its start in words; GRAPH_FAR and more count as that. */
#define GRAPH_FAR UINT32_MAX

/* An edge: node << 1 | whether it points to the inside of that block. */
#define GRAPH_IS_INTERIOR 1u

struct graph_sharing;

struct heap_graph {
	struct graph_block *block;  /* ascending, disjoint; by huge_alloc: graph_block_bytes */
	uint32_t blocks;
	VEC(struct graph_owner) owners;
	uint32_t *first;            /* by node, and one more: index of its first edge */
	size_t first_room;          /* by huge_alloc, as edge and place: nodes + 2 */
	uint32_t *edge;
	uint32_t *place;            /* by edge: where the pointer is; NULL unless they are kept */
	size_t edge_room;
	struct block_index index;   /* of the blocks, until heap_graph_solve */
	const char *containers;     /* file of descriptions of containers; NULL = none */
	bool keeps_edges;           /* beyond heap_graph_solve, for ways and files */
	bool drops_places;          /* keeps edges only: for what is shared, and for leaks */
	VEC(char *) types;          /* names of types of blocks; owned */
	struct graph_types *typed;  /* what debug information says; owned, NULL = nothing */
	struct graph_sites *sites;  /* what a profile says; owned, NULL = there is none */
	uint64_t bytes;             /* of all blocks */
	uint64_t overlapping;       /* blocks that overlapped others, and were left out */
	/* by heap_graph_solve */
	struct dominators tree;     /* numbers; node, above and layer are valid */
	uint64_t *retained;         /* bytes, by number */
	uint32_t *retained_blocks;  /* likewise */
	struct cold_bytes *untouched; /* of retained bytes, by number; NULL = not known */
	/* of all shared blocks, kept by graph_sharing_find when it is first asked; owned */
	struct graph_sharing *sharing;
	/* bits by block: no owner leads here; a chain of pointers to starts of blocks does */
	uint64_t *is_lost, *is_certain;
};

/* The nodes that are no blocks follow these. */
static inline uint32_t graph_nodes(const struct heap_graph *g)
{
	return g->blocks + (uint32_t)g->owners.count;
}

static inline bool graph_is_block(const struct heap_graph *g, uint32_t node)
{
	return node < g->blocks;
}

/* With one that is never used, so that there is memory if there are no blocks. */
static inline size_t graph_block_bytes(const struct heap_graph *g)
{
	return ((size_t)g->blocks + 1) * sizeof(*g->block);
}

/* Bytes of a node itself: 0 of owners. */
static inline uint64_t graph_size(const struct heap_graph *g, uint32_t node)
{
	return graph_is_block(g, node) ? g->block[node].size : 0;
}

void heap_graph_init(struct heap_graph *g);
void heap_graph_deinit(struct heap_graph *g);

/*
 * Computes the tree of what blocks, owners and edges say. Adds the owner LOST, under which are the
 * blocks that no other lost block leads to; of those in a cycle, the one at the lowest address or
 * near to it.
 */
void heap_graph_solve(struct heap_graph *g);

/* The states of --leak-check (leak/leakcheck.h), in its order. */
struct graph_states {
	struct {
		uint64_t blocks, bytes;
	} state[4];
};
void heap_graph_states(const struct heap_graph *g, struct graph_states *out);

/* After that, once: how much of what is retained was not touched. */
void heap_graph_find_untouched(struct heap_graph *g, const struct touched_pages *p);

/* The block that contains @addr; UINT32_MAX if none does. Takes longer when the index is gone. */
uint32_t heap_graph_find(const struct heap_graph *g, taddr_t addr);

#endif
