/*
 * What a report shows of one stack: the frames of a node of the profile's call tree, and which of
 * them the filter leaves. The mark of a stack that is not whole is shown beyond the depth, too.
 */
#ifndef PTMEM_OUTPUT_SHOWN_STACK_H
#define PTMEM_OUTPUT_SHOWN_STACK_H

#include "base/vec.h"
#include "output/writer.h"

/* Refilled for each stack; begins as {.report = r}. */
struct shown_stack {
	const struct report *report;
	VEC(uint32_t) frame; /* all of the stack, of the call tree; innermost first */
	size_t first, count; /* shown are frame[first] to frame[first + count - 1] */
};

/* Of the stack that ends at @node. False: its blocks are ignored. */
bool shown_stack_fill(struct shown_stack *s, uint32_t node);
/* All names of frame[@i]. */
const struct symbol *shown_stack_symbol(const struct shown_stack *s, size_t i);
void shown_stack_deinit(struct shown_stack *s);

#endif
