/* Leaks as text, for people. */
#ifndef PTMEM_OUTPUT_LEAKS_TEXT_H
#define PTMEM_OUTPUT_LEAKS_TEXT_H

#include "output/leaks.h"

/*
 * Calls @line for each line of the report (without newline), for at most @max_sites sites. With
 * samples, sites below resolution (profile/estimate.h) share one line.
 */
typedef void leaks_line_fn(void *ctx, const char *line);
void leaks_print(const struct leaks *l, size_t max_sites, leaks_line_fn *line, void *ctx);
/* Only the lines with totals. */
void leaks_print_sums(const struct leaks *l, leaks_line_fn *line, void *ctx);

#endif
