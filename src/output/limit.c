/* See limit.h. */
#include "output/limit.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/text.h"

const struct limit_info limit_info[LIMIT_METRICS] = {
	[LIMIT_ALLOCATIONS] = {"allocations", LIMIT_NUMBER, true, true, true, true},
	[LIMIT_PEAK] = {"peak", LIMIT_BYTES, true, true, true, true},
	[LIMIT_LIVE] = {"live-at-end", LIMIT_BYTES, true, true, true, true},
	[LIMIT_ALLOCATED] = {"allocated", LIMIT_BYTES, true, true, true, true},
	[LIMIT_TEMPORARY] = {"temporary", LIMIT_PERCENT, .of_calls = true},
	[LIMIT_LEAKED] = {"leaked", LIMIT_BYTES, .is_compared = true},
	[LIMIT_RSS] = {"rss", LIMIT_BYTES, .is_compared = true},
};

enum limit_metric limit_find_metric(const char *name, size_t size)
{
	enum limit_metric m = 0;

	while (m < LIMIT_METRICS && (strlen(limit_info[m].name) != size ||
				     strncmp(limit_info[m].name, name, size) != 0))
		m++;
	return m;
}

static const char *parse_amount(const char *text, struct limit *l)
{
	enum limit_unit unit = limit_info[l->metric].unit;

	if (!isdigit((unsigned char)*text))
		return "after < comes a number, as in peak<100M";
	const char *end = amount_parse(text, &l->amount);

	if (!end)
		return "the number has digits and one point at most, as in peak<1.5G";
	if (unit == LIMIT_PERCENT)
		return strcmp(end, "%") != 0 ? "temporary is in percent, as in temporary<50%" :
		       l->amount > 100	     ? "there are no more than 100%" :
					       NULL;
	end = amount_parse_unit(end, unit == LIMIT_BYTES ? 1024 : 1000, &l->amount);
	return *end ? "only K, M, G or T may follow the number" : NULL;
}

#define WITHIN " within "
#define BETWEEN " between "
#define AND " and "

/* Of what, as far as the sign at @sign: NULL and *l, or what is wrong. */
static const char *parse_subject(const char *text, const char *sign, struct limit *l)
{
	size_t name = strcspn(text, "@<");

	if (text[name] == '@') {
		l->function = &text[name + 1];
		if (sign <= l->function)
			return "after @ comes the name of a function, as in peak@parse<10M";
		l->function_size = (size_t)(sign - l->function);
		if (!limit_info[l->metric].has_paths)
			return "temporary, leaked and rss are of the whole program: they have no "
			       "@FUNCTION";
	} else if (sign != &text[name]) {
		return "there is one < in a limit without @FUNCTION";
	}
	if (l->within && (!limit_info[l->metric].of_calls || l->function))
		return "leaked, rss and limits with @FUNCTION are of the whole program: they are "
		       "not measured within calls";
	if (l->until && !limit_info[l->metric].of_sections)
		return "temporary is of one thread: it is measured within calls, not between "
		       "functions";
	return NULL;
}

/* The part of the run that follows the amount at *@amount_end: NULL, or what is wrong. */
static const char *parse_part(const char *text, struct limit *l, size_t *amount_end)
{
	static const char one[] = "after within comes the name of a function, as in peak<10M "
				  "within parse";
	static const char two[] = "after between come two functions, as in peak<10M between load "
				  "and serve";
	const char *within = strstr(text, WITHIN), *between = strstr(text, BETWEEN);

	*amount_end = within ? (size_t)(within - text) : strlen(text);
	if (text_ends_in(text, " within"))
		return one;
	if (within) {
		l->within = within + strlen(WITHIN);
		l->within_size = strlen(l->within);
		return *l->within ? NULL : one;
	}
	if (!between)
		return text_ends_in(text, " between") ? two : NULL;
	*amount_end = (size_t)(between - text);
	l->within = between + strlen(BETWEEN);
	const char *and = strstr(l->within, AND);

	l->within_size = and ? (size_t)(and - l->within) : 0;
	l->until = and ? and + strlen(AND) : NULL;
	return l->within_size && *l->until ? NULL : two;
}

const char *limit_parse(const char *text, struct limit *out)
{
	struct limit l = {.text = text, .metric = limit_find_metric(text, strcspn(text, "@<"))};
	size_t size;
	const char *why = parse_part(text, &l, &size);
	const char *sign = memrchr(text, '<', size); /* names of templates have it, too */

	if (!sign || l.metric == LIMIT_METRICS)
		return "a limit is peak<SIZE, live-at-end<SIZE, allocated<SIZE, "
		       "allocations<NUMBER, temporary<PERCENT%, leaked<SIZE or rss<SIZE; @FUNCTION "
		       "may follow each of the first four names";
	why = why ?: parse_subject(text, sign, &l);
	if (why)
		return why;
	l.may_equal = sign[1] == '=';
	const char *amount = &sign[1 + l.may_equal];
	_cleanup_free_ char *number = xstrndup(amount, size - (size_t)(amount - text));

	why = parse_amount(number, &l);
	if (!why)
		*out = l;
	return why;
}

bool limit_is_exceeded(const struct limit *l, double value)
{
	return l->may_equal ? value > l->amount : value >= l->amount;
}

bool limit_is_of(const struct limit *l, const char *name)
{
	return text_is_function(name, l->function, l->function_size);
}

char *limit_amount(enum limit_metric metric, double value)
{
	char text[AMOUNT_SIZE];

	switch (limit_info[metric].unit) {
	case LIMIT_PERCENT:
		return xasprintf("%.1f %%", value);
	case LIMIT_NUMBER:
		return xstrdup(amount_commas((uint64_t)value, text));
	default:
		return amount_exact(value);
	}
}
