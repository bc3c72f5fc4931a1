/*
 * Cleans and shortens names. Template arguments and parameters make C++ names long, so these are
 * dropped first. The last part of its qualified name identifies a function.
 *
 *	std::vector<int, std::allocator<int> >::push_back(int const&)
 *	std::vector<int, std::allocator<int> >::push_back(…)
 *	std::vector<…>::push_back(…)
 *	…::push_back(…)
 *	push_back
 *	push_b…
 */
#include "base/text.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#define ELLIPSIS "\u2026"
#define REPLACEMENT "\ufffd"
#define SITE_LABEL_MAX 100
#define SITE_NAME_MIN 4 /* a name shortened to this length is worth more than a location */

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

static void add_character(struct text *t, const char *s, size_t n)
{
	uint32_t c = utf8_unseen(s, n);
	char escaped[16];

	if (!c) {
		add_bytes(t, s, n);
		return;
	}
	snprintf(escaped, sizeof(escaped), c > 0xffff ? "\\U%08X" : "\\u%04X", c);
	add_string(t, escaped);
}

/* The number of printable ASCII characters at the start of @s. */
static size_t count_plain(const char *s, size_t size)
{
	size_t n = 0;

	while (n < size && s[n] >= ' ' && s[n] < 0x7f)
		n++;
	return n;
}

char *text_clean(const char *s, size_t size)
{
	struct text t = {0};

	add_string(&t, "");
	for (size_t i = 0, n; i < size; i += MAX(n, 1)) {
		n = count_plain(s + i, size - i);
		if (n) {
			add_bytes(&t, s + i, n);
			continue;
		}
		unsigned char c = (unsigned char)s[i];

		n = utf8_character(s + i, size - i);
		if (c < ' ' || c == 0x7f)
			add_string(&t, "?");
		else if (n)
			add_character(&t, s + i, n);
		else
			add_string(&t, REPLACEMENT);
	}
	return t.data;
}

/* Whether text_clean would change it, apart from invalid bytes. */
static bool has_unseen(const char *s, size_t size)
{
	for (size_t i = count_plain(s, size), n; i < size; i += MAX(n, 1)) {
		unsigned char c = (unsigned char)s[i];

		n = utf8_character(s + i, size - i);
		if (c < ' ' || c == 0x7f || (n > 1 && utf8_unseen(s + i, n)))
			return true;
	}
	return false;
}

void text_put_name(FILE *out, const char *s, size_t size)
{
	if (has_unseen(s, size)) {
		_cleanup_free_ char *clean = text_clean(s, size);

		fputs(clean, out);
	} else {
		fwrite(s, 1, size, out);
	}
}

size_t text_length(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

/*
 * Returns the length of text at @s whose brackets do not nest: an operator's name, an anonymous
 * scope, Massif's name for the caller of main.
 */
static size_t literal_size(const char *s)
{
	static const char anonymous[] = "(anonymous namespace)";
	static const char below_main[] = "(below main)";

	if (*s != '(' && *s != '-' && *s != 'o')
		return 0; /* at nearly all characters of all names */
	if (!strncmp(s, anonymous, strlen(anonymous)))
		return strlen(anonymous);
	if (!strncmp(s, below_main, strlen(below_main)))
		return strlen(below_main);
	if (!strncmp(s, "->", 2))
		return 2;
	if (strncmp(s, "operator", 8) != 0)
		return 0;
	if (!strncmp(s + 8, "()", 2))
		return 10;
	return 8 + strspn(s + 8, "<=>-");
}

/*
 * A copy of @whole with an ellipsis in place of what is between the outermost @open and @close;
 * unchanged if they do not match.
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

/*
 * The part of @name after the first "::" outside of all brackets; NULL if there is none. The scopes
 * of the type in "operator std::string" are no scopes of the function.
 */
static const char *after_scope(const char *name)
{
	size_t depth = 0, n;

	if (text_begins_with(name, "operator "))
		return NULL;
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

const char *text_qualified(const char *name)
{
	const char *start = name;
	size_t depth = 0, n;

	for (const char *at = name; *at; at += n) {
		n = MAX(literal_size(at), 1);
		if (!strncmp(at, "operator", 8))
			break;
		if (n > 1)
			continue;
		if (*at == '(' && !depth && at != start)
			break;
		if (strchr("<([{", *at))
			depth++;
		else if (strchr(">)]}", *at) && depth)
			depth--;
		else if (*at == ' ' && !depth)
			start = at + 1;
	}
	return *start ? start : name;
}

/* The length of @name without its arguments or parameters. */
static size_t bare_size(const char *name)
{
	size_t i = literal_size(name);

	if (i > 1) /* an operator, which may be "operator new[]" or "operator T" */
		return i + strcspn(name + i, i > 8 ? "<(" : "(");
	while (name[i] && !(i && strchr("<(", name[i])))
		i++;
	return i;
}

bool text_begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

const char *text_after(const char *text, const char *start)
{
	return text_begins_with(text, start) ? text + strlen(start) : NULL;
}

bool text_ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n >= k && strcmp(text + n - k, end) == 0;
}

int text_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool text_is_among(const char *text, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count && list[i]; i++)
		if (strcmp(text, list[i]) == 0)
			return true;
	return false;
}

const char *text_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

size_t text_size_without_clone(const char *name)
{
	const char *clone = strstr(name, " [clone ");

	return clone && clone > name ? (size_t)(clone - name) : strlen(name);
}

static bool begins_with_function(const char *name, const char *wanted, size_t size)
{
	return strncmp(name, wanted, size) == 0 && (!name[size] || name[size] == '(');
}

bool text_is_function(const char *name, const char *wanted, size_t size)
{
	if (begins_with_function(name, wanted, size))
		return true;
	/* Limits ask for each function of each stack: few names contain it. */
	return memmem(name, strlen(name), wanted, size) &&
	       begins_with_function(text_qualified(name), wanted, size);
}

char *text_identifier(const char *name)
{
	const char *last = text_qualified(name), *outer = last, *next;

	for (; (next = after_scope(last)) && *next; last = next)
		outer = last;
	if (*last == '{') /* "{closure#0}" alone is meaningless */
		last = outer;
	size_t size = bare_size(last);

	while (size && last[size - 1] == ' ')
		size--;
	return xstrndup(last, size);
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

static bool is_utf8_locale(void)
{
	locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	bool is_utf8 = locale && strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;

	if (locale)
		freelocale(locale);
	return is_utf8;
}

char *text_for_locale(char *s)
{
	struct text t = {0};
	const char *from = s, *found;

	if (!strstr(s, ELLIPSIS) || is_utf8_locale())
		return s;
	for (; (found = strstr(from, ELLIPSIS)); from = found + strlen(ELLIPSIS)) {
		add_bytes(&t, from, (size_t)(found - from));
		add_string(&t, "...");
	}
	add_string(&t, from);
	free(s);
	return t.data;
}

/* Takes ownership of @name. */
static char *drop_scopes(char *name, size_t max)
{
	const char *rest = name, *next;

	/* "…::{closure#0}" is meaningless */
	while (text_length(rest) + 3 > max && (next = after_scope(rest)) && *next != '{')
		rest = next;
	if (rest == name)
		return name;
	char *out = xasprintf(ELLIPSIS "::%s", rest);

	free(name);
	return out;
}

char *text_shorten(const char *name, size_t max)
{
	char *out = xstrdup(name);

	for (int step = 0; step < 4 && text_length(out) > max; step++) {
		char *last = out;

		if (step == 2) {
			out = drop_scopes(out, max);
			continue;
		}
		out = step == 0 ? collapse(last, '(', ')') :
		      step == 1 ? collapse(last, '<', '>') :
				  text_identifier(name);
		free(last);
	}
	char *fitting = text_cut(out, max);

	free(out);
	return fitting;
}

size_t text_site_location(const char *site)
{
	size_t size = strlen(site), start = size;

	if (size && site[size - 1] == ')')
		while (start && strncmp(site + start, " (", 2) != 0)
			start--;
	bool is_location = start && (!strncmp(site + start, " (in ", 5) ||
				     strchr(site + start, ':'));

	return is_location ? start : size;
}

char *text_shorten_site(const char *site, size_t max)
{
	size_t start = text_site_location(site), taken = text_length(site + start);
	_cleanup_free_ char *name = xstrndup(site, start);

	if (text_length(site) <= max)
		return xstrdup(site);
	bool is_line = taken && strncmp(site + start, " (in ", 5) != 0;

	if (is_line && taken + SITE_NAME_MIN > max && taken <= max + 3) /* without " (" and ")" */
		return xasprintf("%.*s", (int)strlen(site + start) - 3, site + start + 2);
	if (taken + SITE_NAME_MIN > max) /* no room for the location */
		return text_shorten(name, max);
	_cleanup_free_ char *shown = text_shorten(name, max - taken);

	return xasprintf("%s%s", shown, site + start);
}

char *text_site_label(const char *site)
{
	return text_for_locale(text_shorten_site(site, SITE_LABEL_MAX));
}

void csv_begin(FILE *out, const char *text)
{
	fputs(*text && strchr("=+-@", *text) ? "\"'" : "\"", out);
}

/* Doubles quotes (RFC 4180). See text.h. */

void csv_put_quoted(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
}

/*
 * Escaping for XML.
 */

void xml_put_text(FILE *out, const char *s)
{
	for (; *s; s++) {
		switch (*s) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			putc(*s, out);
		}
	}
}

/*
 * Markdown.
 */

void markdown_put_code(FILE *out, const char *text)
{
	size_t size = strlen(text);

	if (size && !strpbrk(text, "`|\\") && text[0] != ' ' && text[size - 1] != ' ') {
		fprintf(out, "`%s`", text);
		return;
	}
	fputs("<code>", out);
	for (; *text; text++) {
		if (strchr("`|\\<>&*_[]~$@#:!\"'", *text))
			fprintf(out, "&#%d;", *text);
		else
			putc(*text, out);
	}
	fputs("</code>", out);
}

void markdown_put_words(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("`|\\<>&*_[]~$@#!", *text))
			fprintf(out, "&#%d;", *text);
		else
			putc(*text, out);
	}
}
