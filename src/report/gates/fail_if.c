/* See fail_if.h. */
#include "report/gates/fail_if.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"

/* "@FUNCTION" or nothing, as far as @sign. NULL, or what is wrong. */
static const char *parse_function(const char *text, const char *sign, struct fail_if *f)
{
	if (*text != '@')
		return text == sign ? NULL : "there is one > in a condition without @FUNCTION";
	if (sign <= text + 1)
		return "after @ comes the name of a function, as in peak@parse>+5%";
	if (!limit_info[f->metric].has_paths)
		return "leaked and rss are of the whole program: they have no @FUNCTION";
	f->of.function = text + 1;
	f->of.function_size = (size_t)(sign - text - 1);
	return NULL;
}

const char *fail_if_parse(const char *text, struct fail_if *out)
{
	size_t name = strcspn(text, "@>");
	const char *sign = strrchr(text, '>'); /* names of templates have it, too */
	struct fail_if f = {.metric = limit_find_metric(text, name)};

	if (!sign || f.metric == LIMIT_METRICS || !limit_info[f.metric].is_compared)
		return "a condition is peak>+AMOUNT, live-at-end>+AMOUNT, allocated>+AMOUNT, "
		       "allocations>+AMOUNT, leaked>+AMOUNT or rss>+AMOUNT; @FUNCTION may follow "
		       "each of the first four names";
	const char *why = parse_function(text + name, sign, &f);
	const char *amount = sign + 1;

	if (why)
		return why;
	if (*amount++ != '+' || !isdigit((unsigned char)*amount))
		return "after > comes by how much more it is too much, as in peak>+5% or "
		       "peak>+1M";
	const char *end = amount_parse(amount, &f.amount);

	if (!end)
		return "the number has digits and one point at most, as in peak>+1.5G";
	bool is_number = limit_info[f.metric].unit == LIMIT_NUMBER;

	f.is_percent = *end == '%';
	end = f.is_percent ? end + 1 :
			     amount_parse_unit(end, is_number ? 1000 : 1024, &f.amount);
	if (*end)
		return "only %, K, M, G or T may follow the number";
	*out = f;
	return NULL;
}

char *fail_if_message(const struct fail_if *f, const struct gate_value *v)
{
	double old = v->max[PATH_OLD];
	double allowed = f->is_percent ? f->amount / 100 * old : f->amount;

	/* ten runs do not show the whole band: what they differ by may come on top */
	double noise = MAX(old - v->min[PATH_OLD], v->max[PATH_NEW] - v->min[PATH_NEW]);

	if (v->min[PATH_NEW] - old <= allowed + noise)
		return NULL;
	_cleanup_free_ char *was = gate_band(v->metric, v->min[PATH_OLD], old);
	_cleanup_free_ char *is = gate_band(v->metric, v->min[PATH_NEW], v->max[PATH_NEW]);

	return xasprintf("it was %s, and is %s", was, is);
}
