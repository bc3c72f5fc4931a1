/*
 * The tree from pages to descriptions that jemalloc and tcmalloc have (64 bits, 48 of an address in
 * use):
 *
 *	root        pointers to leaves, in the library's data
 *	leaf        2^18 words, one for each page
 *
 * Its root has no symbol: a word of the data is taken for a pointer to a leaf. A description there
 * says which pages it is for, and so which of the root's words that one is.
 */
#ifndef PTMEM_MALLOC_RADIX_TREE_H
#define PTMEM_MALLOC_RADIX_TREE_H

#include "malloc/memory.h"

#define RADIX_LEAF_WORDS (UINT64_C(1) << 18)
#define RADIX_LEAF_SIZE (RADIX_LEAF_WORDS * sizeof(uint64_t))

/* A page of a leaf: PAGE_WORDS words. False: no further one of this leaf is wanted. */
typedef bool radix_words_fn(void *ctx, const uint64_t *word, uint64_t first, uint64_t *number_out);

struct radix_tree {
	struct inspect_memory *memory;
	uint64_t root_words;
	uint64_t align;         /* of leaves */
	/*
	 * @first: index of the words in a leaf. Stores the number of the page for which the leaf's
	 * first description is; leaves it 0 if it is none.
	 */
	radix_words_fn *probe;
	radix_words_fn *add;    /* @first: the number of the words' first page; nothing to store */
	void (*add_leaf)(void *ctx, taddr_t leaf);
	void *ctx;
	uint64_t pages_left;    /* that may still be read */
};

/* The root in @data; 0 = none. */
taddr_t radix_tree_find(struct radix_tree *t, const struct addr_range *data);

/* Passes all leaves below @root and their words. False: there is more than can be true. */
bool radix_tree_visit(struct radix_tree *t, taddr_t root);

#endif
