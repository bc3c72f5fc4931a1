/*
 * Paths in a trie of names. A parent has a smaller number than its children, so one pass from the
 * last node to the first computes all sums. Owns its arrays and names; independent of formats and
 * of the source of the paths.
 */
#include "output/path_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "base/vec.h"
#include "output/child_table.h"
#include "symbols/string_pool.h"

struct path_tree {
	VEC(struct path_node) node;
	struct string_pool name;  /* equal names are one pointer */
	struct child_table children;
};

static struct child_key key_of(const void *tree, uint32_t node)
{
	const struct path_tree *t = tree;
	const struct path_node *n = &t->node.data[node];
	return (struct child_key){(uintptr_t)n->name, n->parent};
}

struct path_tree *path_tree_new(void)
{
	struct path_tree *t = xcalloc(1, sizeof(*t));

	*vec_add(&t->node) = (struct path_node){.name = string_pool_add(&t->name, "all")};
	return t;
}

void path_tree_free(struct path_tree *t)
{
	if (!t)
		return;
	vec_deinit(&t->node);
	string_pool_deinit(&t->name);
	child_table_deinit(&t->children);
	free(t);
}

uint32_t path_tree_child(struct path_tree *t, uint32_t parent, const char *name, size_t size)
{
	_cleanup_free_ char *clean = text_clean(name, size);
	const char *kept = string_pool_add(&t->name, clean);

	struct child_key key = {(uintptr_t)kept, parent};
	uint32_t *slot = child_table_get(&t->children, key_of, t, t->node.count, key);

	if (*slot)
		return *slot;
	uint32_t child = (uint32_t)t->node.count;

	*vec_add(&t->node) = (struct path_node){
		.name = kept,
		.parent = parent,
		.next_sibling = t->node.data[parent].first_child,
		.depth = t->node.data[parent].depth + 1,
	};
	t->node.data[parent].first_child = child;
	*slot = child;
	return child;
}

void path_tree_set_kind(struct path_tree *t, uint32_t node, enum frame_kind kind)
{
	if (kind != FRAME_PROGRAM)
		t->node.data[node].kind = kind;
}

struct path_tree *path_tree_fold_unnamed(const struct path_tree *t)
{
	struct path_tree *out = path_tree_new();
	_cleanup_free_ uint32_t *place = xcalloc(t->node.count, sizeof(*place)); /* in @out */

	for (uint32_t i = 0; i < t->node.count; i++) {
		const struct path_node *n = &t->node.data[i];
		bool is_repeated = *n->name == '[' && n->name == t->node.data[n->parent].name;

		place[i] = !i || is_repeated ? place[n->parent] :
					       path_tree_child(out, place[n->parent], n->name,
							       strlen(n->name));
		path_tree_set_kind(out, place[i], n->kind);
		path_tree_add_own(out, place[i], n);
	}
	path_tree_sum(out);
	return out;
}

void path_tree_add(struct path_tree *t, uint32_t node, enum path_side side, uint64_t value)
{
	t->node.data[node].own[side] += value;
}

void path_tree_add_blocks(struct path_tree *t, uint32_t node, enum path_side side, uint64_t count)
{
	t->node.data[node].blocks[side] += count;
}

void path_tree_add_variance(struct path_tree *t, uint32_t node, enum path_side side,
			    double variance)
{
	t->node.data[node].own_variance[side] += variance;
}

void path_tree_add_own(struct path_tree *t, uint32_t node, const struct path_node *from)
{
	struct path_node *n = &t->node.data[node];

	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		n->own[side] += from->own[side];
		n->blocks[side] += from->blocks[side];
		n->own_variance[side] += from->own_variance[side];
	}
}

void path_tree_sum(struct path_tree *t)
{
	for (size_t i = 0; i < t->node.count; i++) {
		struct path_node *n = &t->node.data[i];

		memcpy(n->total, n->own, sizeof(n->own));
		memcpy(n->variance, n->own_variance, sizeof(n->own_variance));
	}
	for (size_t i = t->node.count; i-- > 1;) {
		struct path_node *n = &t->node.data[i], *parent = &t->node.data[n->parent];

		for (int side = PATH_OLD; side <= PATH_NEW; side++) {
			parent->total[side] += n->total[side];
			parent->variance[side] += n->variance[side];
		}
	}
}

const struct path_node *path_tree_node(const struct path_tree *t, uint32_t node)
{
	CHECK(node < t->node.count);
	return &t->node.data[node];
}

uint32_t path_tree_node_count(const struct path_tree *t)
{
	return (uint32_t)t->node.count;
}

static int compare_names(const void *a, const void *b, void *ctx)
{
	const struct path_tree *t = ctx;

	return strcmp(t->node.data[*(const uint32_t *)a].name,
		      t->node.data[*(const uint32_t *)b].name);
}

uint32_t path_tree_children(const struct path_tree *t, uint32_t node, uint32_t **out,
			    size_t *capacity)
{
	uint32_t count = 0;

	for (uint32_t c = t->node.data[node].first_child; c; c = t->node.data[c].next_sibling) {
		*out = xgrow(*out, capacity, count + 1u, sizeof(**out));
		(*out)[count++] = c;
	}
	if (count > 1)
		qsort_r(*out, count, sizeof(**out), compare_names, (void *)t);
	return count;
}
