/* See fail_if.h. */
#include "report/fail_if.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "report/diff_output.h"

#define SITES 3

static const struct {
	const char *name;
	bool is_number;      /* of blocks; else bytes */
	bool is_of_massif;   /* massif files have it, too */
	enum recording_quantity quantity;
} metrics[FAIL_IF_METRICS] = {
	[FAIL_IF_PEAK] = {"peak", false, true, VIEW_PEAK},
	[FAIL_IF_LIVE] = {"live-at-end", false, true, VIEW_AT},
	[FAIL_IF_ALLOCATED] = {"allocated", false, false, VIEW_TOTAL},
	[FAIL_IF_ALLOCATIONS] = {"allocations", true, false, VIEW_TOTAL},
};

/* -- the text -- */

const char *fail_if_parse(const char *text, struct fail_if *out)
{
	struct fail_if f = {0};
	size_t name = strcspn(text, ">");

	while (f.metric < FAIL_IF_METRICS && (strlen(metrics[f.metric].name) != name ||
					      strncmp(metrics[f.metric].name, text, name) != 0))
		f.metric++;
	if (!text[name] || f.metric == FAIL_IF_METRICS)
		return "a condition is peak>+AMOUNT, live-at-end>+AMOUNT, allocated>+AMOUNT or "
		       "allocations>+AMOUNT";
	const char *amount = &text[name + 1];

	if (*amount++ != '+' || !isdigit((unsigned char)*amount))
		return "after > comes by how much more it is too much, as in peak>+5% or "
		       "peak>+1M";
	const char *end = amount_parse(amount, &f.amount);

	if (!end)
		return "the number has digits and one point at most, as in peak>+1.5G";
	f.is_percent = *end == '%';
	end = f.is_percent ? end + 1 :
			     amount_parse_unit(end, metrics[f.metric].is_number ? 1000 : 1024,
					       &f.amount);
	if (*end)
		return "only %, K, M, G or T may follow the number";
	*out = f;
	return NULL;
}

/* -- the values -- */

/* Selects what the metric is about in @pair, and stores its values. */
static void measure_recordings(struct diff_pair *pair, enum fail_if_metric metric, double value[2])
{
	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		const struct recording *r = pair->input[side].recording;
		struct recording_view *v = &pair->view[side];
		size_t intervals = recording_rows(r, RECORDING_TIMELINE);

		if (metrics[metric].quantity == VIEW_AT && intervals)
			recording_view_at(v, r, (uint32_t)intervals - 1);
		else
			recording_view_of(v, r, metrics[metric].quantity);
		value[side] = metrics[metric].is_number ?
				      (double)recording_count(r, v->sum.blocks) :
				      (double)v->sum.bytes;
	}
}

static void measure_massif(struct diff_pair *pair, enum fail_if_metric metric, double value[2])
{
	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		const struct massif_file *f = pair->input[side].massif;
		size_t last = f->snapshot_count - 1, *index = &pair->snapshot[side];

		*index = metric == FAIL_IF_LIVE || f->peak == SIZE_MAX ? last : f->peak;
		value[side] = f->snapshot_count ? (double)f->snapshot[*index].heap : 0;
	}
}

/* -- messages -- */

static char *text_of(enum fail_if_metric metric, double value)
{
	char text[AMOUNT_SIZE];

	return metrics[metric].is_number ? xstrdup(amount_commas((uint64_t)value, text)) :
					   amount_exact(value);
}

struct site_growth {
	const char *site; /* of a row */
	double growth;
};

static int compare_sites(const void *a, const void *b)
{
	return strcmp(((const struct site_growth *)a)->site, ((const struct site_growth *)b)->site);
}

/* In the order of their growth, the largest first; the sites' names are the rows'. */
static int compare_growth(const void *a, const void *b)
{
	double x = ((const struct site_growth *)a)->growth;
	double y = ((const struct site_growth *)b)->growth;

	return x != y ? (x < y) - (x > y) : compare_sites(a, b);
}

static void print_sites(const struct diff_pair *pair, enum fail_if_metric metric)
{
	struct path_tree *t = diff_pair_tree(pair, DIFF_TABLE);
	struct diff_rows rows;

	diff_rows_init(&rows, t);
	_cleanup_free_ struct site_growth *site = xcalloc(rows.row.count + 1, sizeof(*site));
	size_t count = 0;

	for (size_t i = 0; i < rows.row.count; i++) {
		const struct diff_row *row = &rows.row.data[i];
		const uint64_t *v = metrics[metric].is_number ? row->blocks : row->bytes;

		site[i] = (struct site_growth){row->site,
					       (double)v[PATH_NEW] - (double)v[PATH_OLD]};
	}
	if (rows.row.count)
		qsort(site, rows.row.count, sizeof(*site), compare_sites);
	for (size_t i = 0; i < rows.row.count; i++) {
		if (count && strcmp(site[count - 1].site, site[i].site) == 0)
			site[count - 1].growth += site[i].growth;
		else
			site[count++] = site[i];
	}
	if (count)
		qsort(site, count, sizeof(*site), compare_growth);
	for (size_t i = 0; i < MIN(count, (size_t)SITES) && site[i].growth > 0; i++) {
		_cleanup_free_ char *amount = text_of(metric, site[i].growth);

		log_error("  %s: +%s", site[i].site, amount);
	}
	diff_rows_deinit(&rows);
	path_tree_free(t);
}

/* A massif file has call trees of some snapshots. */
static bool have_trees(const struct diff_pair *pair)
{
	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		const struct massif_file *f = pair->input[side].massif;

		if (pair->snapshot[side] >= f->snapshot_count ||
		    !f->snapshot[pair->snapshot[side]].root)
			return false;
	}
	return true;
}

static int check_one(const struct diff_pair *given, const char *text)
{
	struct diff_pair pair = {.input = given->input, .match = given->match};
	bool is_recording = given->input->kind == INPUT_RECORDING;
	struct fail_if f;
	double value[2];

	if (fail_if_parse(text, &f) != NULL)
		return 0;
	if (!is_recording && !metrics[f.metric].is_of_massif) {
		log_error("--fail-if=%s: massif files do not tell what was ever allocated: compare "
			  "recordings (ptmem --record)", text);
		return EXIT_REFUSED;
	}
	(is_recording ? measure_recordings : measure_massif)(&pair, f.metric, value);
	double growth = value[PATH_NEW] - value[PATH_OLD];
	double limit = f.is_percent ? f.amount / 100 * value[PATH_OLD] : f.amount;

	if (growth > limit) {
		_cleanup_free_ char *old = text_of(f.metric, value[PATH_OLD]);
		_cleanup_free_ char *new = text_of(f.metric, value[PATH_NEW]);

		log_error("%s: it was %s, and is %s", text, old, new);
		if (is_recording || have_trees(&pair))
			print_sites(&pair, f.metric);
	}
	for (int side = PATH_OLD; side <= PATH_NEW; side++)
		recording_view_deinit(&pair.view[side]);
	return growth > limit ? EXIT_GROWN : 0;
}

int fail_if_check(const struct report_request *r, const struct diff_pair *pair)
{
	int status = 0;

	for (size_t i = 0; i < r->fail_if.count && status != EXIT_REFUSED; i++) {
		int one = check_one(pair, r->fail_if.data[i]);

		status = one ? one : status;
	}
	return status;
}
