/* See fail_if.h. */
#include "report/gates/fail_if.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"

const char *fail_if_parse(const char *text, struct fail_if *out)
{
	size_t name = strcspn(text, ">");
	struct fail_if f = {.metric = limit_find_metric(text, name)};

	if (!text[name] || f.metric == LIMIT_METRICS || !limit_info[f.metric].is_compared)
		return "a condition is peak>+AMOUNT, live-at-end>+AMOUNT, allocated>+AMOUNT, "
		       "allocations>+AMOUNT, leaked>+AMOUNT or rss>+AMOUNT";
	const char *amount = &text[name + 1];

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
