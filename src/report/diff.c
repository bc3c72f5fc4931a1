/*
 * The table of growth. Sites are sorted by new - old, growth before shrinkage; callers are indented
 * below their site as in the text report. Rows that are not shown are summed up in a separate row,
 * so the rows of a level add up to the row above.
 */
#include "report/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/vec.h"
#include "output/unresolved.h"

#define NUMBER_WIDTH 17
#define MAX_INDENT 40

/* A line of the table. */
struct row {
	uint32_t node;        /* 0 = a summary of many sites */
	size_t places;        /* how many sites the row sums up */
	unsigned indent;
	uint64_t value[2];    /* by enum path_side */
	double variance;      /* of their difference */
};

struct diff_table {
	FILE *out;
	const struct path_tree *tree;
	const struct diff_options *options;
	uint64_t limit;       /* smaller differences are summed up */
	VEC(struct row) todo; /* a stack: the next row to print is last */
};

static uint64_t distance(const uint64_t value[2])
{
	return value[PATH_NEW] > value[PATH_OLD] ? value[PATH_NEW] - value[PATH_OLD] :
						   value[PATH_OLD] - value[PATH_NEW];
}

/* Growth before shrinkage, largest growth first, largest shrinkage last; then by name. */
static int compare_growth(const void *a, const void *b, void *ctx)
{
	const struct path_node *x = path_tree_node(ctx, *(const uint32_t *)a);
	const struct path_node *y = path_tree_node(ctx, *(const uint32_t *)b);
	uint64_t x_distance = distance(x->total), y_distance = distance(y->total);
	bool x_grew = x->total[PATH_NEW] >= x->total[PATH_OLD],
	     y_grew = y->total[PATH_NEW] >= y->total[PATH_OLD];

	if (x_grew != y_grew)
		return x_grew ? -1 : 1;
	if (x_distance != y_distance)
		return (x_distance > y_distance) == x_grew ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int compare_distance(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* The @top'th largest difference among the @count children: smaller ones are summed up. */
static uint64_t smallest_shown(const struct diff_table *d, const uint32_t *child, uint32_t count)
{
	if (count <= d->options->top)
		return d->limit;
	uint64_t *all = xcalloc(count, sizeof(*all));

	for (uint32_t i = 0; i < count; i++)
		all[i] = distance(path_tree_node(d->tree, child[i])->total);
	qsort(all, count, sizeof(*all), compare_distance);
	uint64_t out = MAX(d->limit, all[d->options->top - 1]);

	free(all);
	return out;
}

/* The samples of two runs have nothing to do with each other. */
static double variance_of(const struct path_node *n)
{
	return n->variance[PATH_OLD] + n->variance[PATH_NEW];
}

/* The column with the standard error of a difference of estimates; "" if exact. */
static const char *error_of(const struct diff_table *d, const struct row *row,
			    char out[static AMOUNT_SIZE * 2])
{
	char text[AMOUNT_SIZE];

	*out = '\0';
	if (d->options->error_heading)
		snprintf(out, AMOUNT_SIZE * 2, " %*s", NUMBER_WIDTH,
			 amount_commas((uint64_t)sqrt(row->variance), text));
	return out;
}

static void put_row(const struct diff_table *d, const struct row *row)
{
	uint64_t difference = distance(row->value);
	const char *sign = !difference ? "" :
			   row->value[PATH_NEW] > row->value[PATH_OLD] ? "+" : "-";
	char change[AMOUNT_SIZE], old[AMOUNT_SIZE], new[AMOUNT_SIZE], error[AMOUNT_SIZE * 2];
	_cleanup_free_ char *signed_change =
		xasprintf("%s%s", sign, amount_commas(difference, change));

	amount_commas(row->value[PATH_OLD], old);
	amount_commas(row->value[PATH_NEW], new);
	fprintf(d->out, "%*s%s %*s %*s  %*s", NUMBER_WIDTH, signed_change, error_of(d, row, error),
		NUMBER_WIDTH, old, NUMBER_WIDTH, new, (int)row->indent, "");
	_cleanup_free_ char *name =
		text_site_label(row->node ? path_tree_node(d->tree, row->node)->name : "total");

	if (row->places)
		fprintf(d->out, "[%zu other place%s]\n", row->places, plural(row->places));
	else
		fprintf(d->out, "%s\n", name);
}

/* Whether a row adds no information to the one above: the same numbers, and no name. */
static bool is_idle(const struct path_node *n, const struct row *parent)
{
	return parent->node && !strcmp(n->name, "[below threshold]") &&
	       n->total[PATH_OLD] == parent->value[PATH_OLD] &&
	       n->total[PATH_NEW] == parent->value[PATH_NEW];
}

/* Adds the last row of a level: the sum of everything without its own row. */
static void push_rest(struct diff_table *d, const struct row *rest, unsigned shown)
{
	if (shown && distance(rest->value))
		*vec_add(&d->todo) = *rest;
}

/* Pushes the rows below @parent on the stack, the first one last. */
static void push_children(struct diff_table *d, const struct row *parent)
{
	uint32_t *child = NULL, shown = 0;
	size_t capacity = 0;
	uint32_t count = path_tree_children(d->tree, parent->node, &child, &capacity);
	uint64_t limit = smallest_shown(d, child, count);
	struct row rest = {.indent = MIN(parent->indent + 1, MAX_INDENT)};

	if (count > 1)
		qsort_r(child, count, sizeof(*child), compare_growth, (void *)d->tree);
	for (uint32_t i = 0; i < count; i++) {
		const struct path_node *n = path_tree_node(d->tree, child[i]);

		if (distance(n->total) >= limit && shown < d->options->top && !is_idle(n, parent)) {
			child[shown++] = child[i];
			continue;
		}
		rest.places++;
		rest.value[PATH_OLD] += n->total[PATH_OLD];
		rest.value[PATH_NEW] += n->total[PATH_NEW];
		rest.variance += variance_of(n);
	}
	push_rest(d, &rest, shown);
	while (shown-- > 0) {
		const struct path_node *n = path_tree_node(d->tree, child[shown]);

		*vec_add(&d->todo) = (struct row){
			.node = child[shown],
			.indent = rest.indent,
			.value = {n->total[PATH_OLD], n->total[PATH_NEW]},
			.variance = variance_of(n),
		};
	}
	free(child);
}

void diff_print(FILE *out, const struct path_tree *whole, const struct diff_options *options)
{
	struct path_tree *t = unresolved_merge(whole);
	struct diff_table d = {.out = out, .tree = t, .options = options};
	const struct path_node *root = path_tree_node(t, 0);
	uint64_t largest = 0;

	for (uint32_t c = root->first_child; c; c = path_tree_node(t, c)->next_sibling)
		largest = MAX(largest, distance(path_tree_node(t, c)->total));
	d.limit = MAX(1, (uint64_t)((double)largest * options->threshold / 100));
	fprintf(out, "%*s", NUMBER_WIDTH, "difference");
	if (options->error_heading)
		fprintf(out, " %*s", NUMBER_WIDTH, options->error_heading);
	fprintf(out, " %*s %*s  call site, and its callers\n", NUMBER_WIDTH, "old bytes",
		NUMBER_WIDTH, "new bytes");
	*vec_add(&d.todo) = (struct row){.value = {root->total[PATH_OLD], root->total[PATH_NEW]},
					 .variance = variance_of(root)};
	while (d.todo.count) {
		struct row row = d.todo.data[--d.todo.count];

		put_row(&d, &row);
		if (!row.places)
			push_children(&d, &row);
	}
	vec_deinit(&d.todo);
	path_tree_free(t);
}
