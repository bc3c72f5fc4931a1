/*
 * Text split into words as a shell does it, without any expansion:
 * blanks separate, 'single' and "double" quotes join, a backslash takes the
 * next character literally, # at the start of a word begins a comment.
 */
#ifndef PTMEM_BASE_WORDS_H
#define PTMEM_BASE_WORDS_H

#include "base/types.h"

struct words {
	char **data; /* owned */
	size_t count, capacity;
};

/*
 * Adds the words of @text to @words. 0, or -EINVAL for a quote that is not
 * closed or a backslash at the end (@words is then unchanged).
 */
int words_split(const char *text, struct words *words);

void words_deinit(struct words *words);

#endif
