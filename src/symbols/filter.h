/*
 * Selects the part of a stack that a report shows: alloc-fns are stripped from the top, everything
 * below main is cut, the depth is limited; and whether the block counts at all (ignore-fn). These
 * are Massif's rules: doc/massif.md section 2.8 (the newer inline rule).
 */
#ifndef PTMEM_SYMBOLS_FILTER_H
#define PTMEM_SYMBOLS_FILTER_H

#include "symbols/symbols.h"

struct filter;

/* Starts with the default alloc-fns. @show_below_main: do not cut after main. depth: 1..200. */
struct filter *filter_new(uint32_t depth, bool show_below_main);
/* For reports of whole stacks: strips and ignores nothing, shows all frames up to filter_reach. */
struct filter *filter_new_whole(uint32_t depth, bool show_below_main);
/*
 * Stacks start with their innermost frame (pages), not with the caller of an allocation function.
 * Call before use.
 */
void filter_keep_first(struct filter *f);
void filter_free(struct filter *f);
void filter_add_alloc_fn(struct filter *f, const char *name);  /* copied */
void filter_add_ignore_fn(struct filter *f, const char *name); /* copied */

/* For -v: both lists of names, one line each. */
void filter_log(const struct filter *f);

bool filter_is_alloc_fn(const struct filter *f, const char *name);
/* The maximum number of frames examined, innermost first: Massif records no more. */
size_t filter_reach(const struct filter *f);
bool filter_has_ignore_fns(const struct filter *f);

/* The names of frame @i of a stack, innermost = 0. Must be consistent between calls. */
typedef const struct symbol *filter_symbol_fn(void *ctx, size_t i, enum symbol_part part);

/* Frames of a stack, innermost first. */
struct filter_range {
	size_t first, count;
};

/*
 * Decides which of the @count frames of a stack are shown. Returns false when the block is
 * ignored. Only the innermost filter_reach frames are used. Calls @symbol for as few frames as
 * possible, and for as little of each.
 */
bool filter_stack(const struct filter *f, filter_symbol_fn *symbol, void *ctx, size_t count,
		  struct filter_range *shown_out);

#endif
