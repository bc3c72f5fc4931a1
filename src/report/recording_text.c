#include "report/recording_output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/heap_calls.h"
#include "base/log.h"
#include "base/text.h"
#include "output/brief.h"
#include "profile/estimate.h"
#include "recording/recording_json.h"
#include "recording/recording_site.h"
#include "recording/recording_view.h"
#include "report/recording_paths.h"

/* The standard error of @value: "" if it is exact. */
static const char *recording_error_text(const struct recording *r,
					const struct recording_value *value,
					char out[static AMOUNT_SIZE])
{
	return amount_error((double)value->bytes, recording_error(r, value->variance), out);
}

/*
 * "1,234 bytes in 56 blocks", or "1.2 MiB +- 10 % in about 56 blocks", where @unit is "block"; the
 * caller frees it.
 */
static char *recording_value_text(const struct recording *r, const struct recording_value *value,
				  const char *unit)
{
	char bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE], error[AMOUNT_SIZE];
	uint64_t count = recording_count(r, value->blocks);

	amount_commas(count, blocks);
	if (r->interval)
		return xasprintf("%s%s in about %s %s%s",
				 amount_bytes((double)value->bytes, bytes),
				 recording_error_text(r, value, error), blocks, unit,
				 plural(count));
	return xasprintf("%s byte%s in %s %s%s", amount_commas(value->bytes, bytes),
			 plural(value->bytes), blocks, unit, plural(count));
}

static void put_fact(FILE *out, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	_cleanup_free_ char *clean = text_clean(value, strlen(value));

	fprintf(out, "%-12s %s\n", name, clean);
}

static void put_peak(FILE *out, const struct recording *r)
{
	char human[AMOUNT_SIZE], bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE];

	if (!recording_rows(r, RECORDING_PEAK_AT))
		return;
	const struct recording_value peak = {
		recording_get(r, RECORDING_PEAK_AT, 0, PEAK_AT_BYTES),
		recording_get(r, RECORDING_PEAK_AT, 0, PEAK_AT_BLOCKS),
		(double)recording_get(r, RECORDING_PEAK_AT, 0, PEAK_AT_VARIANCE)};
	_cleanup_free_ char *estimate = recording_value_text(r, &peak, "block");

	fprintf(out, "%-12s ", "peak");
	if (r->interval)
		fputs(estimate, out);
	else
		fprintf(out, "%s (%s byte%s) in %s block%s",
			amount_bytes((double)peak.bytes, human), amount_commas(peak.bytes, bytes),
			plural(peak.bytes), amount_commas(peak.blocks, blocks),
			plural(peak.blocks));
	fprintf(out, " after %.3f s%s\n",
		(double)recording_get(r, RECORDING_PEAK_AT, 0, PEAK_AT_TIME) / 1000,
		r->interval ? ", the highest of all estimates" : "");
}

static uint64_t end_value(const struct recording *r, unsigned column)
{
	return recording_get(r, RECORDING_END, recording_rows(r, RECORDING_END) - 1, column);
}

static void put_counted(FILE *out, const struct recording *r)
{
	char a[AMOUNT_SIZE], b[AMOUNT_SIZE], c[AMOUNT_SIZE], d[AMOUNT_SIZE];

	uint64_t bytes = end_value(r, END_ALLOCATED_BYTES), frees = end_value(r, END_FREES);
	uint64_t reallocs = end_value(r, END_REALLOCS);

	fprintf(out, "%-12s %s of %s byte%s, %s realloc%s, %s free%s\n", "allocations",
		amount_commas(end_value(r, END_ALLOCATIONS), a), amount_commas(bytes, b),
		plural(bytes), amount_commas(reallocs, c), plural(reallocs),
		amount_commas(frees, d), plural(frees));
}

/* "released within 1,024 us", or NULL for what ptmem counted. The caller frees it. */
static char *temporary_text(const struct recording *r)
{
	char us[AMOUNT_SIZE];

	return r->temporary_below
		       ? xasprintf("released%s within %s us", r->interval ? " or resized" : "",
				   amount_commas(r->temporary_below, us))
		       : NULL;
}

static void put_temporary_total(FILE *out, const struct recording *r)
{
	_cleanup_free_ char *text = temporary_text(r);
	uint64_t blocks = recording_count(r, end_value(r, END_TEMPORARY));
	char commas[AMOUNT_SIZE];

	if (recording_knows_temporary(r))
		fprintf(out, "%-12s %s%s%s%s\n", "temporary", r->interval ? "about " : "",
			amount_commas(blocks, commas), text ? ", " : "", text ? text : "");
}

/* Whether a recording names functions that release @name. */
static bool is_release(const char *name)
{
	for (unsigned i = 0; i < HEAP_FUNCTION_COUNT; i++) {
		if (heap_function_releases(i) && !strcmp(name, heap_function_name(i)))
			return true;
	}
	return false;
}

/* Calls of functions that release request no bytes. */
static void put_sampled(FILE *out, const struct recording *r)
{
	char a[AMOUNT_SIZE], b[AMOUNT_SIZE], c[AMOUNT_SIZE];
	uint64_t calls = 0, bytes = 0, frees = 0;

	for (size_t i = 0; i < recording_rows(r, RECORDING_CALLS); i++) {
		const char *name =
			r->text.data[recording_get(r, RECORDING_CALLS, i, CALL_FUNCTION)];

		*(is_release(name) ? &frees : &calls) +=
			recording_get(r, RECORDING_CALLS, i, CALL_CALLS);
		bytes += recording_get(r, RECORDING_CALLS, i, CALL_BYTES);
	}
	fprintf(out, "%-12s %s of %s byte%s, %s %s: %s\n", "allocations",
		amount_commas(calls, a), amount_commas(bytes, b), plural(bytes),
		amount_commas(frees, c), call_totals_frees(frees),
		call_totals_trust(recording_meta(r, "corrupt") != NULL));
	_cleanup_free_ char *range = sampling_range(r->interval, recording_longest_interval(r));

	fprintf(out, "%-12s one every %s on average: sizes and numbers of blocks are estimates\n",
		"sampled", range);
}

/* A copy made after the end of the program lacks only totals. */
static void put_incomplete(FILE *out, const struct recording *r)
{
	if (!r->is_copy)
		put_fact(out, "incomplete", RECORDING_INCOMPLETE);
	else if (!recording_meta(r, "exit"))
		put_fact(out, "so far", RECORDING_SO_FAR);
}

static void put_totals(FILE *out, const struct recording *r)
{
	if (!r->is_complete)
		put_incomplete(out, r);
	if (recording_meta(r, "corrupt"))
		put_fact(out, "corrupt", RECORDING_CORRUPT);
	if (r->interval)
		put_sampled(out, r);
	if (!r->is_complete)
		return;
	if (!r->interval)
		put_counted(out, r);
	put_temporary_total(out, r);
	const struct recording_value live = {end_value(r, END_LIVE_BYTES),
					     end_value(r, END_LIVE_BLOCKS),
					     (double)end_value(r, END_LIVE_VARIANCE)};
	_cleanup_free_ char *text = recording_value_text(r, &live, "block");

	fprintf(out, "%-12s %s in use\n", "at the end", text);
}

/* Which of several recordings it is, and when it began. */
static void put_part(FILE *out, const struct recording *r)
{
	const char *part = recording_meta(r, "part"), *start = recording_meta(r, "start");
	time_t begin = start ? (time_t)strtoll(start, NULL, 10) : 0;
	struct tm tm;
	char text[64];

	put_fact(out, "part", part);
	if (part && start && localtime_r(&begin, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &tm))
		put_fact(out, "from", text);
}

/* The only key with several values. */
static void put_lost(FILE *out, const struct recording *r)
{
	for (size_t i = 0; i < recording_rows(r, RECORDING_META); i++) {
		uint64_t key = recording_get(r, RECORDING_META, i, META_KEY);
		uint64_t value = recording_get(r, RECORDING_META, i, META_VALUE);

		if (strcmp(r->text.data[key], "lost") == 0)
			put_fact(out, "lost", r->text.data[value]);
	}
}

static void recording_head_print(FILE *out, const struct recording *r)
{
	put_fact(out, "program", recording_meta(r, "command"));
	put_fact(out, "process", recording_meta(r, "pid"));
	put_fact(out, "cgroup", recording_meta(r, "cgroup"));
	put_part(out, r);
	put_fact(out, "end", recording_meta(r, "exit"));
	put_lost(out, r);
	put_fact(out, "times", recording_meta(r, "times"));
	put_peak(out, r);
	put_totals(out, r);
}

/*
 * The summary of a recording. Each table sums leaves by call site (recording_site), with its file
 * and line.
 */

struct site {
	char *label; /* owned; the first member */
	struct recording_value value;
};

struct sites {
	VEC(struct site) list;
};

static int compare_bytes(const void *a, const void *b)
{
	const struct site *x = a, *y = b;

	if (x->value.bytes != y->value.bytes)
		return x->value.bytes < y->value.bytes ? 1 : -1;
	if (x->value.blocks != y->value.blocks)
		return x->value.blocks < y->value.blocks ? 1 : -1;
	return strcmp(x->label, y->label);
}

static bool merge_sites(struct site *to, struct site *from)
{
	if (text_compare(to, from) != 0)
		return false;
	recording_value_add(&to->value, &from->value);
	free(from->label);
	return true;
}

/* @node: -1 = no stack. @depth: 0 = the call site, 1 = its caller. */
static void add_site(struct sites *s, const struct recording *r, int64_t node, unsigned depth,
		     struct recording_value value)
{
	for (; depth > 0 && node >= 0; depth--)
		node = (int64_t)recording_get(r, RECORDING_NODES, (size_t)node, NODE_PARENT) - 1;
	*vec_add(&s->list) = (struct site){recording_site_label(r, node), value};
}

static void sort_sites(struct sites *s)
{
	vec_sort(&s->list, text_compare);
	vec_merge(&s->list, merge_sites);
	vec_sort(&s->list, compare_bytes);
}

static void add_sites(struct sites *s, const struct recording *r, const struct recording_view *v,
		      unsigned depth)
{
	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++)
		if (v->leaf[i].bytes || v->leaf[i].blocks)
			add_site(s, r, recording_site(r, i), depth, v->leaf[i]);
}

static void sites_deinit(struct sites *s)
{
	vec_release(&s->list, e, free(e->label));
}

/*
 * What a leak check says of a call site besides its blocks: how old they are, and what holds them.
 */

/* Of blocks of one call site: their ages in ms, or a chain that holds some. */
struct leak_detail {
	char *site;              /* as in tables */
	uint64_t least, most;
	const char *chain;       /* NULL: these are ages */
	uint64_t bytes, blocks;
};

struct leak_details {
	VEC(struct leak_detail) list; /* by site; ages first, then the chains with most bytes */
};

#define HOLDERS 3u /* as in the text of a leak check */

/* As in tables. The caller frees it. */
static char *site_of_leaf(const struct recording *r, uint64_t leaf)
{
	bool is_known = leaf > 0 && leaf <= recording_rows(r, RECORDING_LEAVES);

	return recording_site_label(r, is_known ? recording_site(r, leaf - 1) : -1);
}

static int compare_details(const void *a, const void *b)
{
	const struct leak_detail *x = a, *y = b;
	int sites = strcmp(x->site, y->site);

	if (sites)
		return sites;
	if (!x->chain || !y->chain)
		return !y->chain - !x->chain;
	int chains = x->bytes < y->bytes ? 1 : -(x->bytes > y->bytes);

	return chains ? chains : strcmp(x->chain, y->chain);
}

/* Ages of a site become one; equal chains are neighbours unless their bytes differ. */
static bool merge_details(struct leak_detail *to, struct leak_detail *from)
{
	if (strcmp(to->site, from->site) != 0 ||
	    (to->chain && from->chain ? strcmp(to->chain, from->chain) != 0 :
					to->chain != from->chain))
		return false;
	to->least = MIN(to->least, from->least);
	to->most = MAX(to->most, from->most);
	to->bytes += from->bytes;
	to->blocks += from->blocks;
	free(from->site);
	return true;
}

/* Those of leaks of @kind that are at least @older_ms old; of holders all. @r must outlive @d. */
static void leak_details_find(struct leak_details *d, const struct recording *r, const char *kind,
		       double older_ms)
{
	const struct recording_table *ages = &r->table[RECORDING_LEAK_AGES];
	const struct recording_table *held = &r->table[RECORDING_LEAK_HOLDERS];

	*d = (struct leak_details){0};
	for (size_t i = 0; i < ages->rows; i++) {
		if (strcmp(r->text.data[ages->column[LEAK_AGE_KIND][i]], kind) != 0 ||
		    (double)ages->column[LEAK_AGE_LEAST][i] < older_ms)
			continue;
		*vec_add(&d->list) = (struct leak_detail){
			.site = site_of_leaf(r, ages->column[LEAK_AGE_LEAF][i]),
			.least = ages->column[LEAK_AGE_LEAST][i],
			.most = ages->column[LEAK_AGE_MOST][i]};
	}
	for (size_t i = 0; i < held->rows; i++) {
		if (strcmp(r->text.data[held->column[LEAK_HOLDER_KIND][i]], kind) != 0)
			continue;
		*vec_add(&d->list) = (struct leak_detail){
			.site = site_of_leaf(r, held->column[LEAK_HOLDER_LEAF][i]),
			.chain = r->text.data[held->column[LEAK_HOLDER_CHAIN][i]],
			.bytes = held->column[LEAK_HOLDER_BYTES][i],
			.blocks = held->column[LEAK_HOLDER_BLOCKS][i]};
	}
	vec_sort(&d->list, compare_details);
	vec_merge(&d->list, merge_details);
}

static void leak_details_deinit(struct leak_details *d)
{
	vec_release(&d->list, e, free(e->site));
}

static bool leak_details_have_holders(const struct leak_details *d)
{
	for (size_t i = 0; i < d->list.count; i++)
		if (d->list.data[i].chain)
			return true;
	return false;
}

/* ", 0.013 to 0.072 s old" in *@ages_out, which the caller frees; NULL: not known. */
static void leak_details_ages(const struct leak_details *d, const char *site, char **ages_out)
{
	*ages_out = NULL;
	for (size_t i = 0; i < d->list.count; i++) {
		const struct leak_detail *at = &d->list.data[i];

		if (at->chain || strcmp(at->site, site) != 0)
			continue;
		*ages_out = at->least == at->most ?
			xasprintf(", %.3f s old", (double)at->most / 1000) :
			xasprintf(", %.3f to %.3f s old", (double)at->least / 1000,
				  (double)at->most / 1000);
		return;
	}
}

/* A line for each of the three chains that hold most of @site. */
static void leak_details_put_holders(FILE *out, const struct leak_details *d, const char *site)
{
	char bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE];
	unsigned shown = 0;

	for (size_t i = 0; i < d->list.count && shown < HOLDERS; i++) {
		const struct leak_detail *at = &d->list.data[i];

		if (!at->chain || strcmp(at->site, site) != 0)
			continue;
		_cleanup_free_ char *chain = text_clean(at->chain, strlen(at->chain));

		fprintf(out, "%37sheld by %s: %s byte%s in %s block%s\n", "", chain,
			amount_commas(at->bytes, bytes), plural(at->bytes),
			amount_commas(at->blocks, blocks), plural(at->blocks));
		shown++;
	}
}

/* What a table shows. */
struct table {
	FILE *out;
	const struct recording *r;
	const struct recording_view *view;
	const struct row_limits *limits;
	bool is_count;         /* of allocations: there are no bytes */
	const struct leak_details *leaks; /* NULL: these are no leaks */
};

/* What shares are of. */
static uint64_t weight(const struct table *t, const struct recording_value *value)
{
	return t->is_count ? value->blocks : value->bytes;
}

static bool is_shown(const struct table *t, size_t i, const struct recording_value *value)
{
	return row_limits_allow(t->limits, i, weight(t, value), weight(t, &t->view->sum));
}

static void put_row(const struct table *t, const struct site *s)
{
	char bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE], error[AMOUNT_SIZE];
	uint64_t part = weight(t, &s->value), all = weight(t, &t->view->sum);
	_cleanup_free_ char *label = text_site_label(s->label), *ages = NULL;

	if (t->leaks)
		leak_details_ages(t->leaks, s->label, &ages);
	if (!t->is_count)
		fprintf(t->out, "%15s ", amount_commas(s->value.bytes, bytes));
	if (t->r->interval && !t->is_count)
		fprintf(t->out, "%-9s ", recording_error_text(t->r, &s->value, error));
	fprintf(t->out, "%12s %5.1f %%  %s%s\n",
		amount_commas(recording_count(t->r, s->value.blocks), blocks),
		amount_percent(part, all), label, ages ? ages : "");
	if (t->leaks)
		leak_details_put_holders(t->out, t->leaks, s->label);
}

/* What a view counts: of what was ever allocated, each realloc of a block is one more call. */
static const char *unit_of(const struct recording_view *v)
{
	return v->quantity == VIEW_TOTAL ? "call" : "block";
}

/* The heads of what put_row prints. @unit: of what blocks are shown as; @places: what rows are. */
static void put_columns(const struct table *t, const char *title, const char *unit,
			const char *places)
{
	fprintf(t->out, "\n%s\n%s%s%11ss  share  %s\n", title,
		t->is_count ? "" : "          bytes ",
		t->r->interval && !t->is_count ? " +- error " : "", unit, places);
}

/* Takes over @label, the name of all @site in one row. */
static void put_sum(const struct table *t, const struct site *site, size_t count, char *label)
{
	struct site all = {.label = label};

	for (size_t i = 0; i < count; i++)
		recording_value_add(&all.value, &site[i].value);
	if (count)
		put_row(t, &all);
	free(all.label);
}

/* Whether @value is an estimate from too few samples to be meaningful. */
static bool is_noise(const struct recording *r, const struct recording_value *value)
{
	return r->interval && value->bytes &&
	       estimate_is_below_resolution((double)value->bytes,
					    recording_error(r, value->variance));
}

/* Moves sites below resolution to the end, in their order; returns how many others there are. */
static size_t set_noise_aside(struct sites *s, const struct recording *r)
{
	struct site *noise = xcalloc(s->list.count + 1, sizeof(*noise));
	size_t kept = 0, n = 0;

	for (size_t i = 0; i < s->list.count; i++) {
		if (is_noise(r, &s->list.data[i].value))
			noise[n++] = s->list.data[i];
		else
			s->list.data[kept++] = s->list.data[i];
	}
	for (size_t i = 0; i < n; i++)
		s->list.data[kept + i] = noise[i];
	free(noise);
	return kept;
}

/* The largest sites, a row each; then the others, and those below resolution. */
static void put_rows(const struct table *t, struct sites *s)
{
	size_t known = set_noise_aside(s, t->r), shown = 0;
	size_t noise = s->list.count - known;

	for (; shown < known && is_shown(t, shown, &s->list.data[shown].value); shown++)
		put_row(t, &s->list.data[shown]);
	size_t others = known - shown;

	put_sum(t, s->list.data + shown, others,
		xasprintf("[%zu other place%s]", others, plural(others)));
	put_sum(t, s->list.data + known, noise,
		xasprintf("[%zu place%s below resolution]", noise, plural(noise)));
}

static void put_table(const struct table *t, const char *title, unsigned depth)
{
	struct sites s = {0};

	add_sites(&s, t->r, t->view, depth);
	sort_sites(&s);
	if (s.list.count == 0)
		return;
	put_columns(t, title, t->is_count ? "allocation" : unit_of(t->view),
		    depth ? "caller of the call site" : "call site");
	put_rows(t, &s);
	sites_deinit(&s);
}

void recording_sites_print(FILE *out, const char *title, const struct recording_part *part,
			   size_t count, const struct row_limits *limits)
{
	struct recording_view all = {.quantity = VIEW_PEAK};
	struct sites s = {0};

	for (size_t i = 0; i < count; i++) {
		add_sites(&s, part[i].recording, part[i].view, 0);
		recording_value_add(&all.sum, &part[i].view->sum);
	}
	sort_sites(&s);
	if (s.list.count) {
		const struct table t = {out, part[0].recording, &all, limits, false, NULL};

		put_columns(&t, title, unit_of(&all), "call site");
		put_rows(&t, &s);
	}
	sites_deinit(&s);
}

/* -- tables -- */

static void put_quantity(FILE *out, const struct recording *r, const char *title,
			 enum recording_quantity quantity, const struct row_limits *limits)
{
	struct recording_view v;

	recording_view_of(&v, r, quantity);
	const struct table t = {out, r, &v, limits, quantity == VIEW_TEMPORARY, NULL};

	put_table(&t, title, 0);
	recording_view_deinit(&v);
}

static void put_temporary(FILE *out, const struct recording *r, const struct row_limits *limits)
{
	_cleanup_free_ char *text = temporary_text(r);
	_cleanup_free_ char *title =
		xasprintf("temporary allocations%s%s", text ? ", " : "", text ? text : "");

	if (recording_knows_temporary(r))
		put_quantity(out, r, title, VIEW_TEMPORARY, limits);
}

/*
 * The kinds of leaks, as leak checks print them; what is reachable is in a table only if its
 * holders are known.
 */
static const struct leak_kind {
	const char *name, *text;
	bool is_leak;
} leak_kinds[] = {
	{"definite", "definitely lost", true},
	{"indirect", "indirectly lost", true},
	{"possible", "possibly lost", true},
	{"reachable", "still reachable", false},
};

static void put_leaks_of(FILE *out, const struct recording *r, const struct leak_kind *kind,
			 const struct row_limits *limits, double older_ms)
{
	struct recording_view v;
	struct leak_details details;
	char bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE];

	recording_view_leaks(&v, r, kind->name, older_ms);
	leak_details_find(&details, r, kind->name, older_ms);
	_cleanup_free_ char *age =
		older_ms > 0 ? xasprintf(", at least %.3f s old", older_ms / 1000) : NULL;
	_cleanup_free_ char *title =
		xasprintf("%s%s: %s byte%s in %s block%s", kind->text, age ? age : "",
			  amount_commas(v.sum.bytes, bytes), plural(v.sum.bytes),
			  amount_commas(v.sum.blocks, blocks), plural(v.sum.blocks));
	const struct table t = {out, r, &v, limits, false, &details};

	if ((kind->is_leak || leak_details_have_holders(&details)) && v.sum.blocks)
		put_table(&t, title, 0);
	else
		fprintf(out, "\n%s\n", title);
	leak_details_deinit(&details);
	recording_view_deinit(&v);
}

/* With --free-stacks: which call paths released how much. */
static void put_releases(FILE *out, const struct recording *r, const struct row_limits *limits)
{
	const struct recording_table *t = &r->table[RECORDING_RELEASES];
	struct recording_view all = {.quantity = VIEW_TOTAL};
	struct sites s = {0};
	char bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE];

	for (size_t i = 0; i < t->rows; i++) {
		const struct recording_value value = {t->column[RELEASE_BYTES][i],
						      t->column[RELEASE_BLOCKS][i], 0};

		recording_value_add(&all.sum, &value);
		add_site(&s, r, recording_site_of(r, t->column[RELEASE_NODE][i]), 0, value);
	}
	sort_sites(&s);
	_cleanup_free_ char *title =
		xasprintf("released: %s byte%s in %s block%s",
			  amount_commas(all.sum.bytes, bytes), plural(all.sum.bytes),
			  amount_commas(all.sum.blocks, blocks), plural(all.sum.blocks));
	const struct table table = {out, r, &all, limits, false, NULL};

	if (s.list.count > 0)
		put_columns(&table, title, "block", "released by");
	put_rows(&table, &s);
	sites_deinit(&s);
}

/* If a leak check ran. With @older_ms only if ages are known, which recordings once had not. */
static void put_leaks(FILE *out, const struct recording *r, const struct row_limits *limits,
		      double older_ms)
{
	bool has_ages = recording_rows(r, RECORDING_LEAK_AGES) > 0;

	for (size_t i = 0; i < ARRAY_SIZE(leak_kinds); i++)
		if (recording_meta(r, "leak_check") && (older_ms <= 0 || has_ages))
			put_leaks_of(out, r, &leak_kinds[i], limits, older_ms);
}

int recording_text_print(FILE *out, const struct recording *r, const struct recording_question *q,
			 const struct row_limits *limits, char **why_out)
{
	struct recording_view v;
	int rc = recording_view_init(&v, r, q, why_out);

	if (rc != 0)
		return rc;
	_cleanup_free_ char *text = recording_view_text(&v, r, q);
	_cleanup_free_ char *sum = recording_value_text(r, &v.sum, unit_of(&v));
	_cleanup_free_ char *title = xasprintf("%s: %s", text, sum);
	const struct table t = {out, r, &v, limits, false, NULL};

	recording_head_print(out, r);
	put_table(&t, title, 0);
	put_table(&t, "the same by caller", 1);
	double older_ms = v.older_ms;

	recording_view_deinit(&v);
	if (q->older)
		put_leaks(out, r, limits, older_ms);
	if (q->at || q->range || q->older || q->thread)
		return 0;
	put_quantity(out, r, "live at the end", VIEW_RANGE, limits);
	put_leaks(out, r, limits, 0);
	put_temporary(out, r, limits);
	recording_lifetime_print(out, r, limits);
	put_releases(out, r, limits);
	recording_spread_print(out, r, limits);
	return 0;
}

/* -- the brief report -- */

/* "--match=" for the function of @label, "f (a.c:7)"; NULL: its name is not fit for that. */
static char *match_option(const char *label)
{
	size_t size = text_site_location(label);
	_cleanup_free_ char *name = xstrndup(label, size), *text = NULL;
	size_t written;
	FILE *f;

	if (!size || size > 60)
		return NULL;
	for (const char *s = name; *s; s++)
		if (*s < ' ' || *s > '~')
			return NULL;
	f = open_memstream(&text, &written);
	CHECK(f);
	for (const char *s = name; *s; s++)
		fprintf(f, strchr(".[]\\^$*+?(){}|", *s) ? "\\%c" : "%c", *s);
	CHECK(!fclose(f));
	_cleanup_free_ char *word = brief_shell_word(text);

	return xasprintf("--match=%s", word);
}

static void brief_sites(struct brief *b, const struct recording_part *part, const char *what,
			bool can_match)
{
	const struct recording *r = part->recording;
	struct sites s = {0};

	add_sites(&s, r, part->view, 0);
	sort_sites(&s);
	for (size_t i = 0; i < s.list.count; i++) {
		const struct site *e = &s.list.data[i];
		char error[AMOUNT_SIZE];

		brief_add(b, e->value.bytes,
			  xasprintf("%s%.1f %%  %s", recording_error_text(r, &e->value, error),
				    amount_percent(e->value.bytes, part->view->sum.bytes), what),
			  xstrdup(e->label), can_match ? match_option(e->label) : NULL);
	}
	sites_deinit(&s);
}

/* The head's lines; the program is the title already. */
static void brief_head(struct brief *b, const struct recording *r)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	char *rest;

	CHECK(f);
	recording_head_print(f, r);
	CHECK(!fclose(f));
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (!text_begins_with(line, "program "))
			brief_add_fact(b, xstrdup(line));
}

void recording_brief(struct brief *b, const struct recording_part *part, const char *what,
		     bool can_match)
{
	struct recording_view lost;

	brief_head(b, part->recording);
	brief_sites(b, part, what, can_match);
	recording_view_leaks(&lost, part->recording, "lost", 0);
	const struct recording_part leaks = {part->recording, &lost};

	brief_sites(b, &leaks, "of what was lost,", can_match);
	recording_view_deinit(&lost);
}
