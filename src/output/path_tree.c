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

/*
 * Finds a child in a tree of numbered nodes by the parent and a key that is unique among its
 * children (a frame, a name). The tree stores both in its nodes; the table contains only numbers,
 * hashed, and is at most half full. Node 0 is the root and not in the table.
 */

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

enum frame_kind frame_kind(const struct frame_text *frame)
{
	const char *function = frame->function, *object = frame->object;

	switch (standard_library(frame)) {
	case STANDARD_C:
	case STANDARD_LOADER:
		return FRAME_LIBC;
	case STANDARD_CXX_RUST:
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
