/* See shown_stack.h. */
#include "output/shown_stack.h"

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
