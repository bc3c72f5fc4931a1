/*
 * The stacks of a profile, reduced to the frames that the filter shows: one by one, merged from
 * the innermost frame on (for massif and leaks), or as call paths from the outermost on (for
 * folded stacks and flame graphs).
 */
#ifndef PTMEM_OUTPUT_REPORT_TREE_H
#define PTMEM_OUTPUT_REPORT_TREE_H

#include "base/alloc.h"
#include "output/path_tree.h"
#include "output/report.h"

/*
 * The part of one stack that a report shows: the frames of a node of the profile's call tree that
 * the filter leaves. The marker of an incomplete stack is shown beyond the depth, too.
 */

/* Reused for each stack; initially {.report = r}. */
struct shown_stack {
	const struct report *report;
	VEC(uint32_t) frame; /* the complete stack in the call tree, innermost first */
	size_t first, count; /* shown are frame[first] to frame[first + count - 1] */
};

/* Gets the stack that ends at @node. False: its blocks are ignored. */
bool shown_stack_fill(struct shown_stack *s, uint32_t node);
/* All names of frame[@i]. */
const struct symbol *shown_stack_symbol(const struct shown_stack *s, size_t i);
void shown_stack_deinit(struct shown_stack *s);

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

/*
 * A profile's leaves as call paths with one quantity, for folded stacks and flame graphs of a run.
 * Outermost caller first; frames of allocation functions and below main are left out as in massif
 * reports, and inlined functions have their own frames.
 */

enum profile_quantity {
	PATHS_LIVE,   /* bytes still live */
	PATHS_PEAK,   /* bytes at the peak's snapshot */
	PATHS_TOTAL,  /* bytes ever allocated */
	PATHS_COUNT,  /* allocations ever made */
};

/*
 * A frame's name in these paths: "[file:line]", "[object]" or "[unknown]" if it has none. The
 * caller frees it.
 */
char *shown_frame_name(const struct symbol *symbol, const struct symbol_frame *frame);

/*
 * Adds every leaf of @r to @t (PATH_NEW), with names as of shown_frame_name. -ENOENT when there is
 * no peak. Does not update the totals of @t.
 */
int profile_paths_add(struct path_tree *t, const struct report *r, enum profile_quantity quantity);
/* The same for what @value says of leaf @leaf; 0 is left out. */
void profile_paths_add_values(struct path_tree *t, const struct report *r,
			      uint64_t (*value)(const void *ctx, uint32_t leaf), const void *ctx);

#endif
