/*
 * The tree for reports: the stacks of all leaves of a profile, each reduced to the frames that the
 * filter shows, merged from the innermost frame on.
 *
 *	call tree   main > f > g > malloc's caller     (outermost first, all frames)
 *	this tree   root > malloc's caller > g > f     (innermost first, shown frames)
 *
 * Nodes are merged by frame (address and module) at each level. The children of a node are found
 * when they are asked for: reports show few of the paths of a large profile.
 *
 * A snapshot does not contain sites first seen later: a node exists in it if its first leaf does.
 */
#ifndef PTMEM_OUTPUT_REPORT_TREE_H
#define PTMEM_OUTPUT_REPORT_TREE_H

#include "output/writer.h"

struct report_node {
	uint32_t frame;      /* of the profile's call tree; 0 at the root */
	uint32_t parent;     /* smaller than the node's own number */
	uint32_t first_leaf; /* the lowest number of the leaves at or below it; 0 = none */
};

struct report_tree;

/* Calls the filter once for each leaf of @r->profile. Never NULL. */
struct report_tree *report_tree_new(const struct report *r);
/* The same for other stacks: @leaf_node[1 .. @count] are nodes of @r->profile's call tree. */
struct report_tree *report_tree_new_of(const struct report *r, const uint32_t *leaf_node,
				       uint32_t count);
void report_tree_free(struct report_tree *t);

/* Node 0 is the root. Valid until the next call for @t. */
const struct report_node *report_tree_node(const struct report_tree *t, uint32_t node);

/*
 * The number of children of @node. Their numbers follow each other from *@first_out on, in the
 * order of their first leaves.
 */
uint32_t report_tree_children(struct report_tree *t, uint32_t node, uint32_t *first_out);

/* The node with the bytes of @leaf; REPORT_NODE_IGNORED: none. */
#define REPORT_NODE_IGNORED UINT32_MAX
uint32_t report_tree_leaf_node(struct report_tree *t, uint32_t leaf);

/* Bytes of leaves at some time, when there were leaves 1 .. @count. */
struct report_leaves {
	const uint64_t *bytes; /* by leaf */
	uint32_t count;
};

/* The sum for @node and all nodes below it. Leaves ignored by the filter add nothing. */
uint64_t report_tree_bytes(const struct report_tree *t, uint32_t node,
			   const struct report_leaves *leaves);

#endif
