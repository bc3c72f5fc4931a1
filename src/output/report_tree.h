/*
 * The tree for reports: the stacks of all leaves of a profile, each reduced to the frames that the
 * filter shows, merged from the innermost frame on.
 *
 *	call tree   main > f > g > malloc's caller     (outermost first, all frames)
 *	this tree   root > malloc's caller > g > f     (innermost first, shown frames)
 *
 * Nodes are merged by frame (address and module) at each level, and numbered in
 * the order of the first leaf that passes through them. So the nodes that existed when a profile
 * had n leaves are a prefix of the numbers, as snapshots need it: they do not contain sites first
 * seen later.
 */
#ifndef PTMEM_OUTPUT_REPORT_TREE_H
#define PTMEM_OUTPUT_REPORT_TREE_H

#include "output/writer.h"

struct report_node {
	uint32_t frame;        /* of the profile's call tree; 0 at the root */
	uint32_t parent;       /* smaller than the node's own number */
	uint32_t first_child;  /* 0 = none; the newest child comes first */
	uint32_t next_sibling; /* 0 = none; smaller than the node's own number */
};

struct report_tree;

/* Calls the filter once for each leaf of @r->profile. Never NULL. */
struct report_tree *report_tree_new(const struct report *r);
/* The same for other stacks: @leaf_node[1 .. @count] are nodes of @r->profile's call tree. */
struct report_tree *report_tree_new_of(const struct report *r, const uint32_t *leaf_node,
				       uint32_t count);
void report_tree_free(struct report_tree *t);

/* Node 0 is the root. */
const struct report_node *report_tree_node(const struct report_tree *t, uint32_t node);

/* The node with the bytes of @leaf; REPORT_NODE_IGNORED: none. */
#define REPORT_NODE_IGNORED UINT32_MAX
uint32_t report_tree_leaf_node(const struct report_tree *t, uint32_t leaf);

/*
 * Adds up @leaf_bytes (indexed by leaf, 1 .. @leaf_count): *node_bytes_out[i] is the sum for node i
 * and all nodes below it. The caller frees it. Returns the number of nodes that existed when there
 * were @leaf_count leaves; the others are absent. Leaves ignored by the filter add nothing.
 */
uint32_t report_tree_sum(const struct report_tree *t, const uint64_t *leaf_bytes,
			 uint32_t leaf_count, uint64_t **node_bytes_out);

#endif
