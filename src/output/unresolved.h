/*
 * Merges call paths whose values are estimates from too few samples, which is noise.
 *
 *	main 90M --> parse 60M --> a 1.0M           main 90M --> parse 60M --> [below resolution] 2M
 *	                       \-> b 0.5M      ->            \-> lex 30M
 *	         \-> lex 30M   \-> c 0.5M
 */
#ifndef PTMEM_OUTPUT_UNRESOLVED_H
#define PTMEM_OUTPUT_UNRESOLVED_H

#include "output/path_tree.h"

/*
 * A copy of @t, whose totals are up to date, in which children below resolution
 * (profile/estimate.h) on both sides are one child of their parent, without children of its own.
 * Totals are up to date. Never NULL.
 */
struct path_tree *unresolved_merge(const struct path_tree *t);

#endif
