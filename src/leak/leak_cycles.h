/*
 * Lost blocks that point to each other: which of them leads the others; leakcheck.h says by what
 * rule.
 */
#ifndef PTMEM_LEAK_LEAK_CYCLES_H
#define PTMEM_LEAK_LEAK_CYCLES_H

#include "leak/block_index.h"

/* The blocks and their pointers, as in struct leakcheck. */
struct leak_graph {
	const struct leakcheck_block *blocks;
	uint32_t count;
	const uint32_t *edge;        /* block << 1 | bit */
	const size_t *first_edge;    /* by block, and one more */
	const uint8_t *state;
	/*
	 * States: of lost blocks; of the one of each group that leads to all others of it. All
	 * blocks that lead to a leader are in one cycle with it.
	 */
	uint8_t lost, leader;
	uint32_t (*kind)(void *ctx, uint32_t leaf); /* NULL: the leaf itself */
	/* whether blocks of a kind are texts, which never lead; NULL: none are */
	bool (*is_text)(void *ctx, uint32_t kind);
	void *kind_ctx;
};

/* Sets leader[i] of each block i in state g->leader to the best of its cycle, often itself. */
void leak_cycles_lead(const struct leak_graph *g, uint32_t *leader);

#endif
