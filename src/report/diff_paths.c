/*
 * First a tree of the matched names is built. Then it is copied, and nodes that represent several
 * places get these into their names.
 */
#include "report/diff_paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "recording/recording_site.h"
#include "report/recording_paths.h"

#define MAX_PLACES 4 /* in a name */

/* A place of a frame of the node. */
struct place {
	uint32_t node;
	enum path_side side;
	const char *text;          /* the match's */
};

struct diff_paths {
	const struct frame_match *match;
	enum diff_order order;
	struct path_tree *tree;
	VEC(struct place) place;
	size_t unique;             /* number left when duplicates were last removed */
};

struct diff_paths *diff_paths_new(const struct frame_match *match, enum diff_order order)
{
	struct diff_paths *p = xcalloc(1, sizeof(*p));

	p->match = match;
	p->order = order;
	p->tree = path_tree_new();
	return p;
}

static uint32_t add_function(struct diff_paths *p, enum path_side side, uint32_t at, uint32_t frame)
{
	const char *name = frame_match_name(p->match, frame_match_function(p->match, side, frame));

	return path_tree_child(p->tree, at, name, strlen(name));
}

/* -- places -- */

/* Sorted by node; those of the new profile first, each file's by line. */
static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->side != y->side)
		return x->side == PATH_NEW ? -1 : 1;
	return strverscmp(x->text, y->text);
}

static void remove_equal_places(struct diff_paths *p)
{
	vec_sort(&p->place, compare_places);
	vec_merge(&p->place, !compare_places);
	p->unique = p->place.count;
}

static void add_place(struct diff_paths *p, uint32_t node, enum path_side side, const char *text)
{
	if (p->place.count > 2 * p->unique + 10000)
		remove_equal_places(p);
	*vec_add(&p->place) = (struct place){node, side, text};
}

/* -- stacks -- */

static uint32_t add_site(struct diff_paths *p, enum path_side side, uint32_t at, uint32_t frame)
{
	uint32_t site = frame_match_site(p->match, side, frame);
	const char *name = frame_match_site_name(p->match, site);
	const char *place = frame_match_place(p->match, side, frame);

	at = path_tree_child(p->tree, at, name, strlen(name));
	if (place)
		add_place(p, at, side, place);
	return at;
}

void diff_paths_add(struct diff_paths *p, enum path_side side, const struct diff_stack *stack)
{
	uint32_t at = 0;

	if (p->order == DIFF_SITE_FIRST) {
		for (size_t i = stack->site; i < stack->count; i++)
			at = add_site(p, side, at, stack->frame[i]);
	} else {
		if (p->order == DIFF_TABLE && stack->count)
			at = add_site(p, side, at, stack->frame[stack->site]);
		for (size_t i = stack->count; i-- > 0;)
			at = add_function(p, side, at, stack->frame[i]);
	}
	path_tree_add(p->tree, at, side, stack->bytes);
	path_tree_add_blocks(p->tree, at, side, stack->blocks);
	path_tree_add_variance(p->tree, at, side, stack->variance);
}

/* -- names with places -- */

/* The part after the ':' if @text is a line of the same file as @last, else all of it. */
static const char *shortened(const char *text, const char *last)
{
	const char *colon = strrchr(text, ':');
	size_t size = colon ? (size_t)(colon + 1 - text) : 0;

	return colon && last && strncmp(text, last, size) == 0 ? colon + 1 : text;
}

/* "f (a.c:7, 12)" for the @count places of one node. */
static char *name_with_places(const char *name, const struct place *place, size_t count)
{
	_cleanup_free_ char *text = NULL;
	const char *last = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	CHECK(f);
	fputs(name, f);
	for (size_t i = 0; i <= MAX_PLACES && i < count && place[i].side == place->side; i++) {
		fputs(last ? ", " : " (", f);
		fputs(i < MAX_PLACES ? shortened(place[i].text, last) : "...", f);
		last = place[i].text;
	}
	fputs(count ? ")" : "", f);
	CHECK(!fclose(f));
	return_ptr(text);
}

static struct path_tree *copy_with_places(const struct diff_paths *p)
{
	struct path_tree *out = path_tree_new();
	uint32_t count = path_tree_node_count(p->tree);
	_cleanup_free_ uint32_t *copy = xcalloc(count, sizeof(*copy));
	size_t at = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct path_node *n = path_tree_node(p->tree, i);
		size_t first = at;

		while (at < p->place.count && p->place.data[at].node == i)
			at++;
		_cleanup_free_ char *name =
			name_with_places(n->name, p->place.data + first, at - first);

		copy[i] = i ? path_tree_child(out, copy[n->parent], name, strlen(name)) : 0;
		path_tree_add_own(out, copy[i], n);
	}
	return out;
}

struct path_tree *diff_paths_finish(struct diff_paths *p)
{
	remove_equal_places(p);
	struct path_tree *out = p->place.count ? copy_with_places(p) : p->tree;

	if (out != p->tree)
		path_tree_free(p->tree);
	path_tree_sum(out);
	vec_deinit(&p->place);
	free(p);
	return out;
}

/* Gets the stacks of one side. */
struct stack_reader {
	diff_stack_fn *take;
	void *ctx;
	enum path_side side;
};

static void add_to_paths(void *ctx, enum path_side side, const struct diff_stack *stack)
{
	diff_paths_add(ctx, side, stack);
}

static bool has_build(const struct recording *r, const char *build_id)
{
	for (size_t i = 0; build_id && i < recording_rows(r, RECORDING_OBJECTS); i++) {
		const char *other = recording_get_text(r, RECORDING_OBJECTS, i, OBJECT_BUILD_ID);

		if (other && strcmp(other, build_id) == 0)
			return true;
	}
	return false;
}

/* The frames of @r, by row; @other is the other side. */
static void match_frames(struct frame_match *m, enum path_side side, const struct recording *r,
			 const struct recording *other)
{
	size_t objects = recording_rows(r, RECORDING_OBJECTS);
	_cleanup_free_ bool *is_same = xcalloc(objects + 1, sizeof(*is_same)); /* [0]: none */

	for (size_t i = 0; i < objects; i++)
		is_same[i + 1] = other && has_build(other, recording_get_text(r, RECORDING_OBJECTS,
									      i, OBJECT_BUILD_ID));
	for (size_t i = 0; i < recording_rows(r, RECORDING_FRAMES); i++) {
		uint64_t object = recording_get(r, RECORDING_FRAMES, i, FRAME_OBJECT);
		const struct frame_text text = recording_frame_text(r, i);
		const struct match_frame frame = {
			.function = text.function,
			.file = text.file,
			.object = text.object,
			.line = recording_get(r, RECORDING_FRAMES, i, FRAME_LINE),
			.is_same_build = is_same[object],
		};

		frame_match_add(m, side, &frame);
	}
}

static void read_leaf(const struct stack_reader *reader, const struct recording *r, size_t leaf,
		      const struct recording_value *value)
{
	VEC(uint32_t) frame = {0};
	struct diff_stack stack = {.bytes = value->bytes,
				   .blocks = recording_count(r, value->blocks),
				   .variance = recording_square_error(r, value->variance),
				   .max_bytes = recording_get(r, RECORDING_LEAVES, leaf,
							      LEAF_MAX_BYTES)};
	int64_t site = recording_site(r, leaf);

	for (uint64_t n = recording_get(r, RECORDING_LEAVES, leaf, LEAF_NODE); n > 0;
	     n = recording_get(r, RECORDING_NODES, n - 1, NODE_PARENT)) {
		if ((int64_t)n - 1 == site)
			stack.site = frame.count;
		*vec_add(&frame) = (uint32_t)recording_get(r, RECORDING_NODES, n - 1, NODE_FRAME);
	}
	stack.frame = frame.data;
	stack.count = frame.count;
	reader->take(reader->ctx, reader->side, &stack);
	vec_deinit(&frame);
}

/* The stacks of the leaves in @v. */
static void read_stacks(const struct stack_reader *reader, const struct recording *r,
			const struct recording_view *v)
{
	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++)
		if (v->leaf[i].bytes || v->leaf[i].blocks)
			read_leaf(reader, r, i, &v->leaf[i]);
}

struct frame_match *diff_pair_match(const struct input *input, bool is_exact)
{
	struct frame_match *m = frame_match_new(is_exact);

	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		const struct recording *this = input_paths(&input[side]);

		if (this)
			match_frames(m, (enum path_side)side, this, input_paths(&input[!side]));
	}
	frame_match_finish(m);
	return m;
}

void diff_pair_each(const struct diff_pair *pair, diff_stack_fn *take, void *ctx)
{
	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		const struct recording *this = input_paths(&pair->input[side]);
		const struct stack_reader reader = {take, ctx, (enum path_side)side};

		if (this)
			read_stacks(&reader, this, &pair->view[side]);
	}
}

struct path_tree *diff_pair_tree(const struct diff_pair *pair, enum diff_order order)
{
	struct diff_paths *p = diff_paths_new(pair->match, order);

	diff_pair_each(pair, add_to_paths, p);
	return diff_paths_finish(p);
}
