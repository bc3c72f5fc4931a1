/*
 * Patterns as in Valgrind's options: '*' matches any text, '?' one character, nothing else is
 * special.
 */
#ifndef PTMEM_BASE_WILDCARD_H
#define PTMEM_BASE_WILDCARD_H

#include "base/types.h"

/* Whether the pattern of @length characters at @pattern matches all of @text. */
bool wildcard_matches(const char *pattern, size_t length, const char *text);

/* The same for a comma-separated list of patterns. An empty one matches nothing. */
bool wildcard_list_matches(const char *list, const char *text);

#endif
