/* See gates.h. */
#include "report/gates/gates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "report/gates/fail_if.h"
#include "report/gates/measure.h"
#include "report/massif_file.h"

bool gates_are_wanted(const struct report_request *r)
{
	const struct report_format *format = report_format_of(r);

	return r->fail_if.count || r->limit.count || r->limits_file.count ||
	       (format && format->gate);
}

static enum gate_form form_of(const struct report_request *r)
{
	const struct report_format *format = report_format_of(r);
	bool is_data = format && format->kinds != AS_GATE; /* the JSON of a profile has it inside */

	if (r->baseline)
		return format && format->gate ? format->gate : GATE_MARKDOWN;
	return format && !is_data ? format->gate : GATE_NONE;
}

void gates_show(const struct report_request *r, const struct gate *g)
{
	gate_log(g, "");
	gate_write(stdout, form_of(r), g);
}

static void set_title(struct gate *g, const struct input *input)
{
	_cleanup_free_ char *command = input_command(input);

	if (*command)
		gate_set_title(g, command);
}

/* -- metrics -- */

static void add_values(struct gate *g, const struct diff_pair *given)
{
	struct diff_pair pair = {.input = given->input, .match = given->match};

	for (enum limit_metric m = 0; m < LIMIT_METRICS; m++) {
		double value[2];

		if ((g->is_diff && !measure_knows(&pair.input[PATH_OLD], m)) ||
		    !measure_knows(&pair.input[PATH_NEW], m))
			continue;
		measure_select(&pair, m, value);
		*vec_add(&g->value) = (struct gate_value){m, {value[0], value[1]},
							  {value[0], value[1]}};
	}
	for (int side = PATH_OLD; side <= PATH_NEW; side++)
		recording_view_deinit(&pair.view[side]);
}

static const struct gate_value *find_value(const struct gate *g, enum limit_metric metric)
{
	for (size_t i = 0; i < g->value.count; i++)
		if (g->value.data[i].metric == metric)
			return &g->value.data[i];
	return NULL;
}

static int refuse(const char *option, const char *text, enum limit_metric metric, bool is_massif)
{
	if (is_massif)
		log_error("--%s=%s: massif files do not tell what was ever allocated: %s "
			  "recordings (ptmem --record)", option, text,
			  strcmp(option, "limit") == 0 ? "check" : "compare");
	else if (metric == LIMIT_LEAKED)
		log_error("--%s=%s: leaks are in recordings of ptmem --leak-check", option, text);
	else
		log_error("--%s=%s: %s is not in the profile", option, text,
			  limit_info[metric].name);
	return EXIT_REFUSED;
}

/* -- call sites -- */

/* At most @max sites of @pair, those that grew or, with @is_by_change, changed; all of one side. */
static void add_sites(const struct diff_pair *given, enum limit_metric metric, size_t max,
		      gate_sites *out, bool is_by_change)
{
	struct diff_pair pair = {.input = given->input, .match = given->match};
	struct measured m;
	double value[2];

	measure_select(&pair, metric, value);
	if (measure_has_paths(&pair, metric)) {
		measured_init(&m, &pair, metric, NULL);
		measured_sort(&m, is_by_change);
		for (size_t i = 0; i < m.site.count && out->count < max; i++) {
			const double *v = m.site.data[i].value;

			if (v[PATH_NEW] > v[PATH_OLD] || (is_by_change && v[0] != v[1]))
				measured_add_site(&m, i, out);
		}
		measured_deinit(&m);
	}
	for (int side = PATH_OLD; side <= PATH_NEW; side++)
		recording_view_deinit(&pair.view[side]);
}

/* Whose table a report has: of what fails, else of numbers of allocations, else of the peak. */
static enum limit_metric table_metric(const struct gate *g)
{
	for (size_t i = 0; i < g->check.count; i++)
		if (g->check.data[i].message && limit_info[g->check.data[i].metric].has_paths)
			return g->check.data[i].metric;
	const struct gate_value *v = find_value(g, LIMIT_ALLOCATIONS);

	return v && (!g->is_diff || v->max[0] != v->max[1]) ? LIMIT_ALLOCATIONS : LIMIT_PEAK;
}

/* -- comparisons -- */

/* Of two profiles, or of a baseline and the runs of a profile. */
struct gate_sides {
	const struct diff_pair *pair; /* NULL: of a baseline */
	const struct baseline *old, *new;
};

static int refuse_condition(const struct gate_sides *c, const char *text, enum limit_metric metric)
{
	if (c->pair)
		return refuse("fail-if", text, metric, c->pair->input->massif);
	bool is_old = !c->old->metric[metric].is_known;
	const char *cause = metric == LIMIT_RSS && is_old ?
				    ": it is in those of several runs, as of --repeat" :
			    metric == LIMIT_LEAKED ? ": it is in recordings of --leak-check" :
						     "";

	log_error("--fail-if=%s: the %s has no %s%s", text, is_old ? "baseline" : "profile",
		  limit_info[metric].name, cause);
	return EXIT_REFUSED;
}

static void add_growth(const struct gate_sides *c, enum limit_metric metric, gate_sites *out)
{
	if (c->pair)
		add_sites(c->pair, metric, GATE_SITES, out, false);
	else
		baseline_add_growth(&c->old->metric[metric], &c->new->metric[metric], NULL, out);
}

/* What both sides have of a function: bounds, by enum path_side; of all but the peak one value. */
struct function_bounds {
	struct gate_value least, most;
	bool has_function;
};

static void set_both(struct gate_value *v, int side, double value)
{
	v->min[side] = v->max[side] = value;
}

static void find_bounds(const struct diff_pair *pair, const struct fail_if *f,
			const struct measured *m, struct function_bounds *out)
{
	bool has_maximum = f->metric == LIMIT_PEAK && pair->input[PATH_NEW].recording;
	struct measured maximum = {0};
	double most[2] = {0, 0};

	/* also tells whether there are such paths that hold nothing at the moment */
	if (pair->input[PATH_NEW].recording)
		measured_init_maximum(&maximum, pair, &f->of, most);
	*out = (struct function_bounds){{.metric = f->metric}, {.metric = f->metric},
					m->has_function || maximum.has_function};
	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		double largest = has_maximum ? maximum.site.data->value[side] : 0;
		double least = MAX(m->sum[side], largest);

		set_both(&out->least, side, least);
		set_both(&out->most, side, has_maximum ? MAX(most[side], least) : least);
	}
	measured_deinit(&maximum);
}

/*
 * Of the peak of a function a recording tells two bounds, as for limits: what grew has grown in
 * both. In one alone it may be that only the moment of the program's peak is another one.
 */
static char *function_message(const struct fail_if *f, const struct function_bounds *b,
			      const char *text, struct gate *g)
{
	_cleanup_free_ char *least = fail_if_message(f, &b->least);
	_cleanup_free_ char *most = fail_if_message(f, &b->most);
	const struct gate_value *low = &b->least, *high = &b->most;

	if (!least && !most)
		return NULL;
	if (low->max[PATH_OLD] == high->max[PATH_OLD] && low->max[PATH_NEW] == high->max[PATH_NEW])
		return_ptr(least);
	_cleanup_free_ char *was = gate_band(f->metric, low->min[PATH_OLD], high->max[PATH_OLD]);
	_cleanup_free_ char *is = gate_band(f->metric, low->min[PATH_NEW], high->max[PATH_NEW]);

	if (least && most)
		return xasprintf("it was %s, and is %s", was, is);
	gate_warn(g, xasprintf("--fail-if=%s may have happened: recordings tell that it was %s, "
			       "and is %s; --limit of ptmem is exact", text, was, is));
	return NULL;
}

/* A condition about a function, of a baseline that names it, too: 0, EXIT_GROWN or EXIT_REFUSED. */
static int check_named_function(const struct gate_sides *c, const struct fail_if *f,
				const char *text, struct gate *g)
{
	const struct baseline_function *old = baseline_find(c->old, f);
	const struct baseline_function *new = baseline_find(c->new, f);

	if (!find_value(g, f->metric))
		return refuse_condition(c, text, f->metric);
	if (!old || !new) {
		log_error("--fail-if=%s: the baseline does not have this function: write it with "
			  "the same --fail-if", text);
		return EXIT_REFUSED;
	}
	if (!old->is_there && !new->is_there)
		gate_warn(g, xasprintf("--fail-if=%s: no call path has this function", text));
	const struct gate_value v = {f->metric, {old->min, new->min}, {old->max, new->max}};
	struct gate_check *check = gate_add_check(g, text, f->metric, fail_if_message(f, &v));

	if (!check->message)
		return 0;
	baseline_add_growth(&c->old->metric[f->metric], &c->new->metric[f->metric], new,
			    &check->site);
	return EXIT_GROWN;
}

/* Of two profiles. */
static int check_function(const struct gate_sides *c, const struct fail_if *f, const char *text,
			  struct gate *g)
{
	struct function_bounds bounds;
	struct measured m = {0};
	double value[2];

	struct diff_pair pair = {.input = c->pair->input, .match = c->pair->match};

	measure_select(&pair, f->metric, value);
	if (measure_has_paths(&pair, f->metric))
		measured_init(&m, &pair, f->metric, &f->of);
	find_bounds(&pair, f, &m, &bounds);
	if (!bounds.has_function)
		gate_warn(g, xasprintf("--fail-if=%s: no call path has this function", text));
	struct gate_check *check = gate_add_check(g, text, f->metric,
						  function_message(f, &bounds, text, g));
	bool has_failed = check->message;

	measured_sort(&m, false);
	for (size_t i = 0; has_failed && i < m.site.count && check->site.count < GATE_SITES; i++)
		if (m.site.data[i].value[PATH_NEW] > m.site.data[i].value[PATH_OLD])
			measured_add_site(&m, i, &check->site);
	measured_deinit(&m);
	for (int side = PATH_OLD; side <= PATH_NEW; side++)
		recording_view_deinit(&pair.view[side]);
	return has_failed ? EXIT_GROWN : 0;
}

static int check_conditions(const struct report_request *r, const struct gate_sides *compared,
			    struct gate *g)
{
	int status = 0;

	for (size_t i = 0; i < r->fail_if.count; i++) {
		const char *text = r->fail_if.data[i];
		struct fail_if f = {0};

		fail_if_parse(text, &f); /* request_check has checked it */
		if (f.of.function && (!compared->pair || find_value(g, f.metric))) {
			int verdict = compared->pair ?
					      check_function(compared, &f, text, g) :
					      check_named_function(compared, &f, text, g);

			if (verdict == EXIT_REFUSED)
				return verdict;
			status = MAX(status, verdict);
			continue;
		}
		const struct gate_value *v = find_value(g, f.metric);

		if (!v)
			return refuse_condition(compared, text, f.metric);
		struct gate_check *c = gate_add_check(g, text, f.metric, fail_if_message(&f, v));

		if (!c->message)
			continue;
		status = EXIT_GROWN;
		add_growth(compared, f.metric, &c->site);
	}
	return status;
}

int gates_of_pair(const struct report_request *r, const struct diff_pair *pair, struct gate *g)
{
	g->is_diff = true;
	set_title(g, &pair->input[PATH_NEW]);
	add_values(g, pair);
	int status = check_conditions(r, &(struct gate_sides){.pair = pair}, g);

	g->site_metric = table_metric(g);
	if (status != EXIT_REFUSED && form_of(r) != GATE_NONE)
		add_sites(pair, g->site_metric, r->top, &g->site, true);
	return status;
}

/* -- one profile -- */

struct limits_reader {
	const struct report_request *request;
	const struct diff_pair *pair;
	struct gate *gate;
	int status;
};

/*
 * Of the peak of a function a recording tells what it holds at the peak of the program, which @m
 * has, and the most that each of its paths holds: if one path has more, @m becomes that one. A
 * limit that may be exceeded all the same is a doubt. Of other metrics only whether there are such
 * paths is of interest.
 */
static void use_maximum(const struct limits_reader *reader, const struct limit *l,
			struct measured *m)
{
	struct measured maximum;
	double bound[2];

	measured_init_maximum(&maximum, reader->pair, l, bound);
	double most = bound[PATH_NEW];
	double least = maximum.site.data->value[PATH_NEW];

	m->has_function |= maximum.has_function;
	if (l->metric == LIMIT_PEAK && least > m->sum[PATH_NEW]) {
		measured_deinit(m);
		*m = maximum;
		m->sum[PATH_NEW] = least;
	} else {
		measured_deinit(&maximum);
	}
	if (l->metric != LIMIT_PEAK || limit_is_exceeded(l, m->sum[PATH_NEW]) ||
	    !limit_is_exceeded(l, most))
		return;
	_cleanup_free_ char *range = gate_band(LIMIT_PEAK, m->sum[PATH_NEW], most);

	gate_warn(reader->gate, xasprintf("--limit=%s may be exceeded: a recording tells that it "
					  "is %s; --limit of ptmem is exact", l->text, range));
}

static void check_limit(struct limits_reader *reader, const struct limit *l)
{
	const struct gate_value *value = find_value(reader->gate, l->metric);
	struct diff_pair pair = {.input = reader->pair->input, .match = reader->pair->match};
	struct measured m = {0};
	double v[2];

	measure_select(&pair, l->metric, v);
	if (measure_has_paths(&pair, l->metric))
		measured_init(&m, &pair, l->metric, l->function ? l : NULL);
	if (l->function && pair.input[PATH_NEW].recording)
		use_maximum(reader, l, &m);
	if (l->function && !m.has_function)
		gate_warn(reader->gate,
			  xasprintf("--limit=%s: no call path has this function", l->text));
	double is = l->function ? m.sum[PATH_NEW] : value->max[PATH_NEW];
	bool has_failed = limit_is_exceeded(l, is);
	_cleanup_free_ char *amount = limit_amount(l->metric, is);
	struct gate_check *c = gate_add_check(reader->gate, l->text, l->metric,
					      has_failed ? xasprintf("it is %s", amount) : NULL);

	reader->status = has_failed ? EXIT_GROWN : reader->status;
	measured_sort(&m, false);
	for (size_t i = 0; has_failed && i < m.site.count && i < GATE_SITES; i++)
		if (m.site.data[i].value[PATH_NEW] > 0)
			measured_add_site(&m, i, &c->site);
	measured_deinit(&m);
	recording_view_deinit(&pair.view[PATH_NEW]);
}

/* What to do about a limit of calls that @r does not know. */
static int refuse_calls(const struct limit *l, const struct recording *r)
{
	_cleanup_free_ char *known = r ? measure_known_calls(r) : NULL;

	log_error("--limit=%s: calls are measured while the program runs: give the limit, or "
		  "--within=FUNCTION, to ptmem, whose --record then has what they needed%s%s",
		  l->text, known ? "; this one has that " : "", known ?: "");
	return EXIT_REFUSED;
}

/* Of calls a recording has the value of the worst one, not where in it. */
static void check_calls(struct limits_reader *reader, const struct limit *l)
{
	const struct recording *r = reader->pair->input[PATH_NEW].recording;
	_cleanup_free_ char *which = NULL;
	double is;

	if (!r || !measure_calls(r, l, &is, &which)) {
		reader->status = refuse_calls(l, r);
		return;
	}
	bool has_failed = limit_is_exceeded(l, is);
	_cleanup_free_ char *amount = limit_amount(l->metric, is);

	gate_add_check(reader->gate, l->text, l->metric,
		       has_failed ? xasprintf("it is %s in %s", amount, which) : NULL);
	reader->status = has_failed ? EXIT_GROWN : reader->status;
}

static const char *read_limit(void *ctx, const char *text)
{
	struct limits_reader *reader = ctx;
	struct limit l;
	const char *why = limit_parse(text, &l);

	if (why)
		return why;
	if (l.within)
		check_calls(reader, &l);
	else if (find_value(reader->gate, l.metric))
		check_limit(reader, &l);
	else
		reader->status = refuse("limit", text, l.metric,
					reader->pair->input[PATH_NEW].massif);
	return reader->status == EXIT_REFUSED ? "it cannot be checked" : NULL;
}

static void read_limits(struct limits_reader *reader, const char *path)
{
	size_t before = reader->gate->check.count;

	if (option_read_lines(path, read_limit, reader) != 0)
		reader->status = EXIT_REFUSED;
	else if (reader->gate->check.count == before)
		gate_warn(reader->gate, xasprintf("%s: there are no limits in it", path));
}

int gates_of_profile(const struct report_request *r, const struct input *input, struct gate *g)
{
	const struct input inputs[2] = {{.kind = input->kind}, *input};
	struct diff_pair pair = {.input = inputs, .match = diff_pair_match(inputs, true)};
	struct limits_reader reader = {r, &pair, g, 0};

	set_title(g, input);
	if (input_gap(input))
		gate_warn(g, xasprintf("%s: %s", r->path[0], input_gap(input)));
	add_values(g, &pair);
	for (size_t i = 0; i < r->limit.count && reader.status != EXIT_REFUSED; i++)
		read_limit(&reader, r->limit.data[i]);
	for (size_t i = 0; i < r->limits_file.count && reader.status != EXIT_REFUSED; i++)
		read_limits(&reader, r->limits_file.data[i]);
	g->site_metric = table_metric(g);
	if (reader.status != EXIT_REFUSED && form_of(r) != GATE_NONE)
		add_sites(&pair, g->site_metric, r->top, &g->site, false);
	frame_match_free(pair.match);
	return reader.status;
}

/* -- a baseline -- */

#define KIND_SIZE 64

static const char *kind_of(const struct baseline *b, char out[static KIND_SIZE])
{
	char size[AMOUNT_SIZE];

	if (!b->interval)
		return "exact";
	snprintf(out, KIND_SIZE, "of samples every %s", amount_bytes((double)b->interval, size));
	return out;
}

/* Numbers that have little in common are compared all the same, but it is said. */
static void warn_of_unlike(const struct baseline *old, const struct baseline *new, struct gate *g)
{
	char a[KIND_SIZE], b[KIND_SIZE];

	if (old->program && new->program && strcmp(old->program, new->program) != 0)
		gate_warn(g, xasprintf("the baseline is one of %s, the profile one of %s",
				       old->program, new->program));
	if (new->doubt)
		gate_warn(g, xstrdup(new->doubt));
	if (!old->lacks_lines && new->lacks_lines)
		gate_warn(g, xstrdup("the baseline is of a program with debug information, the "
				     "profile of one without: call sites in inlined functions "
				     "differ"));
	if (old->interval != new->interval)
		gate_warn(g, xasprintf("the baseline is %s, the profile %s: differences are those "
				       "of estimates, too", kind_of(old, a), kind_of(new, b)));
}

int gates_of_baseline(const struct report_request *r, const struct baseline *old,
		      const struct baseline *new, struct gate *g)
{
	const struct gate_sides compared = {.old = old, .new = new};

	g->is_diff = true;
	g->runs = new->runs;
	g->has_bands = old->runs > 1 || new->runs > 1;
	if (new->title)
		gate_set_title(g, new->title);
	warn_of_unlike(old, new, g);
	for (enum limit_metric m = 0; m < LIMIT_METRICS; m++) {
		const struct baseline_metric *a = &old->metric[m], *b = &new->metric[m];

		if (a->is_known && b->is_known)
			*vec_add(&g->value) = (struct gate_value){
				m, {a->sum.min, b->sum.min}, {a->sum.max, b->sum.max}};
	}
	int status = check_conditions(r, &compared, g);

	g->site_metric = table_metric(g);
	baseline_add_changes(&old->metric[g->site_metric], &new->metric[g->site_metric], r->top,
			     &g->site);
	return status;
}
