/*
 * Suggestions for misspelled options.
 */
#ifndef PTMEM_OPTION_SUGGEST_H
#define PTMEM_OPTION_SUGGEST_H

#include "base/types.h"

/*
 * The shortest option that begins with the @length bytes at @name, or the most similar one; NULL =
 * none.
 */
const char *option_suggest(const char *name, size_t length);

#endif
