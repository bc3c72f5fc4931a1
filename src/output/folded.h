/*
 * Folded stacks, one path a line: what flame graph tools read.
 *
 *	FILE := { NAME { ";" NAME } " " VALUE [ " " VALUE ] "\n" }
 *
 * Outermost caller first. A ';' inside of a name becomes ':'. A path that owns
 * nothing has no line, so the values sum up to the tree's total. With two values
 * the first is the old one. Lines are sorted by name at each level.
 */
#ifndef PTMEM_OUTPUT_FOLDED_H
#define PTMEM_OUTPUT_FOLDED_H

#include <stdio.h>

#include "output/path_tree.h"

/* Errors of the stream are left in it. What belongs to the root itself is named "[unknown]". */
void folded_write(FILE *out, const struct path_tree *t, bool is_diff);

#endif
