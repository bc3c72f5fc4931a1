/* Backtracks to the last '*' only: after a mismatch that '*' matches one more character. */
#include "base/wildcard.h"

#include <string.h>

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
