/* See repeat.h. */
#include "session/repeat.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "session/run.h"

void repeat_begin(struct repeat *r, struct run *run)
{
	if (!r->runs)
		r->input = lseek(STDIN_FILENO, 0, SEEK_CUR);
	else if (r->input >= 0)
		lseek(STDIN_FILENO, r->input, SEEK_SET);
	run->first_pid = r->first_pid;
	run->first_counted = r->first_counted;
	run->sequence = r->sequence;
	run->is_repeated = r->runs > 0;
}

static void add_values(struct gate *g, const struct gate *from)
{
	for (size_t i = 0; i < from->value.count; i++) {
		const struct gate_value *v = &from->value.data[i];
		struct gate_value *of = NULL;

		for (size_t k = 0; k < g->value.count; k++)
			if (g->value.data[k].metric == v->metric)
				of = &g->value.data[k];
		if (!of) {
			*vec_add(&g->value) = *v;
			continue;
		}
		of->min[PATH_NEW] = MIN(of->min[PATH_NEW], v->min[PATH_NEW]);
		of->max[PATH_NEW] = MAX(of->max[PATH_NEW], v->max[PATH_NEW]);
	}
}

static void take_sites(gate_sites *to, gate_sites *from)
{
	struct gate old = {.site = *to};

	gate_deinit(&old);
	*to = *from;
	*from = (gate_sites){0};
}

/* Those of the last run: process ids are in them. */
static void take_warnings(struct gate *to, struct gate *from)
{
	struct gate old = {.warning = to->warning};

	gate_deinit(&old);
	to->warning = from->warning;
	from->warning = (typeof(from->warning)){0};
}

static void add_limit(struct repeat_limit *of, struct limit_result *result)
{
	if (!result->process)
		return;
	of->min = of->known ? MIN(of->min, result->value) : result->value;
	of->max = of->known ? MAX(of->max, result->value) : result->value;
	of->known++;
	if (!result->is_exceeded)
		return;
	of->exceeded++;
	take_sites(&of->site, &result->site);
}

static void add_results(struct repeat *r, struct run *run)
{
	while (r->limit.count < run->limits.count) {
		const struct limit *l = &run->limits.data[r->limit.count];

		*vec_add(&r->limit) =
			(struct repeat_limit){.metric = l->metric, .text = xstrdup(l->text)};
	}
	for (size_t i = 0; i < run->limits.count; i++)
		add_limit(&r->limit.data[i], &run->results.data[i]);
	add_values(&r->gate, &run->gate);
	take_warnings(&r->gate, &run->gate);
	r->gate.processes = MAX(r->gate.processes, run->gate.processes);
	r->runs++;
}

void repeat_add(struct repeat *r, struct run *run, bool is_cut)
{
	r->cut = is_cut ? r->runs + 1 : 0;
	if (!is_cut || !r->runs)
		add_results(r, run);
	gate_set_title(&r->gate, run->command);
	r->first_pid = run->first_pid;
	r->first_counted = run->first_counted;
	r->sequence = run->sequence;
}

/* "a band of 6.9 %" */
static char *describe_band(double min, double max)
{
	double percent = 100 * (max - min) / min;

	if (percent < 0.001)
		return xstrdup("a band of less than 0.001 %");
	return xasprintf(percent < 10 ? "a band of %.2g %%" : "a band of %.0f %%", percent);
}

static void print_value(const struct gate_value *v, unsigned runs)
{
	double min = v->min[PATH_NEW], max = v->max[PATH_NEW];
	_cleanup_free_ char *text = gate_band(v->metric, min, max);

	if (min >= max && runs > 1)
		log_print(LOG_RESULT, "  %-12s %s in each: deterministic here",
			  limit_info[v->metric].name, text);
	else if (min > 0 && min < max) {
		_cleanup_free_ char *band = describe_band(min, max);

		log_print(LOG_RESULT, "  %-12s %s, %s", limit_info[v->metric].name, text, band);
	} else
		log_print(LOG_RESULT, "  %-12s %s", limit_info[v->metric].name, text);
}

/* What the first run reads from a pipe is not there for the others. */
static void print_hint(const struct repeat *r)
{
	struct stat st;

	if (fstat(STDIN_FILENO, &st) != 0 || (!S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode)))
		return;
	for (size_t i = 0; i < r->gate.value.count; i++) {
		const struct gate_value *v = &r->gate.value.data[i];

		if (v->metric == LIMIT_RSS || v->min[PATH_NEW] >= v->max[PATH_NEW])
			continue;
		log_info("hint: standard input is a pipe, of which each run reads what the runs "
			 "before have left; a file (< FILE) is read by each from its beginning");
		return;
	}
}

static void check_limit(struct repeat *r, struct repeat_limit *l)
{
	_cleanup_free_ char *band = gate_band(l->metric, l->min, l->max);
	bool has_failed = l->exceeded == r->runs;
	struct gate_check *c = gate_add_check(
		&r->gate, l->text, l->metric,
		!l->known  ? xstrdup("it was not measured") :
		has_failed ? xasprintf("it is %s in %u run%s", band, r->runs,
				       r->runs == 1 ? "" : "s") :
			     NULL);

	c->is_unmeasured = !l->known;
	if (l->known && l->known < r->runs)
		gate_warn(&r->gate, xasprintf("%s was measured in %u of %u runs", l->text,
					      l->known, r->runs));
	if (has_failed)
		take_sites(&c->site, &l->site);
	else if (l->exceeded)
		gate_warn(&r->gate, xasprintf("%s is exceeded in %u of %u runs, which is no "
					      "failure: it is %s", l->text, l->exceeded, r->runs,
					      band));
}

static void print_count(const struct repeat *r, unsigned wanted)
{
	if (r->cut == 1)
		log_print(LOG_RESULT, "the first of %u runs, till a signal ended it:", wanted);
	else if (r->cut)
		log_print(LOG_RESULT, "%u of %u runs; a signal has ended the next one, which does "
			  "not count:", r->runs, wanted);
	else
		log_print(LOG_RESULT, r->gate.processes > 1 ?
				      "%u runs, each value of the process that has most:" :
				      "%u runs:", r->runs);
}

void repeat_finish(struct repeat *r, unsigned wanted)
{
	r->gate.runs = r->runs;
	if (!r->gate.value.count) {
		log_warn("--repeat: nothing was measured");
		for (size_t i = 0; i < r->limit.count; i++)
			gate_add_check(&r->gate, r->limit.data[i].text, r->limit.data[i].metric,
				       xstrdup("it was not measured"));
		return;
	}
	print_count(r, wanted);
	for (size_t i = 0; i < r->gate.value.count; i++)
		print_value(&r->gate.value.data[i], r->runs);
	print_hint(r);
	for (size_t i = 0; i < r->limit.count; i++)
		check_limit(r, &r->limit.data[i]);
	gate_log(&r->gate, "limit exceeded: ");
}

void repeat_deinit(struct repeat *r)
{
	for (size_t i = 0; i < r->limit.count; i++) {
		struct gate sites = {.site = r->limit.data[i].site};

		gate_deinit(&sites);
		free(r->limit.data[i].text);
	}
	vec_deinit(&r->limit);
	gate_deinit(&r->gate);
}
