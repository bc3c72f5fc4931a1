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

#define HEAD "ptmem-baseline "
#define MAGIC HEAD "1"

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
	vec_release(&b->process, e, free(e->path));
	for (size_t i = 0; i < b->function.count; i++) {
		free(b->function.data[i].name);
		vec_release(&b->function.data[i].site, e, free(*e));
	}
	vec_deinit(&b->function);
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

/* -- functions that gates name -- */

static struct baseline_function *find_function(const struct baseline *b, enum limit_metric metric,
					       const char *name)
{
	for (size_t i = 0; i < b->function.count; i++) {
		struct baseline_function *f = &b->function.data[i];

		if (f->metric == metric && strcmp(f->name, name) == 0)
			return f;
	}
	return NULL;
}

const struct baseline_function *baseline_find(const struct baseline *b, const struct fail_if *f)
{
	_cleanup_free_ char *name = text_clean(f->of.function, f->of.function_size);

	return find_function(b, f->metric, name);
}

const char *baseline_want(struct baseline *b, const struct fail_if *f)
{
	char *name = text_clean(f->of.function, f->of.function_size);

	if (f->metric == LIMIT_PEAK) {
		free(name);
		return "of the peak of a function recordings tell bounds alone: compare two by "
		       "--diff, or use --limit of ptmem, which is exact";
	}
	if (find_function(b, f->metric, name))
		free(name);
	else
		*vec_add(&b->function) =
			(struct baseline_function){.metric = f->metric, .name = name};
	return NULL;
}

static void add_site_names(struct baseline_function *f, const struct measured *m)
{
	for (size_t i = 0; i < m->site.count; i++) {
		const char *name = measured_function(m, i);

		if (m->site.data[i].value[PATH_NEW] > 0)
			*vec_add(&f->site) = text_clean(name, strlen(name));
	}
}

/* Adds what a run has of @f to the @runs before it. */
static void measure_function(struct baseline_function *f, struct diff_pair *pair, unsigned runs)
{
	const struct limit of = {.function = f->name, .function_size = strlen(f->name)};
	struct measured m = {0};
	double whole[2], value = 0;

	measure_select(pair, f->metric, whole);
	if (measure_has_paths(pair, f->metric)) {
		measured_init(&m, pair, f->metric, &of);
		value = m.sum[PATH_NEW];
		f->is_there |= m.has_function;
		add_site_names(f, &m);
		measured_deinit(&m);
	}
	/* there may be paths that hold nothing at the end */
	if (pair->input[PATH_NEW].recording && !f->is_there) {
		measured_init_maximum(&m, pair, &of, whole);
		f->is_there = m.has_function;
		measured_deinit(&m);
	}
	f->min = runs ? MIN(f->min, value) : value;
	f->max = MAX(f->max, value);
}

/* -- processes -- */

static double number_of(const struct recording *r, const char *key)
{
	return strtod(recording_meta(r, key) ?: "0", NULL);
}

static bool is_child(const struct baseline_process *c, const struct baseline_process *of)
{
	static const double rounding = 0.01;

	return c->parent && c->parent == of->pid && c->start >= of->start - rounding &&
	       c->start <= of->end + rounding;
}

/* Whether the run is another one than those before, and not another process of one of these. */
static void note_process(struct baseline *b, const char *path, const struct recording *r)
{
	double start = number_of(r, "start") + number_of(r, "lead") / 1e9;
	const struct baseline_process p = {
		text_clean(path, strlen(path)),
		strtoull(recording_meta(r, "pid") ?: "0", NULL, 10),
		strtoull(recording_meta(r, "parent") ?: "0", NULL, 10), start,
		number_of(r, "start") + recording_duration(r) / 1e3};

	for (size_t i = 0; i < b->process.count && !b->doubt; i++) {
		const struct baseline_process *q = &b->process.data[i];

		if (p.pid && p.pid == q->pid && p.start == q->start)
			b->doubt = xasprintf("%s and %s are of the same process, and not two runs",
					     q->path, p.path);
		else if (is_child(&p, q) || is_child(q, &p))
			b->doubt = xasprintf("%s and %s are of a process and its child in one run: "
					     "they count as two runs; give one process of each "
					     "run, or make a baseline for each",
					     is_child(&p, q) ? q->path : p.path,
					     is_child(&p, q) ? p.path : q->path);
	}
	*vec_add(&b->process) = p;
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
	for (size_t i = 0; i < b->function.count; i++)
		if (measure_knows(input, b->function.data[i].metric))
			measure_function(&b->function.data[i], &pair, b->runs);
	recording_view_deinit(&pair.view[PATH_NEW]);
	frame_match_free(pair.match);
	if (input->recording)
		note_process(b, path, input->recording);
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

static int compare_functions(const void *a, const void *b)
{
	const struct baseline_function *x = a, *y = b;

	return x->metric != y->metric ? (int)x->metric - (int)y->metric : strcmp(x->name, y->name);
}

static void put_functions(FILE *out, const struct baseline *b, enum limit_metric metric)
{
	for (size_t i = 0; i < b->function.count; i++) {
		const struct baseline_function *f = &b->function.data[i];
		const struct baseline_row row = {f->name, {0}, f->min, f->max};

		if (f->metric != metric)
			continue;
		putc('@', out);
		put_row(out, metric, &row);
	}
}

void baseline_write(FILE *out, const struct baseline *b)
{
	fputs("# What the program needs, by ptmem-report --write-baseline: metric, value (of "
	      "several runs\n# the least and the largest), and function; without one in all.\n",
	      out);
	if (b->function.count)
		fputs("# Lines with @ are about all call paths with the function.\n", out);
	fputs(MAGIC "\n", out);
	vec_sort(&b->function, compare_functions);
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
		put_functions(out, b, m);
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

/* NULL, or what is wrong with the function of @row, whose name it takes. */
static const char *take_function(struct baseline *b, enum limit_metric m,
				 const struct baseline_row *row)
{
	bool is_known = find_function(b, m, row->name);

	if (is_known) {
		free(row->name);
		return "a line before has the same function";
	}
	*vec_add(&b->function) = (struct baseline_function){
		.metric = m, .name = row->name, .is_there = row->max > 0, .min = row->min,
		.max = row->max};
	return NULL;
}

/* NULL, or what is wrong with @line. */
static const char *parse_line(struct baseline *b, char *line)
{
	bool is_of_paths = *line == '@';
	char *name = line + is_of_paths, *value = strchr(name, ' ');
	enum limit_metric m =
		value ? limit_find_metric(name, (size_t)(value - name)) : LIMIT_METRICS;
	struct baseline_row row = {0};

	if (parse_head(b, line))
		return NULL;
	if (m == LIMIT_METRICS || !limit_info[m].is_compared)
		return "a line is METRIC VALUE [FUNCTION], or @METRIC VALUE FUNCTION";
	char *end = parse_number(value + 1, &row.min);

	row.max = row.min;
	if (end && strncmp(end, "..", 2) == 0)
		end = parse_number(end + 2, &row.max);
	if (!end || (*end && *end != ' ') || row.max < row.min)
		return "a value is a number, or two with .. between";
	if (is_of_paths && !*end)
		return "a line is @METRIC VALUE FUNCTION";
	b->metric[m].is_known |= !*end;
	if (*end)
		row.name = text_clean(end + 1, strlen(end + 1));
	if (is_of_paths)
		return take_function(b, m, &row);
	if (*end)
		*vec_add(&b->metric[m].row) = row;
	else
		b->metric[m].sum = row;
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

/* NULL, or what is wrong with @line, which comes before all others. */
static const char *parse_first(const char *line)
{
	if (strcmp(line, MAGIC) == 0)
		return NULL;
	if (strncmp(line, HEAD, strlen(HEAD)) == 0)
		return "of another version of ptmem: write it again, by --write-baseline";
	return "no baseline, which begins with " MAGIC;
}

/* Whether git has put @line between two versions. */
static bool is_conflict(const char *line)
{
	static const char *const marks[] = {"<<<<<<<", "|||||||", "=======", ">>>>>>>"};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (strncmp(line, marks[i], 7) == 0)
			return true;
	return false;
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
		if (is_conflict(line))
			why = "a conflict of a merge: write the baseline again, by "
			      "--write-baseline";
		else
			why = has_begun ? parse_line(b, line) : parse_first(line);
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

static bool is_site_of(const struct baseline_function *of, const char *name)
{
	for (size_t i = 0; of && i < of->site.count; i++)
		if (strcmp(of->site.data[i], name) == 0)
			return true;
	return !of;
}

/* Leaves those of call paths with the function @of. */
static void keep_sites(row_pairs *pairs, const struct baseline_function *of)
{
	size_t kept = 0;

	for (size_t i = 0; i < pairs->count; i++)
		if (is_site_of(of, pairs->data[i].name->name))
			pairs->data[kept++] = pairs->data[i];
	pairs->count = kept;
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
			 const struct baseline_function *of, gate_sites *out)
{
	row_pairs pairs = {0};

	pair_all(old, new, &pairs);
	keep_sites(&pairs, of);
	add_pairs(&pairs, GATE_SITES, out, compare_growth);
}

void baseline_add_changes(const struct baseline_metric *old, const struct baseline_metric *new,
			  size_t max, gate_sites *out)
{
	row_pairs pairs = {0};

	pair_all(old, new, &pairs);
	add_pairs(&pairs, max, out, compare_change);
}
