/*
 * The merged tree of a report: see report_tree.h for the picture.
 *
 * Each node has its leaves: a part of one array of them, in ascending order until the node's
 * children are found, which then share it:
 *
 *	a node's part   [ leaves that end here | first child's | second child's | ... ]
 *
 * Owns its arrays; independent of names and formats.
 */
#include "output/report_tree.h"

#include <string.h>

#include "base/alloc.h"
#include "base/vec.h"
#include "output/shown_stack.h"

struct tree_node {
	struct report_node shown;
	uint32_t depth;            /* frames from the root */
	uint32_t start, count;     /* its part of the array of leaves */
	uint32_t first_child, child_count;
	bool is_split;             /* its children are known */
};

/* A leaf and its shown frames: frame[first .. first + count - 1], innermost first. */
struct leaf_path {
	size_t first;
	uint32_t count;
	uint32_t node; /* the node farthest from the root that has it; REPORT_NODE_IGNORED = none */
};

struct report_tree {
	VEC(struct tree_node) node;
	VEC(uint32_t) frame;    /* of all leaves */
	struct leaf_path *path; /* by leaf; [0] unused */
	uint32_t leaf_count;
	VEC(uint32_t) leaf;     /* those that are not ignored, in the order of nodes */
	uint32_t *scratch;      /* as large as that */
	uint32_t *child;        /* by frame, while a node is split: its child; 0 = none so far */
};

/* -- making -- */

/* Raises *@highest to the highest number of its frames. */
static void add_path(struct report_tree *t, struct shown_stack *s, uint32_t leaf, uint32_t node,
		     uint32_t *highest)
{
	struct leaf_path *p = &t->path[leaf];

	if (!shown_stack_fill(s, node)) {
		p->node = REPORT_NODE_IGNORED;
		return;
	}
	p->first = t->frame.count;
	p->count = (uint32_t)s->count;
	vec_reserve(&t->frame, t->frame.count + s->count);
	for (size_t i = 0; i < s->count; i++) {
		uint32_t frame = s->frame.data[s->first + i];

		t->frame.data[t->frame.count++] = frame;
		*highest = MAX(*highest, frame);
	}
	*vec_add(&t->leaf) = leaf;
}

struct report_tree *report_tree_new_of(const struct report *r, const uint32_t *leaf_node,
				       uint32_t count)
{
	struct report_tree *t = xcalloc(1, sizeof(*t));
	struct shown_stack stack = {.report = r};
	uint32_t highest = 0;

	t->leaf_count = count;
	t->path = xcalloc((size_t)count + 1, sizeof(*t->path));
	for (uint32_t i = 1; i <= count; i++)
		add_path(t, &stack, i, leaf_node[i], &highest);
	shown_stack_deinit(&stack);
	*vec_add(&t->node) = (struct tree_node){
		.shown.first_leaf = t->leaf.count ? t->leaf.data[0] : 0,
		.count = (uint32_t)t->leaf.count,
	};
	t->scratch = xcalloc(t->leaf.count, sizeof(*t->scratch));
	t->child = xcalloc((size_t)highest + 1, sizeof(*t->child));
	return t;
}

struct report_tree *report_tree_new(const struct report *r)
{
	uint32_t count = profile_leaf_count(r->profile);
	uint32_t *node = xcalloc((size_t)count + 1, sizeof(*node));

	for (uint32_t i = 1; i <= count; i++)
		node[i] = profile_leaf(r->profile, i)->node;
	struct report_tree *t = report_tree_new_of(r, node, count);

	free(node);
	return t;
}

void report_tree_free(struct report_tree *t)
{
	if (!t)
		return;
	vec_deinit(&t->node);
	vec_deinit(&t->frame);
	vec_deinit(&t->leaf);
	free(t->path);
	free(t->scratch);
	free(t->child);
	free(t);
}

/* -- splitting -- */

/* The child of @node that has @leaf next. */
static uint32_t get_child(struct report_tree *t, uint32_t node, uint32_t leaf)
{
	uint32_t depth = t->node.data[node].depth;
	uint32_t frame = t->frame.data[t->path[leaf].first + depth], *child = &t->child[frame];

	if (!*child) {
		*child = (uint32_t)t->node.count;
		*vec_add(&t->node) = (struct tree_node){
			.shown = {.frame = frame, .parent = node, .first_leaf = leaf},
			.depth = depth + 1,
		};
	}
	return *child;
}

/* Numbers the children of @node, and counts the leaves of each. */
static void find_children(struct report_tree *t, uint32_t node)
{
	const struct tree_node n = t->node.data[node];
	uint32_t first = (uint32_t)t->node.count;

	for (uint32_t i = n.start; i < n.start + n.count; i++) {
		struct leaf_path *p = &t->path[t->leaf.data[i]];

		if (p->count == n.depth)
			continue;
		p->node = get_child(t, node, t->leaf.data[i]);
		t->node.data[p->node].count++;
	}
	t->node.data[node].first_child = first;
	t->node.data[node].child_count = (uint32_t)t->node.count - first;
	t->node.data[node].is_split = true;
	for (uint32_t c = first; c < t->node.count; c++)
		t->child[t->node.data[c].shown.frame] = 0;
}

/* Gives each child of @node its part of the leaves. */
static void split(struct report_tree *t, uint32_t node)
{
	find_children(t, node);
	const struct tree_node n = t->node.data[node];
	uint32_t at = n.start + n.count, ended = n.start;

	for (uint32_t c = n.first_child + n.child_count; c-- > n.first_child;) {
		at -= t->node.data[c].count;
		t->node.data[c].start = at;
		t->node.data[c].count = 0;
	}
	if (n.count == 0) /* the root of an empty tree */
		return;
	memcpy(t->scratch, &t->leaf.data[n.start], n.count * sizeof(*t->scratch));
	for (uint32_t i = 0; i < n.count; i++) {
		uint32_t leaf = t->scratch[i], child = t->path[leaf].node;
		struct tree_node *c = &t->node.data[child];

		t->leaf.data[child == node ? ended++ : c->start + c->count++] = leaf;
	}
}

const struct report_node *report_tree_node(const struct report_tree *t, uint32_t node)
{
	return &t->node.data[node].shown;
}

uint32_t report_tree_children(struct report_tree *t, uint32_t node, uint32_t *first_out)
{
	if (!t->node.data[node].is_split)
		split(t, node);
	*first_out = t->node.data[node].first_child;
	return t->node.data[node].child_count;
}

uint32_t report_tree_leaf_node(struct report_tree *t, uint32_t leaf)
{
	if (leaf > t->leaf_count || t->path[leaf].node == REPORT_NODE_IGNORED)
		return REPORT_NODE_IGNORED;
	const struct leaf_path *p = &t->path[leaf];

	while (t->node.data[p->node].depth < p->count)
		split(t, p->node);
	return p->node;
}

uint64_t report_tree_bytes(const struct report_tree *t, uint32_t node,
			   const struct report_leaves *leaves)
{
	const struct tree_node *n = &t->node.data[node];
	uint64_t sum = 0;

	for (uint32_t i = n->start; i < n->start + n->count; i++) {
		uint32_t leaf = t->leaf.data[i];

		sum += leaf <= leaves->count ? leaves->bytes[leaf] : 0;
	}
	return sum;
}
