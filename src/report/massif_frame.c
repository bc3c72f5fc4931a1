/*
 * Parses one line of a massif tree (doc/massif.md section 1.3). Function names are free text with
 * spaces and parentheses, so the location is searched from the end: the closing parenthesis at the
 * end of the line and the matching opening one, if the text in between looks like a location.
 */
#include "report/massif_frame.h"

#include <string.h>

static bool take_prefix(struct massif_text *t, const char *prefix)
{
	size_t n = strlen(prefix);

	if (t->size < n || memcmp(t->at, prefix, n))
		return false;
	t->at += n;
	t->size -= n;
	return true;
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Removes a number in @base from the start; false if there is none or it exceeds 64 bits. */
static bool take_number(struct massif_text *t, unsigned base, uint64_t *out)
{
	uint64_t value = 0;
	size_t n = 0;

	for (; n < t->size; n++) {
		int digit = digit_value(t->at[n]);

		if (digit < 0 || (unsigned)digit >= base)
			break;
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return false;
	}
	if (!n)
		return false;
	t->at += n;
	t->size -= n;
	*out = value;
	return true;
}

/* Splits "FILE:LINE". */
static bool split_source(struct massif_text t, struct massif_frame *out)
{
	const char *colon = memrchr(t.at, ':', t.size);

	if (!colon || colon == t.at)
		return false;
	struct massif_text number = {colon + 1, t.size - (size_t)(colon + 1 - t.at)};
	uint64_t line;

	if (!take_number(&number, 10, &line) || number.size)
		return false;
	out->file = (struct massif_text){t.at, (size_t)(colon - t.at)};
	out->line_number = line;
	return true;
}

/* The parenthesis that matches the one at the end of @t; t.size if there is none. */
static size_t find_opening(struct massif_text t)
{
	size_t depth = 0;

	for (size_t i = t.size; i-- > 0;) {
		if (t.at[i] == ')')
			depth++;
		else if (t.at[i] == '(' && --depth == 0)
			return i;
	}
	return t.size;
}

/*
 * Removes "(LOCATION)", which begins at @open, from the end of @t; false if it is not a
 * location.
 */
static bool take_location(struct massif_text t, size_t open, struct massif_frame *out)
{
	if (open + 2 > t.size || t.at[open] != '(' || (open && t.at[open - 1] != ' '))
		return false;
	struct massif_text inside = {t.at + open + 1, t.size - open - 2};
	struct massif_text object = inside;

	if (take_prefix(&object, "in "))
		out->object = object;
	else if (!split_source(inside, out))
		return false;
	out->location = inside;
	out->function.size = open ? open - 1 : 0;
	return true;
}

/*
 * Splits off the location at the end of @t, if there is one, from the name before it. Unbalanced
 * parentheses in a path hide its start: then the last plausible place is used.
 */
static void split_location(struct massif_text t, struct massif_frame *out)
{
	out->function = t;
	if (!t.size || t.at[t.size - 1] != ')' || take_location(t, find_opening(t), out))
		return;
	for (size_t open = t.size; open-- > 0;)
		if (take_location(t, open, out))
			return;
}

void massif_file_frame(const struct massif_node *node, struct massif_frame *out)
{
	struct massif_text t = node->text;
	uint64_t number;

	while (take_prefix(&t, " "))
		;
	*out = (struct massif_frame){.line = MASSIF_LINE_ROOT, .function = t};
	struct massif_text rest = t;

	if (take_prefix(&rest, "in ") && take_number(&rest, 10, &number) &&
	    take_prefix(&rest, " place")) {
		out->line = MASSIF_LINE_AGGREGATE;
		out->places = number;
		return;
	}
	rest = t;
	if (take_prefix(&rest, "0x") && take_number(&rest, 16, &number) &&
	    take_prefix(&rest, ": ")) {
		out->line = MASSIF_LINE_FRAME;
		out->address = number;
		split_location(rest, out);
		if (!out->function.size)
			out->function = (struct massif_text){"???", 3};
	}
}
