/*
 * Cleaning and shortening of names. C++ names carry their length in template
 * arguments and parameters, so those go first; what identifies a function is
 * the last part of its qualified name.
 *
 *	std::vector<int, std::allocator<int> >::push_back(int const&)
 *	std::vector<int, std::allocator<int> >::push_back(…)
 *	std::vector<…>::push_back(…)
 *	…::push_back(…)
 *	…::push_b…
 */
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/vec.h"

#define ELLIPSIS "\u2026"
#define REPLACEMENT "\ufffd"

struct text {
	char *data;
	size_t count, capacity;
};

static void add_bytes(struct text *t, const char *s, size_t n)
{
	vec_reserve(t, t->count + n + 1);
	memcpy(t->data + t->count, s, n);
	t->count += n;
	t->data[t->count] = '\0';
}

static void add_string(struct text *t, const char *s)
{
	add_bytes(t, s, strlen(s));
}

/* Bytes of the character at @s, 1 .. 4; 0 if it is no valid UTF-8 (RFC 3629, section 4). */
static size_t character_size(const unsigned char *s, size_t size)
{
	unsigned char c = *s;
	size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

	if (n > size)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f) ||
	    (c == 0xf0 && s[1] < 0x90) || (c == 0xf4 && s[1] > 0x8f))
		return 0;
	/* U+FFFE and U+FFFF are no characters: XML forbids them. */
	if (c == 0xef && s[1] == 0xbf && s[2] >= 0xbe)
		return 0;
	return n;
}

char *text_clean(const char *s, size_t size)
{
	struct text t = {0};

	add_string(&t, "");
	for (size_t i = 0, n; i < size; i += MAX(n, 1)) {
		unsigned char c = (unsigned char)s[i];

		n = character_size((const unsigned char *)s + i, size - i);
		if (c < ' ' || c == 0x7f)
			add_string(&t, "?");
		else if (n)
			add_bytes(&t, s + i, n);
		else
			add_string(&t, REPLACEMENT);
	}
	return t.data;
}

size_t text_length(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

/*
 * What at @s stands for itself, though it holds
 * brackets: an operator's name, or a scope without one.
 */
static size_t literal_size(const char *s)
{
	static const char anonymous[] = "(anonymous namespace)";

	if (!strncmp(s, anonymous, strlen(anonymous)))
		return strlen(anonymous);
	if (!strncmp(s, "->", 2))
		return 2;
	if (strncmp(s, "operator", 8) != 0)
		return 0;
	if (!strncmp(s + 8, "()", 2))
		return 10;
	return 8 + strspn(s + 8, "<=>-");
}

/*
 * @whole with an ellipsis for what stands between the
 * outermost @open and @close; as it is if they do not match.
 */
static char *collapse(const char *whole, char open, char close)
{
	const char *name = whole;
	struct text t = {0};
	size_t depth = 0;

	add_string(&t, "");
	while (*name) {
		size_t n = MAX(literal_size(name), 1);

		if (n == 1 && *name == close && depth && --depth == 0 && name[-1] != open)
			add_string(&t, ELLIPSIS);
		if (!depth)
			add_bytes(&t, name, n);
		if (n == 1 && *name == open && depth++ == 0 && t.data[t.count - 1] != open)
			add_bytes(&t, name, 1);
		name += n;
	}
	if (!depth)
		return t.data;
	free(t.data);
	return xstrdup(whole);
}

/* Behind the first "::" of @name that stands outside of all brackets; NULL if there is none. */
static const char *after_scope(const char *name)
{
	size_t depth = 0, n;

	for (; *name; name += n) {
		n = MAX(literal_size(name), 1);
		if (n > 1)
			continue;
		if (strchr("<([{", *name))
			depth++;
		else if (strchr(">)]}", *name) && depth)
			depth--;
		else if (!depth && name[0] == ':' && name[1] == ':')
			return name + 2;
	}
	return NULL;
}

char *text_cut(const char *s, size_t max)
{
	struct text t = {0};
	size_t bytes = 0;

	if (text_length(s) <= max)
		return xstrdup(s);
	add_string(&t, "");
	if (!max)
		return t.data;
	for (size_t n = 0; s[bytes]; bytes++) {
		n += (s[bytes] & 0xc0) != 0x80;
		if (n == max)
			break;
	}
	add_bytes(&t, s, bytes);
	add_string(&t, ELLIPSIS);
	return t.data;
}

/* Takes over @name. */
static char *drop_scopes(char *name, size_t max)
{
	const char *rest = name;

	while (text_length(rest) + 3 > max && after_scope(rest))
		rest = after_scope(rest);
	if (rest == name)
		return name;
	char *out = xasprintf(ELLIPSIS "::%s", rest);

	free(name);
	return out;
}

char *text_shorten(const char *name, size_t max)
{
	char *out = xstrdup(name);

	for (int step = 0; step < 3 && text_length(out) > max; step++) {
		char *last = out;

		if (step == 2) {
			out = drop_scopes(out, max);
			break;
		}
		out = step ? collapse(last, '<', '>') : collapse(last, '(', ')');
		free(last);
	}
	char *fitting = text_cut(out, max);

	free(out);
	return fitting;
}
