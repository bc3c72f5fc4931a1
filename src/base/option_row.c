/* See option_row.h: values of options, and their help. */
#include "base/option_row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/files.h"
#include "base/log.h"

#define LINE_SHOWN 200 /* bytes of a line that is wrong */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

/* Names such as f::{lambda(int)#1} have no space before the sign. */
static bool begins_comment(const char *line, const char *at)
{
	return *at == '#' && (at == line || at[-1] == ' ' || at[-1] == '\t');
}

/* What a line says, without a comment and the spaces around it; ends it there. */
static const char *text_of_line(char *line, bool is_first)
{
	bool has_mark = is_first && strncmp(line, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0;
	char *begin = line + (has_mark ? strlen(BYTE_ORDER_MARK) : 0), *end = begin;

	while (*end && !begins_comment(begin, end))
		end++;
	while (end > begin && strchr(" \t\r\n", end[-1]))
		end--;
	*end = '\0';
	return begin + strspn(begin, " \t");
}

int option_read_lines(const char *path, option_take_fn *take, void *ctx)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0, left = TEXT_FILE_MAX;
	ssize_t size;
	int rc = 0;

	if (!file) {
		log_error("cannot read %s: %s", path, strerror(errno));
		return -EIO;
	}
	for (unsigned i = 1; rc == 0; i++) {
		size = stream_read_line(file, &line, &capacity, &left);
		if (size < 0 || !left)
			break;
		bool is_whole = strlen(line) == (size_t)size;
		const char *text = text_of_line(line, i == 1);
		const char *why = !is_whole ? "the line has a zero byte" :
				  *text	    ? take(ctx, text) :
					      NULL;

		if (why)
			log_error("%s:%u: %.*s%s: %s", path, i, LINE_SHOWN, text,
				  strlen(text) > LINE_SHOWN ? "..." : "", why);
		rc = why ? -EINVAL : 0;
	}
	if (rc == 0 && !left) {
		log_error("%s is larger than %zu MiB: it is no such list", path,
			  TEXT_FILE_MAX >> 20);
		return -EFBIG;
	}
	if (rc == 0 && ferror(file)) {
		log_error("cannot read %s: %s", path, strerror(errno));
		return -EIO;
	}
	return rc;
}

const struct option_row *option_find(const struct option_table *t, const char *name, size_t length)
{
	for (size_t i = 0; i < t->count; i++) {
		const char *known = t->row[i].name;

		if (known && strlen(known) == length && strncmp(known, name, length) == 0)
			return &t->row[i];
	}
	return NULL;
}

const struct option_row *option_find_letter(const struct option_table *t, char letter)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->row[i].letter && t->row[i].letter == letter)
			return &t->row[i];
	return NULL;
}

bool option_is_optional(const struct option_row *row)
{
	return row->value && *row->value == '[';
}

/* -- values -- */

static bool in_range(const struct option_row *row, double value)
{
	return !row->has_range || (value >= row->min && value <= row->max);
}

/*
 * Spaces, a sign and digits, as for strtoll, and nothing after but the unit of a size; an empty
 * string is 0.
 */
static bool parse_integer(const struct option_row *row, const char *text, long long *out)
{
	char *end;

	if (row->flags & OPT_DIGITS && (!*text || text[strspn(text, "0123456789")]))
		return false;
	errno = 0;
	*out = strtoll(text, &end, 10);
	if (errno != 0 || (end == text && *text))
		return false;
	if (*end) {
		const char *unit = row->type == OPT_SIZE ? strchr("kKmMgG", *end) : NULL;
		int shift = !unit ? 0 : strchr("kK", *end) ? 10 : strchr("mM", *end) ? 20 : 30;

		if (!unit || end[1] || __builtin_mul_overflow(*out, 1ll << shift, out))
			return false;
	}
	bool is_power = *out > 0 && !(*out & (*out - 1));

	return in_range(row, (double)*out) && (is_power || !(row->flags & OPT_POWER));
}

static bool set_integer(const struct option_row *row, const char *text, void *field)
{
	long long number = (long long)row->absent;
	bool is_word = text && ((row->flags & OPT_OR_NO && strcmp(text, "no") == 0) ||
				(row->flags & OPT_OR_AUTO && strcmp(text, "auto") == 0));
	bool is_good = !text || is_word || parse_integer(row, text, &number);

	if (row->type == OPT_SIZE)
		*(uint64_t *)field = (uint64_t)number;
	else
		*(uint32_t *)field = (uint32_t)number;
	return is_good;
}

/*
 * Massif's decimals: spaces, a sign, digits with an optional point anywhere. No exponent, no
 * hexadecimal, no "inf", in any locale.
 */
static bool parse_decimal(const char *text, bool may_be_percent, double *out)
{
	const char *s = text + strspn(text, " \t");
	double sign = *s == '-' ? -1 : 1, value = 0, unit = 1;
	bool is_fraction = false;

	if (*s == '-' || *s == '+')
		s++;
	for (; *s; s++) {
		if (*s == '.' && !is_fraction) {
			is_fraction = true;
		} else if (*s == '%' && !s[1] && s > text && may_be_percent) {
			break;
		} else if (*s >= '0' && *s <= '9') {
			value = value * 10 + (*s - '0');
			unit *= is_fraction ? 10 : 1;
		} else {
			return false;
		}
	}
	*out = sign * value / unit;
	return true;
}

/* A decimal of seconds, or of the unit that follows. */
static bool parse_time(const char *text, double *out)
{
	static const char units[] = "smhd";
	static const double seconds[] = {1, 60, 3600, 86400};
	size_t n = strlen(text);
	const char *unit = n > 1 ? strchr(units, text[n - 1]) : NULL;
	_cleanup_free_ char *number = xstrndup(text, unit ? n - 1 : n);

	if (!number[strspn(number, " \t+-.")] || !parse_decimal(number, false, out))
		return false;
	*out *= unit ? seconds[unit - units] : 1;
	return true;
}

static bool set_decimal(const struct option_row *row, const char *text, double *field)
{
	*field = row->absent;
	if (!text)
		return true;
	bool is_good = row->type == OPT_TIME ?
			       parse_time(text, field) :
			       parse_decimal(text, row->flags & OPT_PERCENT, field);

	return is_good && in_range(row, *field);
}

static bool find_choice(const struct option_row *row, const char *text, size_t length,
			uint32_t *out)
{
	const char *name;

	for (uint32_t i = 0; (name = option_choice(row, i)); i++) {
		if (strlen(name) == length && strncmp(name, text, length) == 0) {
			*out = i;
			return true;
		}
	}
	return false;
}

static bool set_choices(const struct option_row *row, const char *text, uint32_t *field)
{
	uint32_t set = 0, bit;

	for (const char *s = text;; s++) {
		size_t n = strcspn(s, ",");

		if (!find_choice(row, s, n, &bit))
			return false;
		set |= 1u << bit;
		s += n;
		if (!*s)
			break;
	}
	*field = set;
	return true;
}

bool option_set(const struct option_row *row, const char *text, void *object)
{
	void *field = (char *)object + row->offset;

	if (text && !*text && row->flags & OPT_NOT_EMPTY)
		return false;
	switch (row->type) {
	case OPT_FLAG:
		*(bool *)field = true;
		return true;
	case OPT_YES_NO:
		*(bool *)field = *text == 'y';
		return strcmp(text, "yes") == 0 || strcmp(text, "no") == 0;
	case OPT_NUMBER:
	case OPT_SIZE:
		return set_integer(row, text, field);
	case OPT_DECIMAL:
	case OPT_TIME:
		return set_decimal(row, text, field);
	case OPT_CHOICE:
		return find_choice(row, text, strlen(text), field);
	case OPT_SET:
		return set_choices(row, text, field);
	case OPT_TEXT:
		*(const char **)field = text ? text : "";
		return true;
	case OPT_TEXTS:
		*vec_add((struct option_strings *)field) = text;
		return true;
	case OPT_PARSED:
		return row->parse(text, field);
	default:
		CHECK(!"an option of this type");
		return false;
	}
}

void option_set_initial(const struct option_table *t, void *object)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->row[i].initial)
			CHECK(option_set(&t->row[i], t->row[i].initial, object));
}

/* -- what is said about them -- */

static void print_choices(FILE *f, const struct option_row *row, const char *before_last)
{
	const char *name;

	for (size_t i = 0; (name = option_choice(row, i)); i++)
		fprintf(f, "%s%s",
			i == 0 ? "" : option_choice(row, i + 1) ? ", " : before_last, name);
}

/* In seconds, or in days if these are whole. */
static void print_times(FILE *f, const struct option_row *row)
{
	long long most = (long long)row->max;

	if (most % 86400)
		fprintf(f, " from %.16gs to %llds", row->min, most);
	else
		fprintf(f, " from %.16gs to %lldd", row->min, most / 86400);
}

static void print_kind(FILE *f, const struct option_row *row)
{
	const char *number = row->flags & OPT_POWER ? "power of two" : "whole number";

	switch (row->type) {
	case OPT_NUMBER:
		fprintf(f, "%sa %s", row->flags & OPT_OR_NO ? "no or " : "", number);
		break;
	case OPT_SIZE:
		fprintf(f, "%sa %s (K, M or G may follow)",
			row->flags & OPT_OR_AUTO ? "auto or " : "", number);
		break;
	case OPT_DECIMAL:
		fputs("a decimal number", f);
		break;
	case OPT_TIME:
		fputs("a number of seconds (s, m, h or d may follow)", f);
		print_times(f, row);
		return;
	case OPT_CHOICE:
		print_choices(f, row, " or ");
		break;
	case OPT_SET:
		fputs("one or more, with commas between, of ", f);
		print_choices(f, row, " or ");
		break;
	case OPT_YES_NO:
		fputs("yes or no", f);
		break;
	default:
		fputs("a name", f);
	}
	if (row->has_range)
		fprintf(f, " from %.16g to %.16g", row->min, row->max);
}

char *option_takes(const struct option_row *row)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	CHECK(f);
	if (row->takes)
		fputs(row->takes, f);
	else
		print_kind(f, row);
	CHECK(!fclose(f));
	return text;
}

void option_print(FILE *file, const struct option_row *row, const struct option_layout *layout)
{
	const char letter[3] = {'-', row->letter};
	const char *equals = !row->value || option_is_optional(row) ? "" : "=";
	int n = fprintf(file, "%s%s%s--%s%s%s", layout->indent, row->letter ? letter : "",
			row->letter ? layout->after_letter : layout->no_letter, row->name, equals,
			row->value ? row->value : "");

	if (n >= layout->column && layout->breaks) {
		fputc('\n', file);
		n = 0;
	}
	for (const char *s = row->text; *s; n = 0) {
		int length = (int)strcspn(s, "\n");

		fprintf(file, "%*s", n < layout->column ? layout->column - n : 1, "");
		if (s == row->text && row->flags & OPT_LISTED)
			print_choices(file, row, ", ");
		fprintf(file, "%.*s", length, s);
		s += length;
		if (*s) {
			fputc('\n', file);
			s++;
		}
	}
	if (row->initial)
		fprintf(file, " [%s]", row->initial);
	fputc('\n', file);
}

void option_print_all(FILE *file, const struct option_table *t, const struct option_layout *layout)
{
	for (size_t i = 0; i < t->count; i++) {
		if (t->row[i].name)
			option_print(file, &t->row[i], layout);
		else
			fprintf(file, t->row[i].text ? "\n%s\n" : "%s\n",
				t->row[i].text ? t->row[i].text : "");
	}
}
