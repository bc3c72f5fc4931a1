/* Call paths with values from any source, and their text form: folded stacks. */
#ifndef PTMEM_OUTPUT_PATH_TREE_H
#define PTMEM_OUTPUT_PATH_TREE_H

#include <stdio.h>

#include "base/types.h"
#include "symbols/code_owner.h"

enum frame_kind {
	FRAME_PROGRAM,         /* the executable, and frames of unknown objects */
	FRAME_LIBC,            /* libc and the loader */
	FRAME_STANDARD,        /* the standard libraries of C++ and Rust, also inlined */
	FRAME_LIBRARY,         /* any other shared object, and headers of packages */
	FRAME_NONE,            /* not a function: "[below threshold]" */
	FRAME_KINDS,
};

enum frame_kind frame_kind(const struct frame_text *frame);

/*
 * Call paths with values from any source, the input of folded stacks and flame graphs.
 *
 *	root --> main --> parse --> new_node      parents call children
 *
 * Children are merged by name. A path's own value excludes its children: total = own + children's
 * totals. Each node has two of both, for the old and the new side; a tree that is not a comparison
 * uses only the second.
 */

enum path_side { PATH_OLD, PATH_NEW };

struct path_node {
	/* valid UTF-8 without control characters; owned by the tree. "all" at the root */
	const char *name;
	uint32_t parent;       /* smaller than the node's own number; 0 at the root too */
	uint32_t first_child;  /* 0 = none; the newest child comes first */
	uint32_t next_sibling; /* 0 = none */
	uint32_t depth;        /* 0 at the root */
	enum frame_kind kind;  /* FRAME_PROGRAM unless set by path_tree_set_kind */
	uint64_t own[2];       /* by enum path_side */
	uint64_t total[2];     /* as of the last path_tree_sum */
	uint64_t blocks[2];    /* of its own, where they are counted */
	/* of own and of total, in square bytes; 0 unless values are estimates from samples */
	double own_variance[2], variance[2];
};

struct path_tree;

struct path_tree *path_tree_new(void); /* Never NULL. */
void path_tree_free(struct path_tree *t);

/*
 * The child of @parent (0 = the root) with that name, added if there is none. @name: @size
 * arbitrary bytes.
 */
uint32_t path_tree_child(struct path_tree *t, uint32_t parent, const char *name, size_t size);

/* Sets the kind of the frame. */
void path_tree_set_kind(struct path_tree *t, uint32_t node, enum frame_kind kind);

/*
 * A copy of @t with totals, in which consecutive nameless frames ("[libx.so]") of one object are
 * merged into one. Never NULL.
 */
struct path_tree *path_tree_fold_unnamed(const struct path_tree *t);

/* Adds @value to the own value of @node. */
void path_tree_add(struct path_tree *t, uint32_t node, enum path_side side, uint64_t value);

void path_tree_add_blocks(struct path_tree *t, uint32_t node, enum path_side side, uint64_t count);

void path_tree_add_variance(struct path_tree *t, uint32_t node, enum path_side side,
			    double variance);

/* Adds what belongs to @from, which may be of another tree, to what belongs to @node. */
void path_tree_add_own(struct path_tree *t, uint32_t node, const struct path_node *from);

/* Brings the totals, and their variances, up to date. */
void path_tree_sum(struct path_tree *t);

/* Pointers to nodes are valid until the next path_tree_child. Node 0 is the root. */
const struct path_node *path_tree_node(const struct path_tree *t, uint32_t node);
uint32_t path_tree_node_count(const struct path_tree *t);

/*
 * The children of @node in the order of their names, in *@out. *@capacity is its size; both are
 * reused from call to call (initially NULL and 0; the caller frees it). Returns their number.
 */
uint32_t path_tree_children(const struct path_tree *t, uint32_t node, uint32_t **out,
			    size_t *capacity);

/*
 * Merges call paths whose values are estimates from too few samples, which is noise.
 *
 *	main 90M --> parse 60M --> a 1.0M           main 90M --> parse 60M --> [below resolution] 2M
 *	                       \-> b 0.5M      ->            \-> lex 30M
 *	         \-> lex 30M   \-> c 0.5M
 */

/*
 * A copy of @t, whose totals are up to date, in which children below resolution
 * (profile/estimate.h) on both sides are one child of their parent, without children of its own.
 * Totals are up to date. Never NULL.
 */
struct path_tree *path_tree_merge_unresolved(const struct path_tree *t);

/*
 * Folded stacks, one path per line, the input of flame graph tools.
 *
 *	FILE := { NAME { ";" NAME } " " VALUE [ " " VALUE ] "\n" }
 *
 * Outermost caller first. A ';' in a name becomes ':'. A path without own values has no line; the
 * values add up to the tree's total. Of two values the first is the old one. Lines are sorted by
 * name at each level.
 */

/* The caller checks the stream for errors. The root's own value is named "[unknown]". */
void path_tree_write_folded(FILE *out, const struct path_tree *t, bool is_diff);

#endif
