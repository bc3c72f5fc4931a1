/*
 * Splits text into words as a shell does, with quotes and backslashes but without expansions, and
 * matches text against patterns with wildcards. See shell_words.h.
 */
#include "base/shell_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"

/*
 * Splits PTMEM_OPTS and ptmemrc. A word is copied as it is parsed; it is never longer than the rest
 * of the text.
 */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *skip_to_word(const char *s)
{
	for (;;) {
		while (is_blank(*s))
			s++;
		if (*s != '#')
			return s;
		s += strcspn(s, "\n");
	}
}

/*
 * Copies the quoted text at @s. Returns what follows the closing quote, or NULL if there is
 * none.
 */
static const char *copy_quoted(const char *s, char *to, size_t *n)
{
	char quote = *s++;
	for (; *s && *s != quote; s++) {
		if (quote == '"' && *s == '\\' && s[1] && strchr("\"\\$`", s[1]))
			s++;
		to[(*n)++] = *s;
	}
	return *s ? s + 1 : NULL;
}

/* Copies one word. Returns what follows it, or NULL if it is unterminated. */
static const char *copy_word(const char *s, char *to)
{
	size_t n = 0;
	while (s && *s && !is_blank(*s)) {
		if (*s == '\'' || *s == '"') {
			s = copy_quoted(s, to, &n);
		} else if (*s == '\\') {
			if (!s[1])
				return NULL;
			to[n++] = s[1];
			s += 2;
		} else {
			to[n++] = *s++;
		}
	}
	to[n] = '\0';
	return s;
}

int shell_words_split(const char *text, struct words *words)
{
	size_t before = words->count;
	_cleanup_free_ char *buffer = xmalloc(strlen(text) + 1);
	for (const char *s = skip_to_word(text); *s; s = skip_to_word(s)) {
		s = copy_word(s, buffer);
		if (!s) {
			while (words->count > before)
				free(words->data[--words->count]);
			return -EINVAL;
		}
		*vec_add(words) = xstrdup(buffer);
	}
	return 0;
}

void shell_words_deinit(struct words *words)
{
	vec_release(words, e, free(*e));
}

/* Backtracks to the last '*' only: after a mismatch that '*' matches one more character. */

bool wildcard_matches(const char *pattern, size_t length, const char *text)
{
	size_t p = 0, t = 0, star = SIZE_MAX, taken = 0;
	while (text[t]) {
		if (p < length && pattern[p] == '*') {
			star = p++;
			taken = t;
		} else if (p < length && (pattern[p] == '?' || pattern[p] == text[t])) {
			p++;
			t++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			t = ++taken;
		} else {
			return false;
		}
	}
	while (p < length && pattern[p] == '*')
		p++;
	return p == length;
}

bool wildcard_list_matches(const char *list, const char *text)
{
	for (const char *s = list; *s; s += *s == ',') {
		size_t length = strcspn(s, ",");
		if (length > 0 && wildcard_matches(s, length, text))
			return true;
		s += length;
	}
	return false;
}
