/*
 * Folded stacks, one path per line, the input of flame graph tools.
 *
 *	FILE := { NAME { ";" NAME } " " VALUE [ " " VALUE ] "\n" }
 *
 * Outermost caller first. A ';' in a name becomes ':'. A path without own values has no line; the
 * values add up to the tree's total. Of two values the first is the old one. Lines are sorted by
 * name at each level.
 */
#ifndef PTMEM_OUTPUT_FOLDED_H
#define PTMEM_OUTPUT_FOLDED_H

#include <stdio.h>

#include "output/path_tree.h"

/* The caller checks the stream for errors. The root's own value is named "[unknown]". */
void folded_write(FILE *out, const struct path_tree *t, bool is_diff);

#endif
