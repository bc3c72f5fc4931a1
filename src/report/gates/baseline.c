/* See baseline.h. */
#include "report/gates/baseline.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "report/gates/measure.h"
#include "report/massif_file.h"

#define MAGIC "ptmem-baseline 1"

static void free_row(struct baseline_row *row)
{
	for (size_t i = 0; i < row->place.count; i++)
		free(row->place.data[i].file);
	vec_deinit(&row->place);
	free(row->name);
}

void baseline_deinit(struct baseline *b)
{
	for (enum limit_metric m = 0; m < LIMIT_METRICS; m++) {
		for (size_t i = 0; i < b->metric[m].row.count; i++)
			free_row(&b->metric[m].row.data[i]);
		vec_deinit(&b->metric[m].row);
	}
	free(b->title);
	free(b->program);
	free(b->doubt);
	*b = (struct baseline){0};
}

/* -- a run -- */

/* Of equal names one row remains, with the sum and the places of all. */
static bool merge_row(struct baseline_row *to, struct baseline_row *from)
{
	if (text_compare(to, from) != 0)
		return false;
	to->max = to->min += from->min;
	vec_append(&to->place, &from->place);
	from->place.count = 0;
	free_row(from);
	return true;
}

static void read_rows(const struct measured *m, baseline_rows *out)
{
	for (size_t i = 0; i < m->site.count; i++) {
		double value = m->site.data[i].value[PATH_NEW];
		const char *name = measured_function(m, i);
		gate_sites site = {0};

		if (value <= 0)
			continue;
		measured_add_site(m, i, &site);
		struct baseline_row *row = vec_add(out);

		*row = (struct baseline_row){.name = text_clean(name, strlen(name)),
					     .min = value, .max = value};
		*vec_add(&row->place) = (struct baseline_place){site.data->file, site.data->line,
								value};
		free(site.data->label);
		vec_deinit(&site);
	}
	vec_sort(out, text_compare);
	vec_merge(out, merge_row);
}

/* Adds a run, whose rows @row gives away, to the @runs before it. */
static void add_run(struct baseline_metric *to, baseline_rows *run, unsigned runs)
{
	baseline_rows all = {0};
	size_t a = 0, b = 0;

	while (a < to->row.count || b < run->count) {
		struct baseline_row *x = a < to->row.count ? &to->row.data[a] : NULL;
		struct baseline_row *y = b < run->count ? &run->data[b] : NULL;
		int order = !x ? 1 : !y ? -1 : text_compare(x, y);
		struct baseline_row *row = vec_add(&all);

		*row = order <= 0 ? *x : *y;
		if (order < 0)
			row->min = 0;
		if (order > 0 && runs)
			row->min = 0;
		if (order == 0) {
			row->min = MIN(x->min, y->min);
			row->max = MAX(x->max, y->max);
			free_row(y);
		}
		a += order <= 0;
		b += order >= 0;
	}
	vec_deinit(&to->row);
	vec_deinit(run);
	to->row = all;
}

/* Of which program a run is, and whether it is like those before. */
static void note_program(struct baseline *b, const struct input *input)
{
	_cleanup_free_ char *command = input_command(input), *program = input_program(input);
	uint64_t interval = input_interval(input);

	if (!b->runs) {
		b->title = xstrdup(command);
		b->program = text_clean(program, strlen(program));
		b->interval = interval;
		b->lacks_lines = input_lines(input) == INPUT_NO_LINES;
	} else if (strcmp(b->program, program) != 0 && !b->doubt) {
		b->doubt = xasprintf("runs of %s and of %s are taken for one program's", b->program,
				     program);
	} else if (b->interval != interval && !b->doubt) {
		b->doubt = xstrdup("exact runs and runs of samples, or of different ones, are "
				   "taken together");
	}
}

void baseline_add(struct baseline *b, const char *path, const struct input *input)
{
	const struct input inputs[2] = {{.kind = input->kind}, *input};
	struct diff_pair pair = {.input = inputs, .match = diff_pair_match(inputs, false)};

	for (enum limit_metric metric = 0; metric < LIMIT_METRICS; metric++) {
		struct baseline_metric *to = &b->metric[metric];
		baseline_rows rows = {0};
		double value[2];

		to->is_known = limit_info[metric].is_compared && measure_knows(input, metric) &&
			       (to->is_known || !b->runs);
		if (!to->is_known)
			continue;
		measure_select(&pair, metric, value);
		if (metric != LIMIT_RSS && measure_has_paths(&pair, metric)) {
			struct measured m;

			measured_init(&m, &pair, metric, NULL);
			read_rows(&m, &rows);
			measured_deinit(&m);
		}
		to->sum.min = b->runs ? MIN(to->sum.min, value[PATH_NEW]) : value[PATH_NEW];
		to->sum.max = MAX(to->sum.max, value[PATH_NEW]);
		add_run(to, &rows, b->runs);
	}
	recording_view_deinit(&pair.view[PATH_NEW]);
	frame_match_free(pair.match);
	note_program(b, input);
	if (input_gap(input) && !b->doubt)
		b->doubt = xasprintf("%s: %s", path, input_gap(input));
	b->runs++;
}

/* -- the file -- */

static void put_row(FILE *out, enum limit_metric metric, const struct baseline_row *row)
{
	fprintf(out, "%s %.0f", limit_info[metric].name, row->min);
	if (row->max > row->min)
		fprintf(out, "..%.0f", row->max);
	if (row->name)
		fprintf(out, " %s", row->name);
	putc('\n', out);
}

void baseline_write(FILE *out, const struct baseline *b)
{
	fputs("# What the program needs, by ptmem-report --write-baseline: metric, value (of "
	      "several runs\n# the least and the largest), and function; without one in all.\n"
	      MAGIC "\n", out);
	fprintf(out, "runs %u\n", b->runs);
	if (b->program)
		fprintf(out, "program %s\n", b->program);
	if (b->interval)
		fprintf(out, "samples %" PRIu64 "\n", b->interval);
	if (b->lacks_lines)
		fputs("lines no\n", out);
	for (enum limit_metric m = 0; m < LIMIT_METRICS; m++) {
		if (!b->metric[m].is_known || (m == LIMIT_RSS && b->runs < 2))
			continue;
		put_row(out, m, &b->metric[m].sum);
		for (size_t i = 0; i < b->metric[m].row.count; i++)
			put_row(out, m, &b->metric[m].row.data[i]);
	}
}

/* A number of digits: the end of it; NULL: there is none. */
static char *parse_number(char *text, double *out)
{
	size_t digits = strspn(text, "0123456789");

	if (!digits || digits > 15) /* a double has them all */
		return NULL;
	*out = strtod(text, NULL);
	return text + digits;
}

/* Whether @line is about the whole file. */
static bool parse_head(struct baseline *b, const char *line)
{
	if (text_begins_with(line, "runs ")) {
		b->runs = (unsigned)strtoul(line + strlen("runs "), NULL, 10);
	} else if (text_begins_with(line, "program ") && !b->program) {
		const char *name = line + strlen("program ");

		b->program = text_clean(name, strlen(name));
	} else if (strcmp(line, "lines no") == 0) {
		b->lacks_lines = true;
	} else if (text_begins_with(line, "samples ")) {
		b->interval = strtoull(line + strlen("samples "), NULL, 10);
	} else {
		return false;
	}
	return true;
}

/* NULL, or what is wrong with @line. */
static const char *parse_line(struct baseline *b, char *line)
{
	char *value = strchr(line, ' ');
	enum limit_metric m =
		value ? limit_find_metric(line, (size_t)(value - line)) : LIMIT_METRICS;
	struct baseline_row row = {0};

	if (parse_head(b, line))
		return NULL;
	if (m == LIMIT_METRICS || !limit_info[m].is_compared)
		return "a line is METRIC VALUE [FUNCTION]";
	char *end = parse_number(value + 1, &row.min);

	row.max = row.min;
	if (end && strncmp(end, "..", 2) == 0)
		end = parse_number(end + 2, &row.max);
	if (!end || (*end && *end != ' ') || row.max < row.min)
		return "a value is a number, or two with .. between";
	b->metric[m].is_known |= !*end;
	if (!*end) {
		b->metric[m].sum = row;
	} else {
		row.name = text_clean(end + 1, strlen(end + 1));
		*vec_add(&b->metric[m].row) = row;
	}
	return NULL;
}

static int sort_all(struct baseline *b, char **why_out)
{
	for (enum limit_metric m = 0; m < LIMIT_METRICS; m++) {
		const baseline_rows *rows = &b->metric[m].row;

		vec_sort(rows, text_compare);
		for (size_t i = 1; i < rows->count; i++) {
			if (text_compare(&rows->data[i - 1], &rows->data[i]) != 0)
				continue;
			*why_out = xasprintf("two lines have %s of %s", limit_info[m].name,
					     rows->data[i].name);
			return -EINVAL;
		}
	}
	return 0;
}

/* Reads the lines of @text, which is modified. */
static int parse(struct baseline *b, char *text, char **why_out)
{
	bool has_begun = false;
	unsigned number = 0;

	for (char *line; (line = strsep(&text, "\n")) != NULL;) {
		const char *why = NULL;

		number++;
		line[strcspn(line, "\r")] = '\0';
		if (*line == '#' || !*line)
			continue;
		if (!has_begun && strcmp(line, MAGIC) != 0)
			why = "no baseline, which begins with " MAGIC;
		else if (has_begun)
			why = parse_line(b, line);
		has_begun = true;
		if (why) {
			*why_out = xasprintf("line %u: %s", number, why);
			return -EINVAL;
		}
	}
	if (!has_begun) {
		*why_out = xstrdup("no baseline, which begins with " MAGIC);
		return -EINVAL;
	}
	return sort_all(b, why_out);
}

int baseline_read(const char *path, struct baseline *out, char **why_out)
{
	_cleanup_free_ char *data = NULL;
	size_t size;
	int rc = input_read(path, &data, &size);

	if (rc != 0)
		return rc;
	_cleanup_free_ char *text = xstrndup(data, size);

	*out = (struct baseline){0};
	rc = parse(out, text, why_out);
	if (rc != 0)
		baseline_deinit(out);
	return rc;
}

/* -- comparison -- */

/* A function in both; rows that a side lacks are zeroed but for the name. */
struct pair_of_rows {
	const struct baseline_row *name; /* the new one if it is there */
	double old, new;
};

typedef VEC(struct pair_of_rows) row_pairs;

/*
 * What counts as the values of two bands: those that are nearest to each other, of bands that
 * overlap the same.
 */
static struct pair_of_rows pair_rows(const struct baseline_row *x, const struct baseline_row *y)
{
	static const struct baseline_row none;
	const struct baseline_row *a = x ? x : &none, *b = y ? y : &none;
	struct pair_of_rows p = {y ? y : x, a->max, a->max};

	if (b->min > a->max)
		p.new = b->min;
	if (b->max < a->min) {
		p.old = a->min;
		p.new = b->max;
	}
	return p;
}

static void pair_all(const struct baseline_metric *old, const struct baseline_metric *new,
		     row_pairs *out)
{
	size_t a = 0, b = 0;

	while (a < old->row.count || b < new->row.count) {
		const struct baseline_row *x = a < old->row.count ? &old->row.data[a] : NULL;
		const struct baseline_row *y = b < new->row.count ? &new->row.data[b] : NULL;
		int order = !x ? 1 : !y ? -1 : text_compare(x, y);

		*vec_add(out) = pair_rows(order <= 0 ? x : NULL, order >= 0 ? y : NULL);
		a += order <= 0;
		b += order >= 0;
	}
}

static int compare_growth(const void *a, const void *b)
{
	const struct pair_of_rows *x = a, *y = b;
	double of_x = x->new - x->old, of_y = y->new - y->old;

	return of_x != of_y ? (of_x < of_y) - (of_x > of_y) : text_compare(x->name, y->name);
}

static int compare_change(const void *a, const void *b)
{
	const struct pair_of_rows *x = a, *y = b;
	double of_x = fabs(x->new - x->old), of_y = fabs(y->new - y->old);

	return of_x != of_y ? (of_x < of_y) - (of_x > of_y) : text_compare(x->name, y->name);
}

/* A line that has just the growth has probably been added; otherwise the one with most. */
static const struct baseline_place *place_of(const struct pair_of_rows *p)
{
	static const struct baseline_place unknown;
	const struct baseline_place *best = NULL;

	for (size_t i = 0; i < p->name->place.count; i++) {
		const struct baseline_place *place = &p->name->place.data[i];

		if (place->value == p->new - p->old)
			return place;
		if (!best || best->value < place->value)
			best = place;
	}
	return best ?: &unknown;
}

static void add_pairs(row_pairs *pairs, size_t max, gate_sites *out,
		      int (*compare)(const void *a, const void *b))
{
	vec_sort(pairs, compare);
	for (size_t i = 0; i < pairs->count && out->count < max; i++) {
		const struct pair_of_rows *p = &pairs->data[i];
		const struct baseline_row *row = p->name;

		if (p->new == p->old || (compare == compare_growth && p->new < p->old))
			break;
		const struct baseline_place *at = place_of(p);
		_cleanup_free_ char *label =
			at->file ? xasprintf("%s (%s:%llu)", row->name, text_base_name(at->file),
					     (unsigned long long)at->line) :
				   xstrdup(row->name);
		struct gate_site *site = gate_add_site(out, label, at->file, at->line);

		site->value[PATH_OLD] = p->old;
		site->value[PATH_NEW] = p->new;
	}
	vec_deinit(pairs);
}

void baseline_add_growth(const struct baseline_metric *old, const struct baseline_metric *new,
			 size_t max, gate_sites *out)
{
	row_pairs pairs = {0};

	pair_all(old, new, &pairs);
	add_pairs(&pairs, max, out, compare_growth);
}

void baseline_add_changes(const struct baseline_metric *old, const struct baseline_metric *new,
			  size_t max, gate_sites *out)
{
	row_pairs pairs = {0};

	pair_all(old, new, &pairs);
	add_pairs(&pairs, max, out, compare_change);
}
