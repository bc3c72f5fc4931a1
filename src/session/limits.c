/* See limits.h. */
#include "session/limits.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/option_row.h"
#include "base/text.h"
#include "output/call_sites.h"
#include "output/report_tree.h"
#include "profile/history.h"
#include "session/options.h"
#include "session/run.h"
#include "session/session.h"
#include "session/summary.h"

enum limit_unit { UNIT_BYTES, UNIT_NUMBER, UNIT_PERCENT };

static const struct {
	const char *name;
	enum limit_unit unit;
	bool has_paths;
	enum profile_quantity paths; /* the values of call paths, if has_paths */
} metrics[LIMIT_METRICS] = {
	[LIMIT_PEAK] = {"peak", UNIT_BYTES, true, PATHS_PEAK},
	[LIMIT_LIVE] = {"live-at-end", UNIT_BYTES, true, PATHS_LIVE},
	[LIMIT_ALLOCATED] = {"allocated", UNIT_BYTES, true, PATHS_TOTAL},
	[LIMIT_ALLOCATIONS] = {"allocations", UNIT_NUMBER, true, PATHS_COUNT},
	[LIMIT_TEMPORARY] = {.name = "temporary", .unit = UNIT_PERCENT},
	[LIMIT_LEAKED] = {.name = "leaked", .unit = UNIT_BYTES},
};

/* -- the text -- */

static const char *parse_amount(const char *text, struct limit *l)
{
	enum limit_unit unit = metrics[l->metric].unit;

	if (!isdigit((unsigned char)*text))
		return "after < comes a number, as in peak<100M";
	const char *end = amount_parse(text, &l->amount);

	if (!end)
		return "the number has digits and one point at most, as in peak<1.5G";
	if (unit == UNIT_PERCENT)
		return strcmp(end, "%") != 0 ? "temporary is in percent, as in temporary<50%" :
		       l->amount > 100	     ? "there are no more than 100%" :
					       NULL;
	end = amount_parse_unit(end, unit == UNIT_BYTES ? 1024 : 1000, &l->amount);
	return *end ? "only K, M, G or T may follow the number" : NULL;
}

const char *limit_parse(const char *text, struct limit *out)
{
	struct limit l = {.text = text};
	size_t name = strcspn(text, "@<");
	const char *sign = strrchr(text, '<'); /* names of templates have this character, too */

	while (l.metric < LIMIT_METRICS && (strlen(metrics[l.metric].name) != name ||
					    strncmp(metrics[l.metric].name, text, name) != 0))
		l.metric++;
	if (!sign || l.metric == LIMIT_METRICS)
		return "a limit is peak<SIZE, live-at-end<SIZE, allocated<SIZE, "
		       "allocations<NUMBER, temporary<PERCENT% or leaked<SIZE; @FUNCTION may "
		       "follow each of the first four names";
	if (text[name] == '@') {
		l.function = &text[name + 1];
		if (sign <= l.function)
			return "after @ comes the name of a function, as in peak@parse<10M";
		l.function_size = (size_t)(sign - l.function);
		if (!metrics[l.metric].has_paths)
			return "temporary and leaked are of the whole program: they have no "
			       "@FUNCTION";
	} else if (sign != &text[name]) {
		return "there is one < in a limit without @FUNCTION";
	}
	l.may_equal = sign[1] == '=';
	const char *why = parse_amount(&sign[1 + l.may_equal], &l);

	if (!why)
		*out = l;
	return why;
}

/* -- the values -- */

static bool is_exceeded(const struct limit *l, double value)
{
	return l->may_equal ? value > l->amount : value >= l->amount;
}

/* Whether a frame's name, "ns::parse(int)", is that of the limit: with or without parameters. */
static bool is_named(const struct limit *l, const char *name)
{
	return strncmp(name, l->function, l->function_size) == 0 &&
	       (!name[l->function_size] || name[l->function_size] == '(');
}

/* The sum of all paths with the limit's function; *@found: whether there are any. */
static uint64_t value_of_function(const struct report *r, const struct limit *l, bool *found)
{
	struct path_tree *t = path_tree_new();
	uint64_t sum = 0;

	*found = false;
	if (profile_paths_add(t, r, metrics[l->metric].paths) == 0) {
		uint32_t count = path_tree_node_count(t);
		_cleanup_free_ bool *inside = xcalloc(count, sizeof(*inside));

		for (uint32_t i = 1; i < count; i++) { /* parents come first */
			const struct path_node *n = path_tree_node(t, i);

			inside[i] = inside[n->parent] || is_named(l, n->name);
			*found |= inside[i];
			sum += inside[i] ? n->own[PATH_NEW] : 0;
		}
	}
	path_tree_free(t);
	return sum;
}

static double temporary_percent(const struct profile *p)
{
	const struct history *h = profile_whole_history(p);
	uint64_t temporary = 0, all = profile_totals(p)->allocations;

	for (size_t i = 1; h && i < h->leaf.count; i++)
		temporary += h->leaf.data[i].temporary;
	return all ? 100.0 * (double)temporary / (double)all : 0;
}

static double value_of_program(const struct profile *p, enum limit_metric metric)
{
	const struct profile_totals *t = profile_totals(p);

	switch (metric) {
	case LIMIT_PEAK:
		return (double)t->peak_bytes;
	case LIMIT_LIVE:
		return (double)t->live_bytes;
	case LIMIT_ALLOCATED:
		return (double)t->allocated_bytes;
	case LIMIT_ALLOCATIONS:
		return (double)profile_count(p, t->allocations);
	default:
		return temporary_percent(p);
	}
}

/* -- messages -- */

static char *amount_text(enum limit_unit unit, double value)
{
	char text[AMOUNT_SIZE];

	if (unit == UNIT_PERCENT)
		return xasprintf("%.1f %%", value);
	return unit == UNIT_NUMBER ? xstrdup(amount_commas((uint64_t)value, text)) :
				     amount_exact(value);
}

static uint64_t leaf_amount(const struct profile *p, uint32_t leaf, enum limit_metric metric)
{
	const struct leaf *l = profile_leaf(p, leaf);
	const struct history *h = profile_whole_history(p);

	switch (metric) {
	case LIMIT_LIVE:
		return l->live_bytes;
	case LIMIT_ALLOCATED:
		return l->total_bytes;
	case LIMIT_TEMPORARY:
		return h && leaf < h->leaf.count ? profile_count(p, h->leaf.data[leaf].temporary) :
						   0;
	default:
		return profile_count(p, l->calls);
	}
}

static void print_site(const struct call_site_sum *site, enum limit_unit unit)
{
	_cleanup_free_ char *amount = amount_text(unit, (double)site->bytes);
	_cleanup_free_ char *label = text_site_label(site->text);

	log_error("  %s: %s", label, amount);
}

static void print_sites(const struct report *r, enum limit_metric metric)
{
	enum limit_unit unit = metrics[metric].unit == UNIT_BYTES ? UNIT_BYTES : UNIT_NUMBER;
	struct leaf_amounts amounts = {.count = profile_leaf_count(r->profile)};
	struct call_site_sum site[LARGEST_SITES];

	amounts.bytes = xcalloc((size_t)amounts.count + 1, sizeof(*amounts.bytes));
	for (uint32_t i = 1; i <= amounts.count; i++)
		amounts.bytes[i] = leaf_amount(r->profile, i, metric);
	size_t count = call_sites_largest(r, &amounts, site, LARGEST_SITES);

	for (size_t i = 0; i < count; i++) {
		print_site(&site[i], unit);
		free(site[i].text);
	}
	free(amounts.bytes);
}

static void print_peak_sites(const struct report *r)
{
	struct largest largest;

	largest_find(r, &largest);
	for (size_t i = 0; i < largest.count; i++)
		print_site(&largest.site[i], UNIT_BYTES);
	largest_deinit(&largest);
}

static void check_one(struct session *s, const struct report *r, const struct limit *l)
{
	enum limit_unit unit = metrics[l->metric].unit;
	bool has_function = true;
	double value = l->function ? (double)value_of_function(r, l, &has_function) :
				     value_of_program(r->profile, l->metric);

	if (!has_function)
		log_warn("process %u: --limit=%s: no call path has this function", s->process.pid,
			 l->text);
	if (!is_exceeded(l, value))
		return;
	_cleanup_free_ char *amount = amount_text(unit, value);
	_cleanup_free_ char *title = session_title(s);

	s->run->limits_exceeded++;
	log_error("limit exceeded: %s: it is %s%s in process %u, %s", l->text, amount,
		  profile_options(r->profile)->sample_interval ? ", an estimate," : "",
		  s->process.pid, title);
	if (l->function)
		return; /* which is at fault */
	if (l->metric == LIMIT_PEAK)
		print_peak_sites(r);
	else
		print_sites(r, l->metric);
}

/* -- a run -- */

/* Adds a limit to those of @ctx, a run. Why @text cannot be one; NULL: it is. */
static const char *add_limit(void *ctx, const char *text)
{
	struct run *r = ctx;
	const struct options *o = r->options;
	struct limit l;
	const char *why = limit_parse(text, &l);

	if (why)
		return why;
	if (l.metric == LIMIT_LEAKED && !o->leaks.check)
		return "leaks are found by --leak-check, which is needed, too";
	if (l.metric == LIMIT_TEMPORARY && o->profile.pages_as_heap)
		return "pages are never temporary: --pages-as-heap cannot be used with it";
	limit_parse(xstrdup(text), vec_add(&r->limits));
	r->counts_temporary |= l.metric == LIMIT_TEMPORARY; /* only a history knows */
	return NULL;
}

int limits_open(struct run *r)
{
	const struct options *o = r->options;

	for (size_t i = 0; i < o->limits.count; i++) {
		const char *why = add_limit(r, o->limits.data[i]);

		if (why) {
			log_error("--limit=%s: %s", o->limits.data[i], why);
			return -EINVAL;
		}
	}
	return o->files.limits ? option_read_lines(o->files.limits, add_limit, r) : 0;
}

void limits_close(struct run *r)
{
	for (size_t i = 0; i < r->limits.count; i++)
		free((char *)r->limits.data[i].text);
	vec_deinit(&r->limits);
}

void limits_check(struct session *s)
{
	const struct run *run = s->run;

	if (!run->limits.count)
		return;
	const struct report r = session_report(s);

	for (size_t i = 0; i < run->limits.count; i++)
		if (run->limits.data[i].metric != LIMIT_LEAKED)
			check_one(s, &r, &run->limits.data[i]);
}

void limits_check_leaks(struct run *r)
{
	for (size_t i = 0; i < r->limits.count; i++) {
		const struct limit *l = &r->limits.data[i];

		if (l->metric != LIMIT_LEAKED || !is_exceeded(l, (double)r->definite_bytes))
			continue;
		_cleanup_free_ char *amount = amount_exact((double)r->definite_bytes);

		r->limits_exceeded++;
		log_error("limit exceeded: %s: %s definitely lost", l->text, amount);
	}
}
