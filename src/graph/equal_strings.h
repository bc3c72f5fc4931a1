/*
 * Blocks that have equal strings: how often each is there, and what keeping it once would save.
 *
 * Strings are what char pointers and strings of libraries lead to: arrays of single bytes, up to
 * their zero or their size, that are text. Those inside of objects (short ones of C++) are not
 * counted. Equal ones are compared byte by byte, so that no sum is by chance. Memory is bounded:
 * if there are more different strings than that, the others are counted as not compared.
 */
#ifndef PTMEM_GRAPH_EQUAL_STRINGS_H
#define PTMEM_GRAPH_EQUAL_STRINGS_H

#include "graph/graph_types.h"
#include "graph/typed_walk.h"

#define EQUAL_STRINGS_MAX 1000000u   /* different ones: 64 bytes each at most */
#define EQUAL_STRINGS_LENGTH (UINT64_C(1) << 20) /* longer ones are not compared */

/* @w has walked. Fills *out, which is zeroed. */
void equal_strings_find(const struct typed_walk *w, struct graph_strings *out);

#endif
