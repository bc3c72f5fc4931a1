/* Text that users write as in a shell: words with quotes, and patterns with wildcards. */
#ifndef PTMEM_BASE_SHELL_WORDS_H
#define PTMEM_BASE_SHELL_WORDS_H

#include "base/types.h"

/*
 * Text split into words as a shell does it, without any expansion:
 * blanks separate, 'single' and "double" quotes join, a backslash takes the
 * next character literally, # at the start of a word begins a comment.
 */

struct words {
	char **data; /* owned */
	size_t count, capacity;
};

/*
 * Adds the words of @text to @words. 0, or -EINVAL for a quote that is not
 * closed or a backslash at the end (@words is then unchanged).
 */
int shell_words_split(const char *text, struct words *words);

void shell_words_deinit(struct words *words);

/*
 * Patterns as in Valgrind's options: '*' matches any text, '?' one character, nothing else is
 * special.
 */

/* Whether the pattern of @length characters at @pattern matches all of @text. */
bool wildcard_matches(const char *pattern, size_t length, const char *text);

/* The same for a comma-separated list of patterns. An empty one matches nothing. */
bool wildcard_list_matches(const char *list, const char *text);

#endif
