/*
 * The stacks that a filter shows: one by one, with an end that marks incomplete ones; merged into a
 * tree, whose children are made when they are asked for; as named call paths. See report_tree.h.
 */
#include "output/report_tree.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"

static const struct symbol *find_symbol(void *ctx, size_t i, enum symbol_part part)
{
	const struct shown_stack *s = ctx;

	return s->report->symbol(s->report->symbol_ctx, s->frame.data[i], part);
}

/*
 * Keeps the marker of an incomplete stack as its outermost frame if the depth would cut it off, so
 * that no function of the program looks like the root.
 */
static void keep_cut_frame(struct shown_stack *s)
{
	uint32_t cut_frame = s->report->cut_frame;
	size_t end = s->first + s->count;

	if (!cut_frame || end >= s->frame.count || s->frame.data[s->frame.count - 1] != cut_frame)
		return;
	if (find_symbol(s, end - 1, SYMBOL_REAL)->is_main)
		return; /* the missing part is below main */
	s->frame.data[end] = cut_frame;
	s->count++;
}

bool shown_stack_fill(struct shown_stack *s, uint32_t node)
{
	const struct calltree *tree = profile_calltree(s->report->profile);

	s->frame.count = s->first = s->count = 0;
	for (; node; node = calltree_parent(tree, node))
		*vec_add(&s->frame) = calltree_node_frame(tree, node);
	struct filter_range shown;
	if (!filter_stack(s->report->filter, find_symbol, s, s->frame.count, &shown))
		return false;
	s->first = shown.first;
	s->count = shown.count;
	keep_cut_frame(s);
	return true;
}

const struct symbol *shown_stack_symbol(const struct shown_stack *s, size_t i)
{
	return s->report->symbol(s->report->symbol_ctx, s->frame.data[i], SYMBOL_ALL);
}

void shown_stack_deinit(struct shown_stack *s)
{
	vec_deinit(&s->frame);
}

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

/*
 * From leaves to named paths: each leaf is one path, and the tree merges equal names, so values of
 * one function at several addresses are added.
 */

char *shown_frame_name(const struct symbol *symbol, const struct symbol_frame *frame)
{
	if (frame->name)
		return xstrdup(frame->name);
	if (frame->file)
		return xasprintf("[%s:%u]", frame->file, frame->line);
	if (symbol->object)
		return xasprintf("[%s]", text_base_name(symbol->object));
	return xstrdup("[unknown]");
}

static uint32_t add_frame(struct path_tree *t, uint32_t at, const struct report *r,
			  const struct symbol *symbol)
{
	for (uint32_t i = symbol->count; i-- > 0;) {
		_cleanup_free_ char *name = shown_frame_name(symbol, &symbol->frame[i]);

		at = path_tree_child(t, at, name, strlen(name));
		const struct frame_text text = {symbol->frame[i].name, symbol->frame[i].file,
						symbol->object, symbol->frame[i].dir, r->my_code};

		path_tree_set_kind(t, at, frame_kind(&text));
	}
	return at;
}

/* What a leaf has of the quantity. */
struct leaf_value {
	uint64_t value, variance;
};

static void add_leaf(struct path_tree *t, struct shown_stack *s, uint32_t node,
		     const struct leaf_value *v)
{
	uint32_t at = 0;
	double error = profile_error(s->report->profile, v->variance);

	if (!shown_stack_fill(s, node))
		return;
	for (size_t i = s->first + s->count; i-- > s->first;)
		at = add_frame(t, at, s->report, shown_stack_symbol(s, i));
	path_tree_add(t, at, PATH_NEW, v->value);
	path_tree_add_variance(t, at, PATH_NEW, error * error);
}

static int find_peak(const struct profile *p, uint32_t *i_out)
{
	for (uint32_t i = profile_snapshot_count(p); i-- > 0;) {
		if (profile_snapshot(p, i)->kind == SNAPSHOT_PEAK) {
			*i_out = i;
			return 0;
		}
	}
	return -ENOENT;
}

/* Errors of numbers of blocks are not known. */
static struct leaf_value leaf_value(const struct profile *p, const struct leaf *leaf,
				    enum profile_quantity quantity)
{
	switch (quantity) {
	case PATHS_TOTAL:
		return (struct leaf_value){leaf->total_bytes, leaf->total_variance};
	case PATHS_COUNT:
		return (struct leaf_value){.value = profile_count(p, leaf->calls)};
	default:
		return (struct leaf_value){leaf->live_bytes, leaf->live_variance};
	}
}

int profile_paths_add(struct path_tree *t, const struct report *r, enum profile_quantity quantity)
{
	struct shown_stack stack = {.report = r};
	uint32_t count = profile_leaf_count(r->profile), peak = 0;
	_cleanup_free_ uint64_t *bytes = NULL;

	if (quantity == PATHS_PEAK) {
		int rc = find_peak(r->profile, &peak);

		if (rc != 0)
			return rc;
		count = profile_snapshot_leaves(r->profile, peak, &bytes);
	}
	for (uint32_t i = 1; i <= count; i++) {
		const struct leaf *leaf = profile_leaf(r->profile, i);
		struct leaf_value v = leaf_value(r->profile, leaf, quantity);

		if (bytes)
			v = (struct leaf_value){
				bytes[i], profile_leaf_variance(r->profile, i, bytes[i])};
		if (v.value)
			add_leaf(t, &stack, leaf->node, &v);
	}
	shown_stack_deinit(&stack);
	return 0;
}

void profile_paths_add_values(struct path_tree *t, const struct report *r,
			      uint64_t (*value)(const void *ctx, uint32_t leaf), const void *ctx)
{
	struct shown_stack stack = {.report = r};

	for (uint32_t i = 1; i <= profile_leaf_count(r->profile); i++) {
		const struct leaf_value v = {.value = value(ctx, i)};

		if (v.value)
			add_leaf(t, &stack, profile_leaf(r->profile, i)->node, &v);
	}
	shown_stack_deinit(&stack);
}
