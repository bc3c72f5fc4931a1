/*
 * From leaves to named paths: each leaf is one path, and the tree merges equal names, so values of
 * one function at several addresses are added.
 */
#include "output/profile_paths.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "output/shown_stack.h"

static char *frame_name(const struct symbol *symbol, const struct symbol_frame *frame)
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
		_cleanup_free_ char *name = frame_name(symbol, &symbol->frame[i]);

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
