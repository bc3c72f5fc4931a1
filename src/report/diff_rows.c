/* See diff_rows.h. */
#include "report/diff_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv_text.h"
#include "base/json_text.h"

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
	if (rows->row.count > 1)
		qsort(rows->row.data, rows->row.count, sizeof(*rows->row.data), compare_rows);
}

void diff_rows_deinit(struct diff_rows *rows)
{
	for (size_t i = 0; i < rows->row.count; i++)
		vec_deinit(&rows->row.data[i].function);
	vec_deinit(&rows->row);
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
	putc('"', out);
	csv_put_quoted(out, row->site);
	fputs("\",\"", out);
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

static void put_text(FILE *out, const char *text)
{
	json_put_text(out, text, strlen(text));
}

static void put_number(FILE *out, const char *name, uint64_t value, bool is_known)
{
	fprintf(out, ",\"%s\":", name);
	if (is_known)
		fprintf(out, "%" PRIu64, value);
	else
		fputs("null", out);
}

static void put_json_row(FILE *out, const struct diff_row *row, bool has_blocks)
{
	fputs("{\"call_site\":", out);
	put_text(out, row->site);
	put_number(out, "old_bytes", row->bytes[PATH_OLD], true);
	put_number(out, "new_bytes", row->bytes[PATH_NEW], true);
	put_number(out, "old_blocks", row->blocks[PATH_OLD], has_blocks);
	put_number(out, "new_blocks", row->blocks[PATH_NEW], has_blocks);
	fputs(",\"path\":[", out);
	for (size_t i = 0; i < row->function.count; i++) {
		fputs(i ? "," : "", out);
		put_text(out, row->function.data[i]);
	}
	fputs("]}", out);
}

void diff_rows_write_json(FILE *out, const struct diff_rows *rows, bool has_blocks)
{
	putc('[', out);
	for (size_t i = 0; i < rows->row.count; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_json_row(out, &rows->row.data[i], has_blocks);
	}
	putc(']', out);
}
