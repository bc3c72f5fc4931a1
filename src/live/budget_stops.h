/*
 * What --budget cannot change: calls that stop at breakpoints, since their functions have no jumps.
 */
#ifndef PTMEM_BUDGET_STOPS_H
#define PTMEM_BUDGET_STOPS_H

#include "base/types.h"

struct address_space;

/* The number of such calls so far; it falls when a function gets a jump. */
uint64_t budget_stops_count(const struct address_space *s);
/* The functions with most of them, and why they have no jumps. The caller frees it. */
char *budget_stops_explain(const struct address_space *s);

#endif
