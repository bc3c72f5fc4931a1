/*
 * Patterns as Valgrind's options have them: '*' is any
 * text, '?' any one letter, nothing else is special.
 */
#ifndef PTMEM_BASE_WILDCARD_H
#define PTMEM_BASE_WILDCARD_H

#include "base/types.h"

/* Whether all of @text is as the pattern of @length letters at @pattern says. */
bool wildcard_matches(const char *pattern, size_t length, const char *text);

/* The same for a list of patterns with commas between; an empty one matches nothing. */
bool wildcard_list_matches(const char *list, const char *text);

#endif
