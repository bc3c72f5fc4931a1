/* See limits.h. */
#include "session/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/option_row.h"
#include "output/call_sites.h"
#include "output/report_tree.h"
#include "profile/groups.h"
#include "profile/history.h"
#include "session/memory_source.h"
#include "session/options.h"
#include "session/out.h"
#include "session/run.h"
#include "session/session.h"
#include "session/summary.h"
#include "session/within.h"

/* -- the values -- */

/* What leaf @leaf of @s had at the fork, if it is of a forked child. */
static struct leaf_calls calls_before(const struct session *s, uint32_t leaf)
{
	const struct session_inherited *in = &s->process.inherited;

	return leaf < in->leaf.count ? in->leaf.data[leaf] : (struct leaf_calls){0};
}

static uint64_t leaf_amount(const struct session *s, uint32_t leaf, enum limit_metric metric)
{
	const struct profile *p = s->heap.profile;
	const struct leaf *l = profile_leaf(p, leaf);
	const struct leaf_calls before = calls_before(s, leaf);
	const struct history *h = profile_whole_history(p);

	switch (metric) {
	case LIMIT_ALLOCATIONS:
		return profile_count(p, l->calls - before.calls);
	case LIMIT_LIVE:
		return l->live_bytes;
	case LIMIT_ALLOCATED:
		return l->total_bytes - before.bytes;
	case LIMIT_TEMPORARY:
		return h && leaf < h->leaf.count ? profile_count(p, h->leaf.data[leaf].temporary) :
						   0;
	case LIMIT_PEAK: /* find_amounts */
	case LIMIT_RSS:
	case LIMIT_LEAKED: /* limits_note_leaks */
	case LIMIT_METRICS:
		break;
	}
	return 0;
}

static bool has_function(const struct shown_stack *stack, const struct limit *l)
{
	for (size_t i = stack->first; i < stack->first + stack->count; i++) {
		const struct symbol *symbol = shown_stack_symbol(stack, i);

		for (uint32_t k = 0; k < symbol->count; k++) {
			_cleanup_free_ char *name = shown_frame_name(symbol, &symbol->frame[k]);

			if (limit_is_of(l, name))
				return true;
		}
	}
	return false;
}

/* Whether profiles keep the peak of @l's function. */
static bool has_group(const struct limit *l)
{
	return l->metric == LIMIT_PEAK && l->function;
}

size_t limits_count_groups(const struct run *r)
{
	size_t count = 0;

	for (size_t i = 0; i < r->limits.count; i++)
		count += has_group(&r->limits.data[i]);
	return count;
}

void limits_find_groups(const struct run *run, const struct report *r, uint32_t node, bool *is_in)
{
	struct shown_stack stack = {.report = r};
	bool is_shown = shown_stack_fill(&stack, node);

	for (size_t i = 0; i < run->limits.count; i++)
		if (has_group(&run->limits.data[i]))
			*is_in++ = is_shown && has_function(&stack, &run->limits.data[i]);
	shown_stack_deinit(&stack);
}

/* Leaves nothing of leaves outside of the limit's function. Whether any is inside. */
static bool keep_function(struct leaf_amounts *amounts, const struct report *r,
			  const struct limit *l)
{
	struct shown_stack stack = {.report = r};
	bool any = false;

	for (uint32_t i = 1; i <= profile_leaf_count(r->profile); i++) {
		bool is_inside = shown_stack_fill(&stack, profile_leaf(r->profile, i)->node) &&
				 has_function(&stack, l);

		any |= is_inside;
		if (i <= amounts->count && !is_inside)
			amounts->bytes[i] = 0;
	}
	shown_stack_deinit(&stack);
	return any;
}

/*
 * What each leaf has of the metric, in the limit's function; of resident memory what the heap can
 * tell: its peak. Whether any path has that function.
 */
static bool find_amounts(const struct session *s, const struct report *r, const struct limit *l,
			 struct leaf_amounts *out)
{
	uint64_t sum;

	if (l->metric == LIMIT_PEAK || l->metric == LIMIT_RSS) {
		peak_amounts(r->profile, out, &sum);
	} else {
		*out = (struct leaf_amounts){.count = profile_leaf_count(r->profile)};
		out->bytes = xcalloc((size_t)out->count + 1, sizeof(*out->bytes));
		for (uint32_t i = 1; i <= out->count; i++)
			out->bytes[i] = leaf_amount(s, i, l->metric);
	}
	return !l->function || keep_function(out, r, l);
}

static uint64_t sum_of(const struct leaf_amounts *amounts)
{
	uint64_t sum = 0;

	for (uint32_t i = 1; i <= amounts->count; i++)
		sum += amounts->bytes[i];
	return sum;
}

/*
 * What each leaf of a function has when these have most, instead of what @amounts has of them at
 * the peak of the program. That is the larger only if names were known too late for the group.
 */
static void use_group(const struct profile *p, const struct leaf_group *group,
		      struct leaf_amounts *amounts)
{
	if (group->peak <= sum_of(amounts))
		return;
	for (uint32_t i = 1; i <= amounts->count; i++)
		amounts->bytes[i] = groups_at_peak(group, i, profile_leaf(p, i)->live_bytes);
}

/* Allocations, reallocs among them, in units of profile_count; of a forked child, its own. */
static uint64_t all_calls(const struct session *s)
{
	const struct profile *p = s->heap.profile;
	uint64_t all = 0;

	for (uint32_t i = 1; i <= profile_leaf_count(p); i++)
		all += profile_leaf(p, i)->calls - calls_before(s, i).calls;
	return all;
}

static double temporary_percent(const struct session *s)
{
	const struct history *h = profile_whole_history(s->heap.profile);
	uint64_t temporary = 0, all = all_calls(s);

	for (size_t i = 1; h && i < h->leaf.count; i++)
		temporary += h->leaf.data[i].temporary;
	return amount_percent(temporary, all);
}

static double value_of_program(const struct session *s, enum limit_metric metric)
{
	const struct profile *p = s->heap.profile;
	const struct profile_totals *t = profile_totals(p);

	switch (metric) {
	case LIMIT_PEAK:
		return (double)t->peak_bytes;
	case LIMIT_LIVE:
		return (double)t->live_bytes;
	case LIMIT_ALLOCATED:
		return (double)(t->allocated_bytes - s->process.inherited.totals.allocated_bytes);
	case LIMIT_ALLOCATIONS:
		return (double)profile_count(p, all_calls(s));
	case LIMIT_RSS:
		return (double)s->end.peak_resident;
	case LIMIT_TEMPORARY:
		return temporary_percent(s);
	case LIMIT_LEAKED: /* of all processes */
	case LIMIT_METRICS:
		break;
	}
	return 0;
}

/* -- call sites -- */

static void add_site(gate_sites *to, const struct call_site_sum *from)
{
	_cleanup_free_ char *path = from->file && from->dir && *from->file != '/' ?
					    xasprintf("%s/%s", from->dir, from->file) :
					    NULL;
	struct gate_site *site =
		gate_add_site(to, from->text, path ? path : from->file, from->line);

	site->value[PATH_NEW] = (double)from->bytes;
}

/* Those with most. */
static void add_sites(gate_sites *to, const struct report *r, const struct leaf_amounts *amounts)
{
	struct call_site_sum site[GATE_SITES];
	size_t count = amounts->count ? call_sites_largest(r, amounts, site, GATE_SITES, NULL) : 0;

	for (size_t i = 0; i < count; i++) {
		if (site[i].bytes)
			add_site(to, &site[i]);
		free(site[i].text);
	}
}

/* -- limits of a process -- */

#define OTHERS_MAX 4 /* processes that exceed a limit, too, of which the value is noted */

/* "it is 12 bytes in process 7, ./a". The caller frees it. */
static char *message_of(const struct run *run, const struct limit *l,
			const struct limit_result *result)
{
	_cleanup_free_ char *amount = limit_amount(l->metric, result->value);

	if (l->metric == LIMIT_LEAKED)
		return xasprintf("%s lost", amount);
	return xasprintf("it is %s%s in %s", amount,
			 run->values.is_estimate ? ", an estimate," : "", result->process);
}

/* The same with all processes that exceed it. */
static char *message_of_all(const struct run *run, const struct limit *l,
			    const struct limit_result *result)
{
	char *text = message_of(run, l, result);
	unsigned left = result->exceeded > 1 ? result->exceeded - 1 : 0;

	for (size_t i = 0; i < result->others.count; i++, left--) {
		char *longer = xasprintf("%s; %s", text, result->others.data[i]);

		free(text);
		text = longer;
	}
	if (!left)
		return text;
	char *longer = xasprintf("%s; and %u more process%s", text, left, left == 1 ? "" : "es");

	free(text);
	return longer;
}

static void free_result(struct limit_result *r)
{
	struct gate g = {.site = r->site};

	gate_deinit(&g);
	vec_release(&r->others, e, free(*e));
	free(r->process);
	*r = (struct limit_result){0};
}

/* Says that @l is exceeded, unless there are several runs. */
static void log_exceeded(const struct run *run, const struct limit *l,
			 const struct limit_result *result)
{
	struct gate one = {0};

	if (run->options->repeat > 1)
		return;
	gate_add_check(&one, l->text, l->metric, message_of_all(run, l, result))->site =
		result->site;
	gate_log(&one, "limit exceeded: ");
	one.check.data->site = (gate_sites){0};
	gate_deinit(&one);
}

/* Of two processes that exceed a limit, the one with less. */
static void note_other(struct limit_result *all, const struct limit *l,
		       const struct limit_result *other)
{
	_cleanup_free_ char *amount = limit_amount(l->metric, other->value);

	if (other->is_exceeded && all->others.count < OTHERS_MAX)
		*vec_add(&all->others) = xasprintf("%s in %s", amount, other->process);
}

/* Adds what a process has to what those before it had; consumes @now. */
static void merge_result(struct limit_result *all, const struct limit *l, struct limit_result *now)
{
	bool is_worst = !all->process || now->value > all->value;
	struct limit_result less = is_worst ? *all : *now, most = is_worst ? *now : *all;

	most.others = all->others;
	less.others = (typeof(less.others)){0};
	most.exceeded = all->exceeded + now->is_exceeded;
	most.has_function = all->has_function || now->has_function;
	if (less.process)
		note_other(&most, l, &less);
	free_result(&less);
	*all = most;
	*now = (struct limit_result){0};
}

static void check_value(struct session *s, const struct report *r, size_t index,
			struct leaf_amounts *amounts, struct limit_result *now)
{
	struct run *run = s->run;
	const struct limit *l = &run->limits.data[index];

	now->is_exceeded = limit_is_exceeded(l, now->value);
	if (now->is_exceeded && !l->function && !l->within)
		find_amounts(s, r, l, amounts);
	if (now->is_exceeded)
		add_sites(&now->site, r, amounts);
	free(amounts->bytes);
	free(amounts->variance);
	merge_result(&run->results.data[index], l, now);
}

/* @group: the number of the limit's group, if it has one. */
static void check_one(struct session *s, const struct report *r, size_t index, size_t group)
{
	const struct limit *l = &s->run->limits.data[index];
	struct leaf_amounts amounts = {0};
	struct limit_result now = {0};
	_cleanup_free_ char *title = session_title(s);

	if (l->metric == LIMIT_RSS && !s->end.peak_resident)
		return;
	now.has_function = l->function && find_amounts(s, r, l, &amounts);
	if (has_group(l))
		use_group(r->profile, profile_group(r->profile, group), &amounts);
	now.value = l->function ? (double)sum_of(&amounts) : value_of_program(s, l->metric);
	now.process = xasprintf("process %u, %s", s->process.pid, title);
	check_value(s, r, index, &amounts, &now);
}

/* -- limits of calls -- */

static int compare_nodes(const void *a, const void *b)
{
	const struct within_amount *x = a, *y = b;

	return (x->node > y->node) - (x->node < y->node);
}

/* What the leaves of the profile have of the worst call. */
static void find_amounts_within(const struct report *r, const struct within_worst *worst,
				struct leaf_amounts *out)
{
	size_t count = worst->amount.count;

	*out = (struct leaf_amounts){.count = profile_leaf_count(r->profile)};
	out->bytes = xcalloc((size_t)out->count + 1, sizeof(*out->bytes));
	if (!count)
		return;
	qsort(worst->amount.data, count, sizeof(*worst->amount.data), compare_nodes);
	for (uint32_t i = 1; i <= out->count; i++) {
		const struct within_amount key = {.node = profile_leaf(r->profile, i)->node};
		const struct within_amount *found =
			bsearch(&key, worst->amount.data, count, sizeof(key), compare_nodes);

		out->bytes[i] = found ? found->amount : 0;
	}
}

/* The function of @l, and that which ends the part of the run, or NULL. */
static struct within_section part_of(struct run *run, const struct limit *l)
{
	struct custom_probes *p = &run->probes;

	return (struct within_section){
		custom_probes_within(p, l->within, l->within_size),
		l->until ? custom_probes_within(p, l->until, strlen(l->until)) : NULL};
}

static void check_within(struct session *s, const struct report *r, size_t index)
{
	const struct limit *l = &s->run->limits.data[index];
	const struct within_section part = part_of(s->run, l);
	const struct within_sum *sum = within_find(s, part.from, part.to);
	struct leaf_amounts amounts = {0};
	_cleanup_free_ char *title = session_title(s);

	if (!sum)
		return;
	const struct within_worst *worst = &sum->worst[l->metric];
	struct limit_result now = {.value = worst->value};

	now.process = xasprintf("%s %llu %s %s%s%s, process %u, %s", l->until ? "part" : "call",
				(unsigned long long)worst->number, l->until ? "between" : "of",
				part.from->text, l->until ? " and " : "",
				l->until ? part.to->text : "", s->process.pid, title);
	if (limit_is_exceeded(l, worst->value))
		find_amounts_within(r, worst, &amounts);
	check_value(s, r, index, &amounts, &now);
}

static void note_values(struct session *s)
{
	struct limit_values *v = &s->run->values;

	const struct history *h = profile_whole_history(s->heap.profile);

	v->is_estimate = profile_options(s->heap.profile)->sample_interval != 0;
	for (enum limit_metric m = 0; m < LIMIT_METRICS; m++) {
		bool is_known = m == LIMIT_TEMPORARY ? h != NULL :
				m == LIMIT_RSS	     ? s->end.peak_resident > 0 :
						       m != LIMIT_LEAKED;

		if (!is_known || (m != LIMIT_RSS && !s->run->options->profile.heap))
			continue;
		v->value[m] = MAX(v->value[m], value_of_program(s, m));
		v->is_known[m] = true;
	}
}

/* -- a run -- */

const char *limits_why_not_within(const struct options *o)
{
	if (o->files.replay)
		return "calls are watched while the program runs: --replay cannot be used with it";
	if (options_sample_interval(o))
		return "what calls need is exact: --heap-sample cannot be used with it";
	if (!o->profile.heap || o->profile.pages_as_heap ||
	    !(o->tracing.sources & 1u << SOURCE_HEAP))
		return "it is about blocks of the heap: --heap=no, --pages-as-heap and --trace "
		       "without heap cannot be used with it";
	return NULL;
}

const char *limits_check_text(const struct options *o, const char *text, struct limit *out)
{
	const char *why = limit_parse(text, out);

	if (why)
		return why;
	if (out->metric == LIMIT_LEAKED && !o->leaks.check)
		return "leaks are found by --leak-check, which is needed, too";
	if (out->metric == LIMIT_TEMPORARY && o->profile.pages_as_heap)
		return "pages are never temporary: --pages-as-heap cannot be used with it";
	return out->within ? limits_why_not_within(o) : NULL;
}

static void watch_calls(struct run *r, const char *function)
{
	custom_probes_within(&r->probes, function, strlen(function))->is_measured = true;
	r->needs_within = true;
}

static void watch_section(struct run *r, const struct limit *l)
{
	const struct within_section part = part_of(r, l);
	bool is_known = false;

	for (size_t i = 0; i < r->sections.count; i++)
		is_known |= r->sections.data[i].from == part.from &&
			    r->sections.data[i].to == part.to;
	if (!is_known)
		*vec_add(&r->sections) = part;
	r->needs_within = true;
}

/* Takes @text. */
static void take_limit(struct run *r, char *text)
{
	struct limit *l = vec_add(&r->limits);

	limit_parse(text, l);
	*vec_add(&r->results) = (struct limit_result){0};
	if (l->until)
		watch_section(r, l);
	else if (l->within)
		watch_calls(r, l->within);
	else if (l->metric == LIMIT_TEMPORARY) /* only a history knows */
		r->needs_history = true;
	else if (l->metric == LIMIT_PEAK && l->function)
		r->needs_peak = true;
}

/* Adds a limit to those of @ctx, a run. Why @text cannot be one; NULL: it is. */
static const char *add_limit(void *ctx, const char *text)
{
	struct run *r = ctx;
	const struct option_strings *within = &r->options->within;
	struct limit l;
	const char *why = limits_check_text(r->options, text, &l);

	if (why)
		return why;
	bool is_of_calls = !l.within && !l.function && within->count > 0 &&
			   limit_info[l.metric].of_calls;

	for (size_t i = 0; is_of_calls && i < within->count; i++)
		take_limit(r, xasprintf("%s within %s", text, within->data[i]));
	if (!is_of_calls)
		take_limit(r, xstrdup(text));
	return NULL;
}

int limits_open(struct run *r)
{
	const struct options *o = r->options;

	for (size_t i = 0; i < o->within.count; i++)
		watch_calls(r, o->within.data[i]);
	for (size_t i = 0; i < o->limits.count; i++)
		add_limit(r, o->limits.data[i]); /* option_check.c has checked it */
	int rc = 0;

	for (size_t i = 0; i < o->files.limits.count && rc == 0; i++) {
		size_t before = r->limits.count;

		rc = option_read_lines(o->files.limits.data[i], add_limit, r);
		if (rc == 0 && r->limits.count == before)
			gate_warn(&r->gate, xasprintf("%s: there are no limits in it",
						      o->files.limits.data[i]));
	}
	return rc;
}

void limits_close(struct run *r)
{
	for (size_t i = 0; i < r->limits.count; i++) {
		free((char *)r->limits.data[i].text);
		free_result(&r->results.data[i]);
	}
	vec_deinit(&r->limits);
	vec_deinit(&r->results);
	vec_deinit(&r->sections);
	gate_deinit(&r->gate);
}

void limits_check(struct session *s)
{
	struct run *run = s->run;

	if (!run->limits.count && run->options->repeat <= 1 &&
	    !run->options->files.limits_out.count)
		return;
	const struct report r = session_report(s);

	size_t group = 0;

	note_values(s);
	for (size_t i = 0; i < run->limits.count; i++) {
		if (run->limits.data[i].within)
			check_within(s, &r, i);
		else if (run->limits.data[i].metric != LIMIT_LEAKED)
			check_one(s, &r, i, group);
		group += has_group(&run->limits.data[i]);
	}
}

static int compare_sites(const void *a, const void *b)
{
	const struct gate_site *x = a, *y = b;

	return (x->value[PATH_NEW] < y->value[PATH_NEW]) -
	       (x->value[PATH_NEW] > y->value[PATH_NEW]);
}

/* Sites of several processes: the largest remain. */
static void keep_largest(gate_sites *sites)
{
	struct gate rest = {0};

	vec_sort(sites, compare_sites);
	while (sites->count > GATE_SITES)
		*vec_add(&rest.site) = sites->data[--sites->count];
	gate_deinit(&rest);
}

void limits_note_leaks(struct run *run, const struct report *r, const struct leaf_amounts *lost)
{
	for (size_t i = 0; i < run->limits.count; i++) {
		gate_sites *sites = &run->results.data[i].site;

		if (run->limits.data[i].metric != LIMIT_LEAKED)
			continue;
		add_sites(sites, r, lost);
		keep_largest(sites);
	}
}

static void check_leaks(struct run *r, size_t index)
{
	const struct limit *l = &r->limits.data[index];
	struct limit_result *result = &r->results.data[index];

	result->value = (double)r->lost_bytes;
	result->is_exceeded = limit_is_exceeded(l, result->value);
	result->exceeded = result->is_exceeded;
	result->process = xstrdup("all processes");
}

/* A gate through which nothing has gone is closed. */
static void add_check(struct run *r, size_t index)
{
	const struct limit *l = &r->limits.data[index];
	struct limit_result *result = &r->results.data[index];
	const char *why = result->process ? NULL : "it was not measured";

	/* otherwise it is said why nothing ran; of several runs, at the end */
	if (why && r->programs && r->options->repeat <= 1)
		log_error("limit not checked: %s: %s", l->text, why);
	if (l->function && result->process && !result->has_function)
		gate_warn(&r->gate,
			  xasprintf("--limit=%s: no call path has this function", l->text));
	struct gate_check *c =
		gate_add_check(&r->gate, l->text, l->metric,
			       result->is_exceeded ? message_of_all(r, l, result) :
			       why		   ? xstrdup(why) :
						     NULL);

	if (!result->is_exceeded || r->options->repeat > 1) /* repeat.c takes them */
		return;
	c->site = result->site;
	result->site = (gate_sites){0};
}

void limits_finish(struct run *r)
{
	struct limit_values *v = &r->values;

	v->is_known[LIMIT_LEAKED] = r->options->leaks.check;
	v->value[LIMIT_LEAKED] = (double)r->lost_bytes;
	for (size_t i = 0; i < r->limits.count; i++) {
		if (r->limits.data[i].metric == LIMIT_LEAKED)
			check_leaks(r, i);
		if (r->results.data[i].is_exceeded)
			log_exceeded(r, &r->limits.data[i], &r->results.data[i]);
		add_check(r, i);
	}
	gate_set_title(&r->gate, r->command);
	r->gate.processes = r->summaries.count;
	for (enum limit_metric m = 0; m < LIMIT_METRICS; m++)
		if (v->is_known[m])
			*vec_add(&r->gate.value) = (struct gate_value){
				m, {0, v->value[m]}, {0, v->value[m]}};
}

/* -- the file -- */

struct limits_file {
	enum gate_form form;
	const struct gate *gate;
};

static int put_gate(FILE *file, const void *ctx)
{
	const struct limits_file *f = ctx;

	gate_write(file, f->form, f->gate);
	return 0;
}

static int write_one(struct run *r, const struct gate *g, const char *pattern)
{
	const struct out_name name = {.which = OUT_LIMITS, .pid = (uint32_t)getpid(),
				      .pattern = pattern};
	enum gate_form form = gate_form_of(pattern);
	const struct limits_file file = {form == GATE_NONE ? GATE_GITHUB : form, g};
	const struct out_content content = {.put = put_gate, .ctx = &file};
	_cleanup_free_ char *path = NULL;
	int rc = out_path(r, &name, &path);

	return rc != 0 ? rc : out_put(OUT_LIMITS, name.pid, path, &content);
}

int limits_write(struct run *r, const struct gate *g)
{
	const char *pattern;
	int result = 0;

	for (size_t i = 0; (pattern = out_pattern_at(r->options, OUT_LIMITS, i)) != NULL; i++) {
		int rc = write_one(r, g, pattern);

		result = result ?: rc;
	}
	return result;
}
