/* See shown_stack.h. */
#include "output/shown_stack.h"

static const struct symbol *find_symbol(void *ctx, size_t i, enum symbol_part part)
{
	const struct shown_stack *s = ctx;

	return s->report->symbol(s->report->symbol_ctx, s->frame.data[i], part);
}

bool shown_stack_fill(struct shown_stack *s, uint32_t node)
{
	const struct calltree *tree = profile_calltree(s->report->profile);

	s->frame.count = s->first = s->count = 0;
	for (; node; node = calltree_parent(tree, node))
		*vec_add(&s->frame) = calltree_node_frame(tree, node);
	return filter_stack(s->report->filter, find_symbol, s, s->frame.count, &s->first,
			    &s->count);
}

const struct symbol *shown_stack_symbol(const struct shown_stack *s, size_t i)
{
	return s->report->symbol(s->report->symbol_ctx, s->frame.data[i], SYMBOL_ALL);
}

void shown_stack_deinit(struct shown_stack *s)
{
	vec_deinit(&s->frame);
}
