/*
 * The table of growth. Sites are sorted by new - old, growth before shrinkage; callers are indented
 * below their site as in the text report. Rows that are not shown are summed up in a separate row,
 * so the rows of a level add up to the row above.
 */
#include "report/diff_output.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/json_write.h"
#include "base/text.h"
#include "output/path_tree.h"
#include "recording/recording_json.h"
#include "report/massif_output.h"

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
	if (shown && distance(rest.value)) /* the last row: all that have none of their own */
		*vec_add(&d->todo) = rest;
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
	struct path_tree *t = path_tree_merge_unresolved(whole);
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

static void set_functions(struct diff_row *row, const struct path_tree *t, uint32_t node)
{
	const struct path_node *n = path_tree_node(t, node);

	row->site = "[unknown]";
	if (!node)
		return;
	vec_reserve(&row->function, n->depth);
	for (row->function.count = n->depth - 1; n->depth > 1; n = path_tree_node(t, n->parent))
		row->function.data[n->depth - 2] = n->name;
	row->site = n->name;
}

static void add_row(struct diff_rows *rows, const struct path_tree *t, uint32_t node)
{
	const struct path_node *n = path_tree_node(t, node);
	struct diff_row *row;

	if (!n->own[PATH_OLD] && !n->own[PATH_NEW] && !n->blocks[PATH_OLD] && !n->blocks[PATH_NEW])
		return;
	row = vec_add(&rows->row);
	*row = (struct diff_row){0};
	set_functions(row, t, node);
	memcpy(row->bytes, n->own, sizeof(row->bytes));
	memcpy(row->blocks, n->blocks, sizeof(row->blocks));
}

static uint64_t change_size(const uint64_t value[2])
{
	return MAX(value[PATH_OLD], value[PATH_NEW]) - MIN(value[PATH_OLD], value[PATH_NEW]);
}

/* -1, 0, 1: by new - old, the largest first. */
static int compare_change(const uint64_t a[2], const uint64_t b[2])
{
	bool a_grew = a[PATH_NEW] >= a[PATH_OLD], b_grew = b[PATH_NEW] >= b[PATH_OLD];
	uint64_t x = change_size(a), y = change_size(b);

	if (a_grew != b_grew)
		return a_grew ? -1 : 1;
	return x == y ? 0 : (x > y) == a_grew ? -1 : 1;
}

static int compare_functions(const struct diff_row *a, const struct diff_row *b)
{
	size_t count = MIN(a->function.count, b->function.count);

	for (size_t i = 0; i < count; i++) {
		int order = strcmp(a->function.data[i], b->function.data[i]);

		if (order)
			return order;
	}
	return a->function.count < b->function.count ? -1 : a->function.count > b->function.count;
}

static int compare_rows(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;
	int order = compare_change(x->bytes, y->bytes);

	if (!order)
		order = compare_change(x->blocks, y->blocks);
	if (!order)
		order = strcmp(x->site, y->site);
	return order ? order : compare_functions(x, y);
}

void diff_rows_init(struct diff_rows *rows, const struct path_tree *t)
{
	*rows = (struct diff_rows){0};
	for (uint32_t i = 0; i < path_tree_node_count(t); i++)
		add_row(rows, t, i);
	vec_sort(&rows->row, compare_rows);
}

void diff_rows_deinit(struct diff_rows *rows)
{
	vec_release(&rows->row, e, vec_deinit(&e->function));
}

/* -- CSV -- */

static void put_change(FILE *out, const uint64_t value[2])
{
	fprintf(out, "%" PRIu64 ",%" PRIu64 ",%s%" PRIu64 ",", value[PATH_OLD], value[PATH_NEW],
		value[PATH_NEW] < value[PATH_OLD] ? "-" : "", change_size(value));
}

static void put_csv_row(FILE *out, const struct diff_row *row, bool has_blocks)
{
	put_change(out, row->bytes);
	if (has_blocks)
		put_change(out, row->blocks);
	else
		fputs(",,,", out);
	csv_begin(out, row->site);
	csv_put_quoted(out, row->site);
	fputs("\",", out);
	csv_begin(out, row->function.count ? row->function.data[0] : "");
	for (size_t i = 0; i < row->function.count; i++) {
		fputs(i ? " > " : "", out);
		csv_put_quoted(out, row->function.data[i]);
	}
	fputs("\"\r\n", out);
}

void diff_rows_write_csv(FILE *out, const struct diff_rows *rows, bool has_blocks)
{
	fputs("old_bytes,new_bytes,change_bytes,old_blocks,new_blocks,change_blocks,call_site,"
	      "path\r\n", out);
	for (size_t i = 0; i < rows->row.count; i++)
		put_csv_row(out, &rows->row.data[i], has_blocks);
}

/* -- JSON -- */

static void put_json_row(struct json_writer *w, const struct diff_row *row, bool has_blocks)
{
	json_write_open(w, NULL, '{');
	json_write_text(w, "call_site", row->site);
	json_write_numbers(w, {"old_bytes", row->bytes[PATH_OLD]},
			   {"new_bytes", row->bytes[PATH_NEW]});
	if (has_blocks) {
		json_write_numbers(w, {"old_blocks", row->blocks[PATH_OLD]},
				   {"new_blocks", row->blocks[PATH_NEW]});
	} else {
		json_write_text(w, "old_blocks", NULL);
		json_write_text(w, "new_blocks", NULL);
	}
	json_write_open(w, "path", '[');
	for (size_t i = 0; i < row->function.count; i++)
		json_write_text(w, NULL, row->function.data[i]);
	json_write_close(w, 2);
}

void diff_rows_write_json(FILE *out, const struct diff_rows *rows, bool has_blocks)
{
	struct json_writer w = {.out = out};

	json_write_open(&w, NULL, '[');
	for (size_t i = 0; i < rows->row.count; i++) {
		json_write_line(&w, 0);
		put_json_row(&w, &rows->row.data[i], has_blocks);
	}
	json_write_close(&w, 1);
}

static const char *const side_names[] = {[PATH_OLD] = "old", [PATH_NEW] = "new"};

static void put_profile(FILE *out, const struct input *input, const char *more)
{
	if (input->kind == INPUT_RECORDING)
		recording_json_write(out, input->recording, more);
	else
		massif_json_write(out, input->massif);
}

typedef uint32_t number_fn(const struct frame_match *m, enum path_side side, size_t frame);

static void put_numbers(struct json_writer *w, const struct frame_match *m, enum path_side side,
			size_t frames, number_fn *number)
{
	json_write_open(w, number == frame_match_site ? "site" : "function", '[');
	for (size_t i = 0; i < frames; i++)
		json_write_number(w, NULL, number(m, side, i));
	json_write_close(w, 1);
}

static void put_match(struct json_writer *w, const struct frame_match *m, const struct input *input)
{
	json_write_open(json_write_line(w, 0), "match", '{');
	json_write_open(w, "functions", '[');
	for (uint32_t i = 0; i < frame_match_function_count(m); i++)
		json_write_text(w, NULL, frame_match_name(m, i));
	json_write_close(w, 1);
	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		size_t frames = recording_rows(input_paths(&input[side]), RECORDING_FRAMES);

		json_write_open(json_write_line(w, 0), side_names[side], '{');
		put_numbers(w, m, (enum path_side)side, frames, frame_match_function);
		json_write_line(w, 0);
		put_numbers(w, m, (enum path_side)side, frames, frame_match_site);
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
}

void diff_json_write(FILE *out, const struct input *input, char *const more[2],
		     const struct frame_match *match, const struct diff_json_rows *rows)
{
	static const char *const view_names[] = {"old_view", "new_view"};
	struct json_writer w = {.out = out};

	json_write_open(&w, NULL, '{');
	json_write_text(&w, "format", "ptmem-report-diff");
	json_write_number(&w, "version", 1);
	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		json_write_name(json_write_line(&w, 0), side_names[side]);
		put_profile(out, &input[side], more[side]);
	}
	put_match(&w, match, input);
	for (int side = PATH_OLD; rows && side <= PATH_NEW; side++) {
		json_write_text(json_write_line(&w, 0), view_names[side], rows->view[side]);
	}
	if (rows) {
		json_write_name(json_write_line(&w, 0), "changes");
		diff_rows_write_json(out, rows->rows, input->kind == INPUT_RECORDING);
		fputs(rows->more ? rows->more : "", out);
	}
	json_write_close(&w, 1);
	putc('\n', out);
}
