/*
 * Which live blocks does no pointer lead to any more? A conservative look, with the
 * meaning that Valgrind's memcheck gives the four answers (its manual, 4.2.8):
 *
 *	still reachable  a chain of pointers to starts of blocks leads here from a root
 *	possibly lost    chains lead here, but each has a pointer into a block's inside
 *	definitely lost  no chain leads here, and no other lost block points here; of
 *	                 blocks that only point to each other, the one lowest in memory
 *	indirectly lost  only blocks that are lost themselves lead here
 *
 * Roots are registers and all memory that was read outside of live blocks, but for free memory
 * of a heap (leakcheck_add_heap); a word inside of a block counts when the block does. A word
 * that begins in a block is inside of it. An address just after a block's end does not point
 * to it. (memcheck itself also calls definitely lost what is in a cycle, when the block that leads
 * to the cycle happens to lie higher in memory; here addresses decide only within a cycle.)
 *
 * Use: init; add blocks; add_memory, scan and add_root while the target is stopped; run; read.
 * Pure: memory comes from a callback, so tests can make any.
 */
#ifndef PTMEM_LEAK_LEAKCHECK_H
#define PTMEM_LEAK_LEAKCHECK_H

#include "leak/block_index.h"
#include "leak/pointer_scan.h"

enum leakcheck_state {
	LEAKCHECK_DEFINITE, LEAKCHECK_INDIRECT, LEAKCHECK_POSSIBLE, LEAKCHECK_REACHABLE,
};

struct leakcheck {
	VEC(struct leakcheck_block) blocks; /* ascending after leakcheck_run */
	uint8_t *state;                     /* enum leakcheck_state by block */
	struct pointer_scan scan;
	VEC(uint64_t) roots;                /* words of registers */
	VEC(struct heap_part) others;       /* blocks in use that are not judged */
	bool knows_all;                     /* all blocks in use were added, or are in others */
	/* leakcheck_run's own */
	struct block_index index;
	uint32_t *edge;                     /* those of one block stand together */
	size_t *first_edge;                 /* by block, one more at the end */
	VEC(uint32_t) stack;
	VEC(struct heap_part) unused;       /* ascending: no word in there is a root */
};

/* It stays where it is: parts of it point to others. */
void leakcheck_init(struct leakcheck *c);
void leakcheck_deinit(struct leakcheck *c);

/* About @blocks will be added. */
void leakcheck_expect(struct leakcheck *c, uint64_t blocks);

/*
 * Blocks in any order. One that holds others (an allocator's own, which the program divides and
 * reports) is dropped by leakcheck_run: its memory counts as a root then.
 */
void leakcheck_add_block(struct leakcheck *c, const struct leakcheck_block *block);

/* @block will be added after the scan. */
void leakcheck_note_block(struct leakcheck *c, const struct leakcheck_block *block);

/* Memory in use that is not judged: what is in it counts as a root. */
void leakcheck_add_other(struct leakcheck *c, taddr_t start, taddr_t end);

void leakcheck_add_root(struct leakcheck *c, uint64_t word);

/* Memory to be scanned, in ascending order. */
void leakcheck_add_memory(struct leakcheck *c, taddr_t start, taddr_t end);

/*
 * A heap of glibc's in the memory (heap_walk_init), in ascending order, after leakcheck_prepare.
 * What is free in it is no root. Nor is what lies in no block, with knows_all: so the free
 * memory that glibc keeps for a thread, which looks as if it were in use.
 */
void leakcheck_add_heap(struct leakcheck *c, taddr_t start, taddr_t end, taddr_t top);

/*
 * Takes what memory the following will need, before the target is stopped. Blocks and memory,
 * as they are now, must have been added: they are forgotten.
 */
void leakcheck_prepare(struct leakcheck *c, pointer_read_fn *read, void *ctx);

/*
 * Reads the memory, once, after all blocks were added or noted. @read is called by several
 * threads at once.
 */
void leakcheck_scan(struct leakcheck *c, pointer_read_fn *read, void *ctx);

/* Decides about all blocks; the target may continue. The scanned words are gone afterwards. */
void leakcheck_run(struct leakcheck *c);

#endif
