/*
 * The summary of a recording. Each table sums leaves by call site: the innermost function that is
 * of no allocator and no standard library, with its file and line.
 */
#include "report/recording_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "report/recording_match.h"
#include "report/recording_paths.h"

struct site {
	char *label;
	struct recording_value value;
};

struct sites {
	VEC(struct site) list;
};

static int compare_labels(const void *a, const void *b)
{
	return strcmp(((const struct site *)a)->label, ((const struct site *)b)->label);
}

static int compare_bytes(const void *a, const void *b)
{
	const struct site *x = a, *y = b;

	if (x->value.bytes != y->value.bytes)
		return x->value.bytes < y->value.bytes ? 1 : -1;
	if (x->value.blocks != y->value.blocks)
		return x->value.blocks < y->value.blocks ? 1 : -1;
	return strcmp(x->label, y->label);
}

static void merge_labels(struct sites *s)
{
	size_t kept = 0;

	if (s->list.count > 1)
		qsort(s->list.data, s->list.count, sizeof(*s->list.data), compare_labels);
	for (size_t i = 0; i < s->list.count; i++) {
		struct site *at = &s->list.data[i];

		if (kept > 0 && strcmp(s->list.data[kept - 1].label, at->label) == 0) {
			s->list.data[kept - 1].value.bytes += at->value.bytes;
			s->list.data[kept - 1].value.blocks += at->value.blocks;
			free(at->label);
		} else {
			s->list.data[kept++] = *at;
		}
	}
	s->list.count = kept;
}

/* @node: -1 = no stack. @depth: 0 = the call site, 1 = its caller. */
static void add_site(struct sites *s, const struct recording *r, int64_t node, unsigned depth,
		     struct recording_value value)
{
	for (; depth > 0 && node >= 0; depth--)
		node = (int64_t)recording_get(r, RECORDING_NODES, (size_t)node, NODE_PARENT) - 1;
	char *label = node < 0 ? xstrdup("[unknown]") :
				 recording_frame_label(r, recording_get(r, RECORDING_NODES,
									(size_t)node, NODE_FRAME));

	*vec_add(&s->list) = (struct site){label, value};
}

static void sort_sites(struct sites *s)
{
	merge_labels(s);
	if (s->list.count > 1)
		qsort(s->list.data, s->list.count, sizeof(*s->list.data), compare_bytes);
}

static void find_sites(struct sites *s, const struct recording *r, const struct recording_view *v,
		       unsigned depth)
{
	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++)
		if (v->leaf[i].bytes || v->leaf[i].blocks)
			add_site(s, r, recording_site(r, i), depth, v->leaf[i]);
	sort_sites(s);
}

static void sites_deinit(struct sites *s)
{
	for (size_t i = 0; i < s->list.count; i++)
		free(s->list.data[i].label);
	vec_deinit(&s->list);
}

static void put_row(FILE *out, const struct recording_view *v, const struct site *s)
{
	char bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE];
	bool is_count = v->quantity == VIEW_TEMPORARY;
	uint64_t part = is_count ? s->value.blocks : s->value.bytes;
	uint64_t all = is_count ? v->sum.blocks : v->sum.bytes;

	if (!is_count)
		fprintf(out, "%15s ", amount_commas(s->value.bytes, bytes));
	fprintf(out, "%12s %5.1f %%  %s\n", amount_commas(s->value.blocks, blocks),
		all ? 100.0 * (double)part / (double)all : 0, s->label);
}

static void put_rows(FILE *out, const struct recording_view *v, const struct sites *s, unsigned top)
{
	for (size_t i = 0; i < MIN(s->list.count, (size_t)top); i++)
		put_row(out, v, &s->list.data[i]);
	if (s->list.count <= top)
		return;
	struct site rest = {.label = xasprintf("[%zu other place%s]", s->list.count - top,
					       plural(s->list.count - top))};

	for (size_t i = top; i < s->list.count; i++) {
		rest.value.bytes += s->list.data[i].value.bytes;
		rest.value.blocks += s->list.data[i].value.blocks;
	}
	put_row(out, v, &rest);
	free(rest.label);
}

static void put_table(FILE *out, const struct recording *r, const struct recording_view *v,
		      const char *title, unsigned depth, unsigned top)
{
	struct sites s = {0};

	find_sites(&s, r, v, depth);
	if (s.list.count == 0)
		return;
	bool is_count = v->quantity == VIEW_TEMPORARY;

	fprintf(out, "\n%s\n%s%12s  share  %s\n", title, is_count ? "" : "          bytes ",
		is_count ? "allocations" : "blocks",
		depth ? "caller of the call site" : "call site");
	put_rows(out, v, &s, top);
	sites_deinit(&s);
}

/* -- head -- */

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
	uint64_t peak = recording_get(r, RECORDING_PEAK_AT, 0, PEAK_AT_BYTES);

	fprintf(out, "%-12s %s (%s bytes) in %s blocks after %.3f s\n", "peak",
		amount_bytes((double)peak, human), amount_commas(peak, bytes),
		amount_commas(recording_get(r, RECORDING_PEAK_AT, 0, PEAK_AT_BLOCKS), blocks),
		(double)recording_get(r, RECORDING_PEAK_AT, 0, PEAK_AT_TIME) / 1000);
}

static uint64_t end_value(const struct recording *r, unsigned column)
{
	return recording_get(r, RECORDING_END, recording_rows(r, RECORDING_END) - 1, column);
}

static void put_totals(FILE *out, const struct recording *r)
{
	char a[AMOUNT_SIZE], b[AMOUNT_SIZE], c[AMOUNT_SIZE], d[AMOUNT_SIZE];

	if (!r->is_complete) {
		put_fact(out, "incomplete",
			 "ptmem did not end normally: this is all up to its last second");
		return;
	}
	fprintf(out, "%-12s %s of %s bytes, %s reallocs, %s frees\n", "allocations",
		amount_commas(end_value(r, END_ALLOCATIONS), a),
		amount_commas(end_value(r, END_ALLOCATED_BYTES), b),
		amount_commas(end_value(r, END_REALLOCS), c),
		amount_commas(end_value(r, END_FREES), d));
	fprintf(out, "%-12s %s\n", "temporary", amount_commas(end_value(r, END_TEMPORARY), a));
	fprintf(out, "%-12s %s bytes in %s blocks in use\n", "at the end",
		amount_commas(end_value(r, END_LIVE_BYTES), a),
		amount_commas(end_value(r, END_LIVE_BLOCKS), b));
}

static void put_head(FILE *out, const struct recording *r)
{
	put_fact(out, "program", recording_meta(r, "command"));
	put_fact(out, "process", recording_meta(r, "pid"));
	put_fact(out, "end", recording_meta(r, "exit"));
	put_fact(out, "lost", recording_meta(r, "lost"));
	put_peak(out, r);
	put_totals(out, r);
}

/* -- tables -- */

static int put_quantity(FILE *out, const struct recording *r, const char *title,
			enum recording_quantity quantity, const char *match, unsigned top,
			char **why_out)
{
	struct recording_view v;
	int rc = recording_view_of(&v, r, quantity, match, why_out);

	if (rc != 0)
		return rc;
	put_table(out, r, &v, title, 0, top);
	recording_view_deinit(&v);
	return 0;
}

/* The kinds of leaks, as leak checks print them; what is reachable is in no table. */
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
			 const bool *is_wanted, unsigned top)
{
	struct recording_view v;
	char bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE];

	recording_view_leaks(&v, r, kind->name, is_wanted);
	_cleanup_free_ char *title =
		xasprintf("%s: %s bytes in %s blocks", kind->text,
			  amount_commas(v.sum.bytes, bytes), amount_commas(v.sum.blocks, blocks));

	if (kind->is_leak && v.sum.blocks)
		put_table(out, r, &v, title, 0, top);
	else
		fprintf(out, "\n%s\n", title);
	recording_view_deinit(&v);
}

/* With --free-stacks: what was released by whom. */
static void put_releases(FILE *out, const struct recording *r, unsigned top)
{
	const struct recording_table *t = &r->table[RECORDING_RELEASES];
	struct recording_view all = {.quantity = VIEW_TOTAL};
	struct sites s = {0};
	char bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE];

	for (size_t i = 0; i < t->rows; i++) {
		const struct recording_value value = {t->column[RELEASE_BYTES][i],
						      t->column[RELEASE_BLOCKS][i]};

		all.sum.bytes += value.bytes;
		all.sum.blocks += value.blocks;
		add_site(&s, r, recording_site_of(r, t->column[RELEASE_NODE][i]), 0, value);
	}
	sort_sites(&s);
	if (s.list.count > 0)
		fprintf(out, "\nreleased: %s bytes in %s blocks\n%15s %12s  share  %s\n",
			amount_commas(all.sum.bytes, bytes), amount_commas(all.sum.blocks, blocks),
			"bytes", "blocks", "released by");
	put_rows(out, &all, &s, top);
	sites_deinit(&s);
}

/* If a leak check ran. */
static int put_leaks(FILE *out, const struct recording *r, const char *match, unsigned top,
		     char **why_out)
{
	bool *is_wanted = NULL;
	int rc = recording_match(r, match, &is_wanted, why_out);

	for (size_t i = 0; i < ARRAY_SIZE(leak_kinds) && rc == 0; i++)
		if (recording_meta(r, "leak_check"))
			put_leaks_of(out, r, &leak_kinds[i], is_wanted, top);
	free(is_wanted);
	return rc;
}

int recording_text_print(FILE *out, const struct recording *r, const struct recording_question *q,
			 unsigned top, char **why_out)
{
	struct recording_view v;
	int rc = recording_view_init(&v, r, q, why_out);

	if (rc != 0)
		return rc;
	_cleanup_free_ char *text = recording_view_text(&v, r, q), *title = NULL;
	char bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE];

	title = xasprintf("%s: %s bytes in %s blocks", text, amount_commas(v.sum.bytes, bytes),
			  amount_commas(v.sum.blocks, blocks));
	put_head(out, r);
	put_table(out, r, &v, title, 0, top);
	put_table(out, r, &v, "the same by caller", 1, top);
	recording_view_deinit(&v);
	if (q->at || q->range || q->thread)
		return 0;
	rc = put_quantity(out, r, "live at the end", VIEW_RANGE, q->match, top, why_out);
	if (rc == 0)
		rc = put_leaks(out, r, q->match, top, why_out);
	if (rc == 0)
		rc = put_quantity(out, r, "temporary allocations", VIEW_TEMPORARY, q->match, top,
				  why_out);
	if (rc == 0 && !q->match)
		put_releases(out, r, top);
	return rc;
}
