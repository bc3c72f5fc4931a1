/* What the texts and the JSON of leaks share. */
#ifndef PTMEM_OUTPUT_LEAKS_INTERNAL_H
#define PTMEM_OUTPUT_LEAKS_INTERNAL_H

#include "output/leaks.h"

extern const char *const leak_kind_text[LEAK_KIND_COUNT];

/* Frames of the call tree, innermost first. */
struct leak_frames {
	VEC(struct leak_frame {
		uint32_t frame;
		bool is_repeated; /* recursion behind it was left out */
	}) list;
};

struct leak_stack {
	VEC(struct suppression_frame) list;
	VEC(char *) names; /* of them; owned */
};

void leak_stack_deinit(struct leak_stack *s);

typedef void leaks_frame_fn(void *ctx, taddr_t pc, const struct symbol *symbol,
			    const struct symbol_frame *frame);

/* Calls @fn for each frame of the path that ends at @node, innermost first. */
void leaks_each_frame(const struct leaks *l, uint32_t node, leaks_frame_fn *fn, void *ctx);

/*
 * Adds the names on the path that ends at @node, with inlined functions; @is_merged: without
 * recursion. Only caches in @l.
 */
void leaks_list_stack(struct leaks *l, uint32_t node, bool is_merged, struct leak_stack *out);

/* Seconds since @time, profile_block_clock. */
double leaks_age(const struct leaks *l, uint32_t time);

/* Whether numbers are estimates. */
bool leaks_are_sampled(const struct leaks *l);

#endif
