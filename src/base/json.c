/* A JSON document is read by recursive descent (RFC 8259). See json.h. */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"

#define DEPTH_MAX 64u

struct parser {
	const char *at, *end;
	unsigned depth;
};

static bool parse_value(struct parser *p, struct json *out);

static void skip_blanks(struct parser *p)
{
	while (p->at < p->end && memchr(" \t\r\n", *p->at, 4))
		p->at++;
}

static bool take(struct parser *p, char c)
{
	skip_blanks(p);
	if (p->at == p->end || *p->at != c)
		return false;
	p->at++;
	return true;
}

static bool take_word(struct parser *p, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0)
		return false;
	p->at += n;
	return true;
}

/* -- texts -- */

static bool parse_hex(struct parser *p, unsigned *out)
{
	char digits[5] = "", *end;

	if (p->end - p->at < 4)
		return false;
	memcpy(digits, p->at, 4);
	p->at += 4;
	*out = (unsigned)strtoul(digits, &end, 16);
	return *end == '\0';
}

/* Encodes a character of the basic plane as UTF-8; half of a surrogate pair becomes '?'. */
static size_t put_code(unsigned code, char *to)
{
	if (code < 0x80) {
		*to = (char)code;
		return 1;
	}
	if (code < 0x800) {
		to[0] = (char)(0xc0 | code >> 6);
		to[1] = (char)(0x80 | (code & 63));
		return 2;
	}
	if (code >= 0xd800 && code < 0xe000) {
		*to = '?';
		return 1;
	}
	to[0] = (char)(0xe0 | code >> 12);
	to[1] = (char)(0x80 | (code >> 6 & 63));
	to[2] = (char)(0x80 | (code & 63));
	return 3;
}

static bool parse_escape(struct parser *p, char **to)
{
	static const char from[] = "\"\\/bfnrt", as[] = "\"\\/\b\f\n\r\t";
	unsigned code;

	if (p->at == p->end)
		return false;
	char c = *p->at++;
	const char *found = c ? strchr(from, c) : NULL;

	if (found) {
		*(*to)++ = as[found - from];
		return true;
	}
	if (c != 'u' || !parse_hex(p, &code) || code == 0)
		return false;
	*to += put_code(code, *to);
	return true;
}

/* A string is decoded in place: it never gets longer. */
static char *parse_text(struct parser *p)
{
	const char *end;

	if (!take(p, '"'))
		return NULL;
	for (end = p->at; end < p->end && *end != '"'; end++)
		end += *end == '\\' && end + 1 < p->end;
	char *text = xmalloc((size_t)(end - p->at) + 1), *to = text;
	bool is_good = true;

	while (p->at < end && is_good) {
		unsigned char c = (unsigned char)*p->at++;

		if (c == '\\') {
			is_good = parse_escape(p, &to);
		} else {
			is_good = c >= ' ';
			*to++ = (char)c;
		}
	}
	*to = '\0';
	if (is_good && p->at == end && take(p, '"'))
		return text;
	free(text);
	return NULL;
}

/* -- numbers, arrays, objects -- */

static bool parse_number(struct parser *p, struct json *out)
{
	char digits[40] = "", *end;
	size_t n = 0;

	while (p->at + n < p->end && n < sizeof(digits) - 1 &&
	       memchr("+-.0123456789eE", p->at[n], 15))
		n++;
	memcpy(digits, p->at, n);
	out->kind = JSON_NUMBER;
	out->number = strtod(digits, &end);
	p->at += n;
	return n > 0 && *end == '\0';
}

static bool parse_parts(struct parser *p, struct json *out, char close)
{
	p->at++;
	if (++p->depth > DEPTH_MAX)
		return false;
	out->kind = close == '}' ? JSON_OBJECT : JSON_ARRAY;
	if (take(p, close)) {
		p->depth--;
		return true;
	}
	do {
		out->part = xgrow(out->part, &out->capacity, out->count + 1, sizeof(*out->part));
		struct json *part = &out->part[out->count++];

		*part = (struct json){0};
		if (close == '}') {
			skip_blanks(p);
			part->name = parse_text(p);
		}
		if ((close == '}' && (!part->name || !take(p, ':'))) || !parse_value(p, part))
			return false;
	} while (take(p, ','));
	p->depth--;
	return take(p, close);
}

static bool parse_value(struct parser *p, struct json *out)
{
	skip_blanks(p);
	if (p->at == p->end)
		return false;
	switch (*p->at) {
	case '{':
		return parse_parts(p, out, '}');
	case '[':
		return parse_parts(p, out, ']');
	case '"':
		out->kind = JSON_TEXT;
		out->text = parse_text(p);
		return out->text;
	case 't':
	case 'f':
		out->kind = JSON_BOOL;
		out->number = *p->at == 't';
		return take_word(p, *p->at == 't' ? "true" : "false");
	case 'n':
		return take_word(p, "null");
	default:
		return parse_number(p, out);
	}
}

struct json *json_read(const char *text, size_t size)
{
	struct parser p = {.at = text, .end = text + size};
	struct json *j = xcalloc(1, sizeof(*j));

	if (parse_value(&p, j)) {
		skip_blanks(&p);
		if (p.at == p.end)
			return j;
	}
	json_free(j);
	return NULL;
}

static void free_parts(struct json *j)
{
	for (size_t i = 0; i < j->count; i++)
		free_parts(&j->part[i]);
	free(j->part);
	free(j->text);
	free(j->name);
}

void json_free(struct json *j)
{
	if (j)
		free_parts(j);
	free(j);
}

const struct json *json_member(const struct json *j, const char *name)
{
	for (size_t i = 0; j && j->kind == JSON_OBJECT && i < j->count; i++)
		if (strcmp(j->part[i].name, name) == 0)
			return &j->part[i];
	return NULL;
}

double json_number(const struct json *j, const char *name)
{
	const struct json *m = json_member(j, name);

	return m && m->kind <= JSON_NUMBER ? m->number : 0;
}

const char *json_text(const struct json *j, const char *name)
{
	const struct json *m = json_member(j, name);

	return m && m->kind == JSON_TEXT ? m->text : "";
}
