/*
 * The merged tree of a report: see report_tree.h for the picture.
 *
 * Built once for all snapshots: a leaf takes one call of the filter and one hash look-up per shown
 * frame. A snapshot then takes one pass over the nodes from the last to the first, since a parent
 * has a smaller number than its children. Owns its arrays; independent of names and formats.
 */
#include "output/report_tree.h"

#include "base/alloc.h"
#include "base/vec.h"
#include "output/child_table.h"
#include "output/shown_stack.h"

struct leaf_place {
	uint32_t node;       /* the node that gets the leaf's bytes; REPORT_NODE_IGNORED = none */
	uint32_t node_count; /* number of nodes after this leaf was added */
};

struct report_tree {
	VEC(struct report_node) node;
	struct child_table children;
	struct leaf_place *place; /* by leaf; [0] unused */
	uint32_t leaf_count;
};

static struct child_key key_of(const void *tree, uint32_t node)
{
	const struct report_tree *t = tree;
	const struct report_node *n = &t->node.data[node];
	return (struct child_key){n->frame, n->parent};
}

/* The next node is tried first: those of a new path follow each other (calltree_get_child). */
static uint32_t get_child(struct report_tree *t, uint32_t parent, uint32_t frame)
{
	struct child_key key = {frame, parent};
	uint32_t next = parent + 1;

	if (next < t->node.count && t->node.data[next].parent == parent &&
	    t->node.data[next].frame == frame)
		return next;
	uint32_t *slot = child_table_get(&t->children, key_of, t, t->node.count, key);

	if (*slot)
		return *slot;
	uint32_t child = (uint32_t)t->node.count;

	*vec_add(&t->node) = (struct report_node){
		.frame = frame,
		.parent = parent,
		.next_sibling = t->node.data[parent].first_child,
	};
	t->node.data[parent].first_child = child;
	*slot = child;
	return child;
}

static uint32_t place_leaf(struct report_tree *t, struct shown_stack *s, uint32_t node)
{
	uint32_t at = 0;

	if (!shown_stack_fill(s, node))
		return REPORT_NODE_IGNORED;
	for (size_t i = 0; i < s->count; i++)
		at = get_child(t, at, s->frame.data[s->first + i]);
	return at;
}

struct report_tree *report_tree_new_of(const struct report *r, const uint32_t *leaf_node,
				       uint32_t count)
{
	struct report_tree *t = xcalloc(1, sizeof(*t));
	struct shown_stack stack = {.report = r};

	*vec_add(&t->node) = (struct report_node){0};
	t->leaf_count = count;
	t->place = xcalloc((size_t)t->leaf_count + 1, sizeof(*t->place));
	t->place[0].node_count = 1;
	for (uint32_t i = 1; i <= t->leaf_count; i++) {
		t->place[i].node = place_leaf(t, &stack, leaf_node[i]);
		t->place[i].node_count = (uint32_t)t->node.count;
	}
	shown_stack_deinit(&stack);
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
	child_table_deinit(&t->children);
	free(t->place);
	free(t);
}

const struct report_node *report_tree_node(const struct report_tree *t, uint32_t node)
{
	return &t->node.data[node];
}

uint32_t report_tree_leaf_node(const struct report_tree *t, uint32_t leaf)
{
	return leaf <= t->leaf_count ? t->place[leaf].node : REPORT_NODE_IGNORED;
}

uint32_t report_tree_sum(const struct report_tree *t, const uint64_t *leaf_bytes,
			 uint32_t leaf_count, uint64_t **node_bytes_out)
{
	leaf_count = MIN(leaf_count, t->leaf_count);
	uint32_t node_count = t->place[leaf_count].node_count;
	uint64_t *bytes = xcalloc(node_count, sizeof(*bytes));

	for (uint32_t i = 1; i <= leaf_count; i++)
		if (t->place[i].node != REPORT_NODE_IGNORED)
			bytes[t->place[i].node] += leaf_bytes[i];
	for (uint32_t i = node_count; i-- > 1;)
		bytes[t->node.data[i].parent] += bytes[i];
	*node_bytes_out = bytes;
	return node_count;
}
