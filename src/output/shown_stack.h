/*
 * The part of one stack that a report shows: the frames of a node of the profile's call tree that
 * the filter leaves. The marker of an incomplete stack is shown beyond the depth, too.
 */
#ifndef PTMEM_OUTPUT_SHOWN_STACK_H
#define PTMEM_OUTPUT_SHOWN_STACK_H

#include "base/vec.h"
#include "output/writer.h"

/* Reused for each stack; initially {.report = r}. */
struct shown_stack {
	const struct report *report;
	VEC(uint32_t) frame; /* the complete stack in the call tree, innermost first */
	size_t first, count; /* shown are frame[first] to frame[first + count - 1] */
};

/* Gets the stack that ends at @node. False: its blocks are ignored. */
bool shown_stack_fill(struct shown_stack *s, uint32_t node);
/* All names of frame[@i]. */
const struct symbol *shown_stack_symbol(const struct shown_stack *s, size_t i);
void shown_stack_deinit(struct shown_stack *s);

#endif
