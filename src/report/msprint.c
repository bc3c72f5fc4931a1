/*
 * ms_print's text, and for estimates from samples (massif_file.h) their standard errors:
 * header, graph, list of detailed snapshots, table with trees.
 *
 * Scripts parse this text, so it is identical to the byte, and uses Perl's arithmetic: double
 * precision throughout, in the order given in doc/massif.md section 4. The trees are walked
 * without recursion; a line's prefix is a string that grows by two characters at each level.
 */
#include "report/massif_output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "profile/estimate.h"
#include "report/massif_file.h"

#define RULE "--------------------------------------------------------------------------------\n"

struct label {
	char text[32]; /* 5 wide, or 6 where rounding gives it one digit more */
	const char *unit;
};

struct tree_printer {
	FILE *out;
	const struct massif_file *file;
	uint64_t total;       /* of the snapshot */
	double threshold;
	uint64_t interval;    /* mean distance of samples; 0: exact */
	VEC(char) prefix;     /* of the children of the current node */
};

/* The text may have several lines. What acts on a terminal is made visible. */
static void put_text(FILE *out, struct massif_text t)
{
	while (t.size) {
		const char *end = memchr(t.at, '\n', t.size);
		size_t n = end ? (size_t)(end - t.at) : t.size;

		text_put_name(out, t.at, n);
		if (end)
			putc('\n', out);
		n += end != NULL;
		t.at += n;
		t.size -= n;
	}
}

/* Numbers. */

/* @bytes * 100 / @total as in Perl: integers as long as possible, exact quotients too. */
static double percent(uint64_t bytes, uint64_t total)
{
	uint64_t product;

	if (!total)
		return 0;
	if (__builtin_mul_overflow(bytes, 100, &product))
		return (double)bytes * 100 / (double)total;
	return product % total == 0 ? (double)(product / total) : (double)product / (double)total;
}

static struct label make_label(uint64_t value, double scaled, const char *unit)
{
	struct label l = {.unit = unit};

	if (value < 1000)
		snprintf(l.text, sizeof(l.text), "%5" PRIu64, value);
	else
		snprintf(l.text, sizeof(l.text), "%5.*f",
			 scaled < 10  ? 3 :
			 scaled < 100 ? 2 :
					1,
			 scaled);
	return l;
}

/* Scales down by 1024 as long as 1000 is reached: nine units. */
static struct label binary_label(uint64_t value, const char *const unit[9])
{
	double scaled = (double)value;
	size_t i = 0;

	for (; i < 8 && scaled >= 1000; i++)
		scaled /= 1024;
	return make_label(value, scaled, unit[i]);
}

static struct label bytes_label(uint64_t value)
{
	static const char *const unit[9] = {"B", "KB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};

	return binary_label(value, unit);
}

static struct label milliseconds_label(uint64_t value)
{
	double scaled = (double)value;
	const char *unit = "ms";

	if (scaled >= 1000) {
		scaled /= 1000;
		unit = "s";
	}
	if (scaled >= 3600) {
		scaled /= 3600;
		unit = "h";
	}
	return make_label(value, scaled, unit);
}

/* False for a unit that massif does not have. */
static bool time_label(struct massif_text unit, uint64_t value, struct label *out)
{
	static const char *const instructions[9] = {"i",  "ki", "Mi", "Gi", "Ti",
						    "Pi", "Ei", "Zi", "Yi"};

	if (massif_text_is(unit, "i"))
		*out = binary_label(value, instructions);
	else if (massif_text_is(unit, "ms"))
		*out = milliseconds_label(value);
	else if (massif_text_is(unit, "B"))
		*out = bytes_label(value);
	else
		return false;
	return true;
}

/* The graph. */

/* A canvas of columns 0 .. width and rows 0 .. height, row 0 being the x axis. */
struct text_graph {
	unsigned width, height;
	char *cell;
};

static char *cell_at(struct text_graph *c, unsigned x, unsigned y)
{
	return &c->cell[(size_t)y * (c->width + 1) + x];
}

static void init_graph(struct text_graph *c, unsigned width, unsigned height)
{
	size_t size = ((size_t)width + 1) * ((size_t)height + 1);

	*c = (struct text_graph){.width = width, .height = height, .cell = xmalloc(size)};
	memset(c->cell, ' ', size);
	memset(cell_at(c, 1, 0), '-', width);
	for (unsigned y = 1; y <= height; y++)
		*cell_at(c, 0, y) = '|';
	*cell_at(c, 0, 0) = '+';
	*cell_at(c, width, 0) = '>';
	*cell_at(c, 0, height) = '^';
}

static int rank(char mark)
{
	return mark == '#' ? 3 : mark == '@' ? 2 : mark == ':' ? 1 : 0;
}

/* The column of a snapshot at @time; width + 1 = to the right of the graph. */
static unsigned column_of(uint64_t time, uint64_t end, unsigned width)
{
	double column = (double)time / (double)end * width;

	if (time == end)
		return width;
	return column >= width ? width + 1 : (unsigned)column + 1;
}

/* Draws a bar as high as @total reaches; returns its height in rows. */
static unsigned draw_bar(struct text_graph *c, unsigned x, uint64_t total, double row_bytes,
			 char mark)
{
	unsigned top = 0;

	for (unsigned y = 1; y <= c->height; y++) {
		if (!((double)total >= y * row_bytes))
			continue;
		if (x <= c->width && rank(*cell_at(c, x, y)) <= rank(mark))
			*cell_at(c, x, y) = mark;
		top = y;
	}
	return top;
}

static void draw_snapshots(struct text_graph *c, const struct massif_file *f, uint64_t end,
			   uint64_t peak)
{
	double row_bytes = (double)peak / c->height;
	unsigned x = 0, top = 0;
	char mark = ':';

	for (size_t i = 0; i < f->snapshot_count; i++) {
		const struct massif_snapshot *s = &f->snapshot[i];
		unsigned last = x;

		x = column_of(s->time, end, c->width);
		for (unsigned gap = last + 1; top && gap < x; gap++)
			*cell_at(c, gap, top) = mark;
		mark = i == f->peak ? '#' : s->kind == MASSIF_EMPTY ? ':' : '@';
		top = draw_bar(c, x, s->total, row_bytes, mark);
	}
}

static bool print_graph(FILE *out, const struct massif_file *f, unsigned width, unsigned height)
{
	uint64_t end = f->snapshot[f->snapshot_count - 1].time;
	uint64_t peak = MAX(f->largest_total, 1u);
	struct label x_label, y_label = bytes_label(peak);
	struct text_graph c;

	end = MAX(end, 1u);
	if (!time_label(f->time_unit, end, &x_label))
		return false;
	init_graph(&c, width, height);
	draw_snapshots(&c, f, end, peak);
	fprintf(out, "    %2s\n", y_label.unit);
	for (unsigned y = height + 1; y-- > 0;) {
		fputs(y == height ? y_label.text : y == 0 ? "   0 " : "     ", out);
		fwrite(cell_at(&c, 0, y), 1, width + 1, out);
		fprintf(out, "%s\n", y == 0 ? x_label.unit : "");
	}
	fprintf(out, "     0%*s%5s\n", width > 5 ? (int)width - 5 : 0, "", x_label.text);
	free(c.cell);
	return true;
}

/* The trees. */

static bool is_significant(const struct tree_printer *p, const struct massif_node *n)
{
	double error = estimate_error_bound(p->interval, n->bytes);

	if (n->parent && n->bytes && estimate_is_below_resolution((double)n->bytes, error))
		return false;
	return !n->parent || p->threshold == 0 ||
	       (p->total && percent(n->bytes, p->total) >= p->threshold);
}

/* The first significant node from @node on along its siblings; 0 if there is none. */
static uint32_t find_significant(const struct tree_printer *p, uint32_t node)
{
	while (node && !is_significant(p, &p->file->node[node]))
		node = p->file->node[node].next_sibling;
	return node;
}

static void print_prefix(const struct tree_printer *p)
{
	put_text(p->out, (struct massif_text){p->prefix.data, p->prefix.count});
}

/* " +- 10 %", or "" if exact. */
static const char *error_of(const struct tree_printer *p, uint64_t bytes,
			    char out[static AMOUNT_SIZE])
{
	*out = '\0';
	if (p->interval)
		amount_error((double)bytes, estimate_error_bound(p->interval, bytes), out);
	return out;
}

/* Prints the node's line; appends to the prefix for its children. */
static void enter_node(struct tree_printer *p, const struct massif_node *n)
{
	char buf[AMOUNT_SIZE], error[AMOUNT_SIZE];

	print_prefix(p);
	fprintf(p->out, "%s%05.2f%% (%sB%s)", n->parent ? "->" : "", percent(n->bytes, p->total),
		amount_commas(n->bytes, buf), error_of(p, n->bytes, error));
	put_text(p->out, n->text);
	fputc('\n', p->out);
	if (n->parent) {
		*vec_add(&p->prefix) = n->next_sibling ? '|' : ' ';
		*vec_add(&p->prefix) = ' ';
	}
}

/* Prints the line after the node's significant children; restores the prefix. */
static void leave_node(struct tree_printer *p, const struct massif_node *n)
{
	uint64_t bytes = 0, count = 0;
	char buf[AMOUNT_SIZE], error[AMOUNT_SIZE];

	for (uint32_t i = n->first_child; i; i = p->file->node[i].next_sibling) {
		if (is_significant(p, &p->file->node[i]))
			continue;
		count++;
		if (__builtin_add_overflow(bytes, p->file->node[i].bytes, &bytes))
			bytes = UINT64_MAX;
	}
	if (count) {
		print_prefix(p);
		fprintf(p->out,
			"->%05.2f%% (%sB%s) in %" PRIu64
			"+ places, all below ms_print's threshold (%05.2f%%)%s\n",
			percent(bytes, p->total), amount_commas(bytes, buf),
			error_of(p, bytes, error), count, p->threshold,
			p->interval ? " or below resolution" : "");
	}
	if (count || !n->first_child) {
		print_prefix(p);
		fputc('\n', p->out);
	}
	if (n->parent)
		p->prefix.count -= 2;
}

static void print_tree(struct tree_printer *p, uint32_t root)
{
	const struct massif_node *node = p->file->node;
	uint32_t at = root;

	enter_node(p, &node[at]);
	for (uint32_t next = find_significant(p, node[at].first_child);;) {
		if (next) {
			at = next;
			enter_node(p, &node[at]);
			next = find_significant(p, node[at].first_child);
			continue;
		}
		leave_node(p, &node[at]);
		if (at == root)
			return;
		next = find_significant(p, node[at].next_sibling);
		at = node[at].parent;
	}
}

/* The parts of the report. */

static void print_header(FILE *out, const struct massif_file *f, const char *arguments)
{
	char size[AMOUNT_SIZE];

	amount_bytes((double)massif_sampling_interval(f), size);
	fputs(RULE "Command:            ", out);
	put_text(out, f->command);
	fputs("\nMassif arguments:  ", out);
	put_text(out, f->desc);
	fprintf(out, "ms_print arguments:%s\n" RULE, arguments);
	if (massif_sampling_interval(f))
		fprintf(out, "Numbers of the heap are estimates from samples, one every %s of "
			     "allocations.\nThe standard error of B bytes is at most "
			     "sqrt(%s * B).\n" RULE, size, size);
	fputs("\n\n", out);
}

static void print_detailed(FILE *out, const struct massif_file *f)
{
	const char *separator = "";

	fprintf(out, "\nNumber of snapshots: %zu\n Detailed snapshots: [", f->snapshot_count);
	for (size_t i = 0; i < f->snapshot_count; i++) {
		if (f->snapshot[i].kind == MASSIF_EMPTY)
			continue;
		fprintf(out, "%s%zu%s", separator, i, i == f->peak ? " (peak)" : "");
		separator = ", ";
	}
	fputs("]\n\n", out);
}

static void print_columns(FILE *out, struct massif_text unit)
{
	_cleanup_free_ char *time = xasprintf("time(%.*s)", MASSIF_TEXT(unit));

	fprintf(out, RULE "%3s %14s %16s %16s %13s %12s\n" RULE, "n", time, "total(B)",
		"useful-heap(B)", "extra-heap(B)", "stacks(B)");
}

static void print_row(FILE *out, const struct massif_snapshot *s)
{
	char time[AMOUNT_SIZE], total[AMOUNT_SIZE], heap[AMOUNT_SIZE],
		extra[AMOUNT_SIZE], stacks[AMOUNT_SIZE];

	fprintf(out, "%3" PRIu64 " %14s %16s %16s %13s %12s\n", s->number,
		amount_commas(s->time, time), amount_commas(s->total, total),
		amount_commas(s->heap, heap), amount_commas(s->extra, extra),
		amount_commas(s->stacks, stacks));
}

static void print_table(FILE *out, const struct massif_file *f, double threshold)
{
	struct tree_printer p = {.out = out, .file = f, .threshold = threshold,
				 .interval = massif_sampling_interval(f)};

	for (size_t i = 0; i < f->snapshot_count; i++) {
		if (i == 0 || f->snapshot[i - 1].root)
			print_columns(out, f->time_unit);
		print_row(out, &f->snapshot[i]);
		p.total = f->snapshot[i].total;
		if (f->snapshot[i].root)
			print_tree(&p, f->snapshot[i].root);
	}
	vec_deinit(&p.prefix);
}

int msprint(FILE *out, const struct massif_file *file, const struct msprint_options *options,
	    char **why_out)
{
	print_header(out, file, options->arguments);
	if (!file->snapshot_count) {
		*why_out = xstrdup("the file holds no snapshot");
		return -EINVAL;
	}
	if (!print_graph(out, file, options->width, options->height)) {
		*why_out = xasprintf("bad time_unit: %.*s", MASSIF_TEXT(file->time_unit));
		return -EINVAL;
	}
	print_detailed(out, file);
	print_table(out, file, options->threshold);
	return 0;
}
