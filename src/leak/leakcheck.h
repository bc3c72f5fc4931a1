/*
 * Finds live blocks that no pointer leads to any more. The check is conservative, and its four
 * results have the same meaning as in Valgrind's memcheck (its manual, 4.2.8):
 *
 *	still reachable  a chain of pointers to starts of blocks leads here from a root
 *	possibly lost    chains lead here, but each has a pointer to the inside of a block
 *	definitely lost  no chain leads here, and no other lost block points here; of
 *	                 blocks that only point to each other, one: their leader
 *	indirectly lost  only blocks that are lost themselves lead here
 *
 * Roots are registers and all memory that was read outside of live blocks, except free memory of a
 * heap (leakcheck_add_heap) and an allocator's own memory (leakcheck_add_spare). A word belongs to
 * the block in which it begins, and counts if that block is reached. The address just after the end
 * of a block does not point to the block.
 *
 * The leader of a cycle is what the program would call the object: the oldest block, since a
 * container is allocated before its nodes, and a parent mostly before its children. A string, in
 * which there is an old pointer, never leads. Of blocks of one microsecond, the leader is the one
 * whose call path was taken first. The times of blocks from before an attach are not known: of
 * these, it is the one with pointers to the most other kinds of blocks. The kind of a block is
 * where it was allocated, and its rank is that of its kind, so cycles that were built alike have
 * leaders of one kind. An array of pointers has pointers to one.
 * (In memcheck the leader is the block at the lowest address. It also reports blocks of a cycle as
 * definitely lost if the block that leads to the cycle is at a higher address. Here addresses
 * matter only if all else is equal.)
 *
 * Use: init; add blocks; add_memory, scan and add_root while the target is stopped; run; read.
 * Memory is read through a callback, so tests can use synthetic memory.
 */
#ifndef PTMEM_LEAK_LEAKCHECK_H
#define PTMEM_LEAK_LEAKCHECK_H

#include "leak/block_index.h"
#include "leak/pointer_scan.h"

enum leakcheck_state {
	LEAKCHECK_DEFINITE, LEAKCHECK_INDIRECT, LEAKCHECK_POSSIBLE, LEAKCHECK_REACHABLE,
};

/*
 * What holds a block: the first that was found from the roots of the lowest rank that lead to it,
 * see leakcheck_holder. Registers come after all memory.
 */
enum leakcheck_holder {
	LEAKCHECK_HELD_BY_NOTHING, LEAKCHECK_HELD_BY_BLOCK, LEAKCHECK_HELD_BY_MEMORY,
	LEAKCHECK_HELD_BY_REGISTER,
};

#define LEAKCHECK_RANKS 4u

/* A root for which the rank matters. */
struct leakcheck_root {
	uint32_t edge, rank;
	uint64_t holder;
};

struct leakcheck {
	VEC(struct leakcheck_block) blocks; /* ascending after leakcheck_run */
	uint8_t *state;                     /* enum leakcheck_state by block */
	/* by block: of lost ones the definitely lost one that leads to it, which is its own */
	uint32_t *leader;
	uint64_t *holder;                   /* by block: leakcheck_holder; NULL unless wanted */
	bool wants_holders;
	/* the rank of a root in memory, < LEAKCHECK_RANKS; NULL: all have one */
	uint32_t (*rank)(void *ctx, taddr_t addr);
	void *rank_ctx;
	/* the kind of blocks with a leaf; NULL: the leaf itself */
	uint32_t (*kind)(void *ctx, uint32_t leaf);
	bool (*is_text)(void *ctx, uint32_t kind); /* whether such blocks are texts; NULL: none */
	void *kind_ctx;
	struct pointer_scan scan;
	VEC(uint64_t) roots;                /* words in registers */
	VEC(struct addr_range) others;       /* blocks in use that are not checked */
	VEC(struct leakcheck_block) outer;  /* after leakcheck_run: those that contain others */
	VEC(struct addr_range) spare;        /* ascending: words in there are not roots */
	bool knows_all;                     /* all blocks in use were added or lie in others */
	/* private to leakcheck_run */
	struct block_index index;
	uint32_t *edge;                     /* edges of one block are contiguous */
	size_t *first_edge;                 /* by block, and one more element at the end */
	VEC(uint32_t) stack;
	VEC(struct leakcheck_root) ranked;
	VEC(struct addr_range) unused;       /* ascending: words in there are not roots */
};

/* Must not be moved: parts of it point to others. */
void leakcheck_init(struct leakcheck *c);
void leakcheck_deinit(struct leakcheck *c);

/* @blocks: an estimate of how many will be added. */
void leakcheck_expect(struct leakcheck *c, uint64_t blocks);

/*
 * Adds a block, in any order. A block that contains others (memory of an allocator that announces
 * the blocks that it makes of it) is moved to outer by leakcheck_run: its memory then counts as a
 * root.
 */
void leakcheck_add_block(struct leakcheck *c, const struct leakcheck_block *block);

/* @block will be added after the scan. */
void leakcheck_note_block(struct leakcheck *c, const struct leakcheck_block *block);

/* Adds memory in use that is not checked: its contents count as roots. */
void leakcheck_add_other(struct leakcheck *c, taddr_t start, taddr_t end);

/* Adds memory that is not the program's, in ascending order: no word in it is a root. */
void leakcheck_add_spare(struct leakcheck *c, taddr_t start, taddr_t end);

void leakcheck_add_root(struct leakcheck *c, uint64_t word);

/* Adds memory to be scanned, in ascending order. */
void leakcheck_add_memory(struct leakcheck *c, taddr_t start, taddr_t end);

/*
 * Adds a heap of glibc (heap_walk_init) within the memory, in ascending order, after
 * leakcheck_prepare. Free memory in it is not a root. With knows_all, neither is memory outside of
 * all blocks: a thread's cache is free memory that is marked as in use.
 */
void leakcheck_add_heap(struct leakcheck *c, taddr_t start, taddr_t end, taddr_t top);

/*
 * Allocates what the following functions need, before the target is stopped. Blocks and memory, as
 * they are now, must have been added; they are dropped afterwards.
 */
void leakcheck_prepare(struct leakcheck *c, memory_read_fn *read, void *ctx);

/*
 * Reads the memory once, after all blocks were added or noted. Several threads call @read
 * concurrently.
 */
void leakcheck_scan(struct leakcheck *c, memory_read_fn *read, void *ctx);

/* Classifies all blocks; the target may run. Frees the scanned words. */
void leakcheck_run(struct leakcheck *c);

/*
 * After leakcheck_run with wants_holders: what holds @block. *value_out: the number of the block
 * that does; or the address of the word.
 */
enum leakcheck_holder leakcheck_holder(const struct leakcheck *c, uint32_t block,
				       uint64_t *value_out);

#endif
