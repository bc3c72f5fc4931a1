/* Call paths with values: children by name, totals, what is below resolution, folded stacks. */
#include "output/path_tree.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "base/types.h"
#include "profile/estimate.h"
#include "symbols/string_pool.h"

enum frame_kind frame_kind(const struct frame_text *frame)
{
	const char *function = frame->function, *object = frame->object;

	switch (standard_library(frame)) {
	case STANDARD_C:
	case STANDARD_LOADER:
		return FRAME_LIBC;
	case STANDARD_CXX_RUST:
	case STANDARD_JAVA:
	case STANDARD_NODE:
		return FRAME_STANDARD;
	case STANDARD_MALLOC:
	case STANDARD_PACKAGE:
		return FRAME_LIBRARY;
	case STANDARD_NONE:
		break;
	}
	if (object && strcmp(object, "???") != 0)
		return strstr(object, ".so") ? FRAME_LIBRARY : FRAME_PROGRAM;
	return function && *function != '[' ? FRAME_PROGRAM : FRAME_NONE;
}

/*
 * Paths in a trie of names. A parent has a smaller number than its children, so one pass from the
 * last node to the first computes all sums. Owns its arrays and names; independent of formats and
 * of the source of the paths.
 */

struct path_tree {
	VEC(struct path_node) node;
	struct string_pool name;  /* equal names are one pointer */
	HASH(uint32_t) children;  /* all nodes but the root, by parent and name */
};

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
	hash_deinit(&t->children);
	free(t);
}

uint32_t path_tree_child(struct path_tree *t, uint32_t parent, const char *name, size_t size)
{
	_cleanup_free_ char *clean = text_clean(name, size);
	const char *kept = string_pool_add(&t->name, clean);
	uint64_t hash = hash_u64(hash_u64((uintptr_t)kept) + parent);
	const uint32_t *known = hash_find(&t->children, hash, i,
					  t->node.data[*i].parent == parent &&
						  t->node.data[*i].name == kept);

	if (known)
		return *known;
	uint32_t child = (uint32_t)t->node.count;

	*vec_add(&t->node) = (struct path_node){
		.name = kept,
		.parent = parent,
		.next_sibling = t->node.data[parent].first_child,
		.depth = t->node.data[parent].depth + 1,
	};
	t->node.data[parent].first_child = child;
	return *hash_add(&t->children, hash) = child;
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

#define NAME "[below resolution]"

static bool is_unresolved(const struct path_node *n)
{
	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		if (n->total[side] > 0 &&
		    !estimate_is_below_resolution((double)n->total[side], sqrt(n->variance[side])))
			return false;
	}
	return n->total[PATH_OLD] > 0 || n->total[PATH_NEW] > 0;
}

struct path_tree *path_tree_merge_unresolved(const struct path_tree *t)
{
	struct path_tree *out = path_tree_new();
	uint32_t count = path_tree_node_count(t);
	_cleanup_free_ uint32_t *place = xcalloc(count, sizeof(*place)); /* in @out */
	_cleanup_free_ bool *is_merged = xcalloc(count, sizeof(*is_merged));

	for (uint32_t i = 0; i < count; i++) {
		const struct path_node *n = path_tree_node(t, i);

		is_merged[i] = i && (is_merged[n->parent] || is_unresolved(n));
		if (!i || is_merged[n->parent])
			place[i] = place[n->parent];
		else if (is_merged[i])
			place[i] = path_tree_child(out, place[n->parent], NAME, strlen(NAME));
		else
			place[i] = path_tree_child(out, place[n->parent], n->name, strlen(n->name));
		if (!is_merged[i])
			path_tree_set_kind(out, place[i], n->kind);
		path_tree_add_own(out, place[i], n);
	}
	path_tree_sum(out);
	return out;
}

/*
 * Folded stacks; the grammar is in path_tree.h. Walks iteratively, since paths may have ten
 * thousand frames; the text of the path so far grows and shrinks with it.
 */

struct walk {
	uint32_t node;
	size_t text_size; /* length of the path up to the parent */
};

struct folded_writer {
	FILE *out;
	const struct path_tree *tree;
	bool is_diff;
	VEC(char) text;       /* names of the path, separated by ';' */
	VEC(struct walk) todo;
	uint32_t *child;
	size_t child_capacity;
};

static void add_name(struct folded_writer *f, const char *name)
{
	if (f->text.count)
		*vec_add(&f->text) = ';';
	for (; *name; name++)
		*vec_add(&f->text) = *name == ';' ? ':' : *name;
}

static void put_line(struct folded_writer *f, const struct path_node *n)
{
	if (!n->own[PATH_NEW] && !(f->is_diff && n->own[PATH_OLD]))
		return;
	fwrite(f->text.data, 1, f->text.count, f->out);
	if (f->is_diff)
		fprintf(f->out, " %" PRIu64, n->own[PATH_OLD]);
	fprintf(f->out, " %" PRIu64 "\n", n->own[PATH_NEW]);
}

/* In reverse, since the last one pushed is the first one popped. */
static void push_children(struct folded_writer *f, uint32_t node, size_t text_size)
{
	for (uint32_t i = path_tree_children(f->tree, node, &f->child, &f->child_capacity);
	     i-- > 0;)
		*vec_add(&f->todo) = (struct walk){.node = f->child[i], .text_size = text_size};
}

void path_tree_write_folded(FILE *out, const struct path_tree *t, bool is_diff)
{
	struct folded_writer f = {.out = out, .tree = t, .is_diff = is_diff};

	add_name(&f, "[unknown]");
	put_line(&f, path_tree_node(t, 0));
	push_children(&f, 0, 0);
	while (f.todo.count) {
		struct walk w = f.todo.data[--f.todo.count];
		const struct path_node *n = path_tree_node(t, w.node);

		f.text.count = w.text_size;
		add_name(&f, n->name);
		put_line(&f, n);
		push_children(&f, w.node, f.text.count);
	}
	vec_deinit(&f.text);
	vec_deinit(&f.todo);
	free(f.child);
}
