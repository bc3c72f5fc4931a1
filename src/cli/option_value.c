/* Parses the value of an option into its field, and checks its range. */
#include "cli/option_value.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "cli/option_table.h"

#define SAMPLE_MS 100 /* --sample without a number */

static void *field_of(const struct option_row *row, struct options *o)
{
	return (char *)o + row->offset;
}

static int refuse(const struct option_parser *p, const struct option_row *row, const char *arg,
		  const char *value)
{
	_cleanup_free_ char *takes = option_takes(row);
	/* the next word */
	bool is_apart = value && !strchr(arg, '=') && (arg[1] == '-' || !arg[2]);
	log_error("%sbad option '%s%s%s': --%s takes %s", p->source, arg, is_apart ? " " : "",
		  is_apart ? value : "", row->name, takes);
	return -EINVAL;
}

static bool in_range(const struct option_row *row, double value)
{
	return !row->has_range || (value >= row->min && value <= row->max);
}

/* Spaces, a sign and digits, as for strtoll, and nothing after; an empty string is 0. */
static bool parse_integer(const char *text, const char *ends, long long *out, const char **end_out)
{
	char *end;
	errno = 0;
	*out = strtoll(text, &end, 10);
	*end_out = end;
	return errno == 0 && (end > text || !*text) && (!*end || strchr(ends, *end));
}

static bool parse_number(const struct option_row *row, const char *text, long long *out)
{
	const char *end;
	if (!parse_integer(text, row->type == SIZE ? "kKmMgG" : "", out, &end))
		return false;
	if (*end) {
		int shift = strchr("kK", *end) ? 10 : strchr("mM", *end) ? 20 : 30;
		if (end == text || end[1] || __builtin_mul_overflow(*out, 1ll << shift, out))
			return false;
	}
	bool is_power = *out > 0 && !(*out & (*out - 1));
	return in_range(row, (double)*out) && (is_power || !(row->flags & POWER));
}

/*
 * Massif's decimals: spaces, a sign, digits with an optional point anywhere. No exponent, no
 * hexadecimal, no "inf", in any locale.
 */
static bool parse_decimal(const struct option_row *row, const char *text, double *out)
{
	const char *s = text + strspn(text, " \t");
	double sign = *s == '-' ? -1 : 1, value = 0, unit = 1;
	bool is_fraction = false;
	if (*s == '-' || *s == '+')
		s++;
	for (; *s; s++) {
		if (*s == '.' && !is_fraction) {
			is_fraction = true;
		} else if (*s == '%' && !s[1] && s > text && row->flags & PERCENT) {
			break;
		} else if (*s >= '0' && *s <= '9') {
			value = value * 10 + (*s - '0');
			unit *= is_fraction ? 10 : 1;
		} else {
			return false;
		}
	}
	*out = sign * value / unit;
	return in_range(row, *out);
}

/* A decimal of seconds, or of the unit that follows. */
static bool parse_time(const struct option_row *row, const char *text, double *out)
{
	static const char units[] = "smhd";
	static const double seconds[] = {1, 60, 3600, 86400};
	const struct option_row any = {.has_range = false};
	size_t n = strlen(text);
	const char *unit = n > 1 ? strchr(units, text[n - 1]) : NULL;
	_cleanup_free_ char *number = xstrndup(text, unit ? n - 1 : n);

	if (!number[strspn(number, " \t+-.")] || !parse_decimal(&any, number, out))
		return false;
	*out *= unit ? seconds[unit - units] : 1;
	return in_range(row, *out);
}

static bool has_pid(const struct options *o, long long pid)
{
	for (uint32_t i = 0; i < o->attach.pid_count; i++)
		if (o->attach.pid[i] == pid)
			return true;
	return false;
}

/* Process ids separated by commas or spaces, as "12,34" or the output of pidof. */
static int parse_pids(const struct option_parser *p, const struct option_row *row, const char *arg,
		      const char *text)
{
	struct options *o = p->o;
	uint32_t found = 0;
	for (const char *s = text; *s;) {
		long long pid;
		s += strspn(s, ", \t\n");
		if (!*s)
			break;
		const char *end;
		if (!parse_integer(s, ", \t\n", &pid, &end) || !in_range(row, (double)pid))
			return refuse(p, row, arg, text);
		s = end;
		found++;
		if (has_pid(o, pid))
			continue;
		if (o->attach.pid_count == OPTIONS_MAX_PIDS) {
			log_error("%sbad option '%s': --pid takes no more than %d processes",
				  p->source, arg, OPTIONS_MAX_PIDS);
			return -EINVAL;
		}
		o->attach.pid[o->attach.pid_count++] = (pid_t)pid;
	}
	return found ? 0 : refuse(p, row, arg, text);
}

static bool parse_choice(const struct option_row *row, const char *text, uint32_t *out)
{
	for (uint32_t i = 0; row->choices[i]; i++) {
		if (strcmp(row->choices[i], text) == 0) {
			*out = i;
			return true;
		}
	}
	return false;
}

static bool parse_set(const struct option_row *row, const char *text, uint32_t *out)
{
	uint32_t set = 0, bit;
	for (const char *s = text;; s++) {
		char word[32];
		size_t n = strcspn(s, ",");
		snprintf(word, sizeof(word), "%.*s", (int)n, s);
		if (!parse_choice(row, word, &bit))
			return false;
		set |= 1u << bit;
		s += n;
		if (!*s)
			break;
	}
	*out = set;
	return true;
}

static bool parse_yes_no(const char *text, bool *out)
{
	*out = *text == 'y';
	return strcmp(text, "yes") == 0 || strcmp(text, "no") == 0;
}

static bool parse_help(const char *text, enum help_mode *out)
{
	*out = text ? HELP_ALL : HELP_EVERYDAY;
	return !text || strcmp(text, "all") == 0;
}

static bool add_text(const struct option_row *row, const char *text, struct option_strings *out)
{
	*vec_add(out) = text;
	return *text || !(row->flags & NOT_EMPTY);
}

static bool add_pattern(const struct option_row *row, const char *text, struct my_code *out)
{
	bool is_not = strncmp(row->name, "not-", 4) == 0;
	_cleanup_free_ char *rule = xasprintf("%c%s", is_not ? '-' : '+', text);

	my_code_add(out, rule);
	return *text;
}

static bool set_text(const struct option_row *row, const char *text, const char **out)
{
	*out = text ? text : "";
	return !text || *text || !(row->flags & NOT_EMPTY);
}

static bool set_number(const struct option_row *row, const char *text, void *field)
{
	long long number = 0;
	bool is_good = parse_number(row, text, &number);

	if (row->type == SIZE)
		*(uint64_t *)field = (uint64_t)number;
	else
		*(uint32_t *)field = (uint32_t)number;
	return is_good;
}

int option_value_set(const struct option_parser *p, const struct option_row *row, const char *arg,
		     const char *text)
{
	void *field = field_of(row, p->o);
	long long number = 0;
	bool is_good = true;
	switch (row->type) {
	case FLAG:
		*(bool *)field = true;
		break;
	case MORE:
		p->o->messages.level = p->o->messages.level < LOG_VERBOSE ? LOG_VERBOSE : LOG_DEBUG;
		break;
	case LESS:
		p->o->messages.level = LOG_WARN;
		break;
	case YES_NO:
		is_good = parse_yes_no(text, field);
		break;
	case NUMBER:
	case SIZE:
		is_good = set_number(row, text, field);
		break;
	case SAMPLE:
		is_good = !text || parse_number(row, text, &number);
		*(uint32_t *)field = text ? (uint32_t)number : SAMPLE_MS;
		break;
	case PERIOD:
		is_good = strcmp(text, "no") == 0 || (*text && parse_number(row, text, &number));
		*(uint32_t *)field = (uint32_t)number;
		break;
	case DECIMAL:
	case TIME:
		is_good = (row->type == TIME ? parse_time : parse_decimal)(row, text, field);
		break;
	case SECONDS:
		*(double *)field = OPTION_ALL;
		is_good = !text || (*text && parse_decimal(row, text, field));
		break;
	case CHOICE:
		is_good = parse_choice(row, text, field);
		break;
	case SET:
		is_good = parse_set(row, text, field);
		break;
	case TEXT:
	case MAY_TEXT:
		is_good = set_text(row, text, field);
		break;
	case TEXTS:
		is_good = add_text(row, text, field);
		break;
	case PATTERNS:
		is_good = add_pattern(row, text, field);
		break;
	case HELP:
		is_good = parse_help(text, field);
		break;
	case PIDS:
		return parse_pids(p, row, arg, text);
	}
	return is_good ? 0 : refuse(p, row, arg, text);
}
