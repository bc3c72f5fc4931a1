/*
 * Finds a child in a tree of numbered nodes by the parent and a key that is unique among its
 * children (a frame, a name). The tree stores both in its nodes; the table contains only numbers,
 * hashed, and is at most half full. Node 0 is the root and not in the table.
 */
#ifndef PTMEM_OUTPUT_CHILD_TABLE_H
#define PTMEM_OUTPUT_CHILD_TABLE_H

#include <stdlib.h>

#include "base/alloc.h"
#include "base/types.h"

struct child_key {
	uint64_t key;      /* chosen by the tree */
	uint32_t parent;
};

/* The key of node @node of @tree. */
typedef struct child_key child_key_fn(const void *tree, uint32_t node);

struct child_table {   /* all zeros: empty */
	uint32_t *slot;    /* owned; 0 = free */
	uint32_t bits;     /* its size is 2^bits */
};

static inline uint32_t *child_table_find(const struct child_table *t, child_key_fn *key_of,
					 const void *tree, struct child_key key)
{
	uint32_t mask = (1u << t->bits) - 1;
	uint32_t i = (uint32_t)hash_u64(hash_u64(key.key) + key.parent) & mask;
	for (; t->slot[i]; i = (i + 1) & mask) {
		struct child_key at = key_of(tree, t->slot[i]);
		if (at.parent == key.parent && at.key == key.key)
			break;
	}
	return &t->slot[i];
}

/*
 * The slot with the number of the child with that @key, or 0 and then to be filled in. Valid until
 * the next call. @node_count: nodes of @tree so far, including the root.
 */
static inline uint32_t *child_table_get(struct child_table *t, child_key_fn *key_of,
					const void *tree, size_t node_count, struct child_key key)
{
	if (!t->slot || node_count >= 1u << (t->bits - 1)) {
		t->bits = t->slot ? t->bits + 1 : 10;
		free(t->slot);
		t->slot = xcalloc((size_t)1 << t->bits, sizeof(*t->slot));
		for (uint32_t i = 1; i < node_count; i++)
			*child_table_find(t, key_of, tree, key_of(tree, i)) = i;
	}
	return child_table_find(t, key_of, tree, key);
}

static inline void child_table_deinit(struct child_table *t)
{
	free(t->slot);
}

#endif
