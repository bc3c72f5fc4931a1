/*
 * Finds the allocator that Python has for blocks of up to 512 bytes (CPython 3.8 to 3.15, 64 bits):
 *
 *	arena       a mapping: 256 KiB with pools of 4 KiB; from 3.10 on 1 MiB with pools of
 *	            16 KiB, at multiples of that
 *	pool        begins with struct pymalloc_pool; then blocks of one size, a multiple of 16
 *	heads       of 32 lists, one for each size, of pools with blocks in use and free ones. Two
 *	            words: the first and last pool, or 16 bytes before the head if there is none
 *	array       struct pymalloc_arena for each arena, by number; 16 of them, doubled as needed
 *
 * These variables have no symbols in stripped programs, and their places differ between versions.
 * The heads are recognized by the pools that lead back to them; the array, by having the arena of
 * such a pool where the pool says that it is.
 *
 * From 3.12 on an interpreter within a process may have an allocator of its own, whose heads and
 * pointer to the array are in memory of malloc's: a pool that is not full leads to its head, and
 * the array's pointer follows the heads.
 */
#ifndef PTMEM_MALLOC_PYMALLOC_H
#define PTMEM_MALLOC_PYMALLOC_H

#include "base/alloc.h"
#include "malloc/account.h"
#include "malloc/allocators.h"

#define PYMALLOC_CLASSES 32u
#define PYMALLOC_HEADER 48u
#define PYMALLOC_POOLS_MAX 64u  /* in an arena */

/* As it is in memory. */
struct pymalloc_pool {
	uint32_t used, padding; /* blocks in use; 0: the pool is free */
	taddr_t free;           /* the first free block; its first word leads to the next one */
	taddr_t next, previous; /* pools; of free ones only next */
	uint32_t arena;         /* its number */
	uint32_t class;
	uint32_t fresh;         /* offset of the first block that was never used */
	uint32_t fresh_last;    /* the last offset at which one may be */
};
_Static_assert(sizeof(struct pymalloc_pool) == PYMALLOC_HEADER, "as in 3.8");

/* Likewise. */
struct pymalloc_arena {
	taddr_t addr;           /* 0: unused, and next is the next unused one */
	taddr_t fresh;          /* the first pool that was never used */
	uint32_t free_pools, pools; /* free_pools: with those that were never used */
	taddr_t free;           /* the first pool that was used and is free */
	taddr_t next, previous; /* arenas with free pools */
};
_Static_assert(sizeof(struct pymalloc_arena) == 48, "as in 3.8");

struct pymalloc_layout {
	uint32_t pool, arena;   /* sizes */
};

struct pymalloc_array {
	struct pymalloc_layout layout;
	VEC(struct pymalloc_arena) list; /* by number; no address: unused, or contradicts itself */
	uint32_t broken;        /* those that contradict themselves */
};

enum pymalloc_found {
	PYMALLOC_NONE,          /* there is none, or it has not been used */
	PYMALLOC_UNKNOWN,       /* its heads were found, but not the array, or it is another one */
	PYMALLOC_FOUND,
};

/* The block size of a class. */
static inline uint32_t pymalloc_size(uint32_t class)
{
	return (class + 1) * 16;
}

/*
 * The arenas of Python's allocator, pool by pool:
 *
 *	pool in use     | header | block | block | ... | rest |   a slab
 *	free pool       |                                     |   used before, or never
 *
 * A pool says how many of its blocks are in use, and lists the free ones that were in use before. A
 * thread in the middle of an allocation makes the two differ: such a pool counts as broken.
 */

/* The pools of one size of blocks. */
struct pymalloc_class {
	uint64_t pools, live, free; /* blocks */
};

struct pymalloc {
	enum pymalloc_found found;
	struct pymalloc_layout layout;
	struct slabs slabs;                     /* sorted */
	VEC(struct addr_range) arenas;      /* ascending, disjoint */
	struct pymalloc_class classes[PYMALLOC_CLASSES];
	uint64_t free_pools;
	uint32_t interpreters;                  /* with allocators of their own */
	bool has_lost;                          /* others have pools that could not be read */
	bool has_hooks;                         /* for debugging: blocks are in larger ones */
};

/*
 * Python's debugging hooks (PYTHONMALLOC=debug) ask for 24 bytes more:
 *
 *	size, big endian | letter, 7 bytes FD | what was asked for | 8 bytes FD
 */
#define PYTHON_HOOK_WORDS 2u
#define PYTHON_HOOK_END UINT64_C(0xfdfdfdfdfdfdfdfd)

/* Whether the block that begins with @word is one of these. */
static inline bool python_has_hook(const uint64_t word[static PYTHON_HOOK_WORDS])
{
	return (word[1] | 0xff) == (PYTHON_HOOK_END | 0xff);
}

/* What @taken covers is not looked at. pymalloc_deinit frees @out. */
void pymalloc_read(const struct allocator_input *in, const struct spans *taken,
		   struct pymalloc *out);
void pymalloc_deinit(struct pymalloc *p);

#endif
