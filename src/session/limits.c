/* See limits.h. */
#include "session/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/option_row.h"
#include "output/call_sites.h"
#include "output/report_tree.h"
#include "profile/history.h"
#include "session/options.h"
#include "session/out.h"
#include "session/run.h"
#include "session/session.h"
#include "session/summary.h"

/* -- the values -- */

static uint64_t leaf_amount(const struct profile *p, uint32_t leaf, enum limit_metric metric)
{
	const struct leaf *l = profile_leaf(p, leaf);
	const struct history *h = profile_whole_history(p);

	switch (metric) {
	case LIMIT_LIVE:
		return l->live_bytes;
	case LIMIT_ALLOCATED:
		return l->total_bytes;
	case LIMIT_TEMPORARY:
		return h && leaf < h->leaf.count ? profile_count(p, h->leaf.data[leaf].temporary) :
						   0;
	default:
		return profile_count(p, l->calls);
	}
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
static bool find_amounts(const struct report *r, const struct limit *l, struct leaf_amounts *out)
{
	uint64_t sum;

	if (l->metric == LIMIT_PEAK || l->metric == LIMIT_RSS) {
		peak_amounts(r->profile, out, &sum);
	} else {
		*out = (struct leaf_amounts){.count = profile_leaf_count(r->profile)};
		out->bytes = xcalloc((size_t)out->count + 1, sizeof(*out->bytes));
		for (uint32_t i = 1; i <= out->count; i++)
			out->bytes[i] = leaf_amount(r->profile, i, l->metric);
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

/* Of all allocations, those by realloc included: these can be temporary, too. */
static double temporary_percent(const struct profile *p)
{
	const struct history *h = profile_whole_history(p);
	uint64_t temporary = 0, all = 0;

	for (size_t i = 1; h && i < h->leaf.count; i++)
		temporary += h->leaf.data[i].temporary;
	for (uint32_t i = 1; i <= profile_leaf_count(p); i++) {
		/* since the fork, if it is a forked child */
		bool is_known = h && i < h->leaf.count;

		all += profile_leaf(p, i)->calls - (is_known ? h->leaf.data[i].base_blocks : 0);
	}
	return all ? 100.0 * (double)temporary / (double)all : 0;
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
		return (double)t->allocated_bytes;
	case LIMIT_ALLOCATIONS:
		return (double)profile_count(p, t->allocations);
	case LIMIT_RSS:
		return (double)s->end.peak_resident;
	default:
		return temporary_percent(p);
	}
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
	struct call_site_sum site[LARGEST_SITES];
	size_t count = amounts->count ? call_sites_largest(r, amounts, site, LARGEST_SITES) : 0;

	for (size_t i = 0; i < count; i++) {
		if (site[i].bytes)
			add_site(to, &site[i]);
		free(site[i].text);
	}
}

/* -- limits of a process -- */

#define NAMED 8u /* processes that exceed a limit */

/* One more process exceeds a limit. */
static void add_exceeding(struct limit_result *r, uint32_t pid)
{
	_cleanup_free_ char *before = r->others;

	if (++r->exceeding > NAMED)
		r->others = r->exceeding == NAMED + 1 ? xasprintf("%s, ...", before) :
							xstrdup(before);
	else
		r->others = before ? xasprintf("%s, %u", before, pid) : xasprintf("%u", pid);
}

/*
 * "it is 12 bytes in process 7, ./a; 3 processes exceed it: 6, 7, 8". The caller frees it.
 */
static char *message_of(const struct run *run, const struct limit *l,
			const struct limit_result *result)
{
	_cleanup_free_ char *amount = limit_amount(l->metric, result->value);

	if (l->metric == LIMIT_LEAKED)
		return xasprintf("%s definitely lost", amount);
	_cleanup_free_ char *more =
		result->exceeding > 1 ? xasprintf("; %zu processes exceed it: %s",
						  result->exceeding, result->others) :
					xstrdup("");

	return xasprintf("it is %s%s in %s%s", amount,
			 run->values.is_estimate ? ", an estimate," : "", result->process, more);
}

static void free_result(struct limit_result *r)
{
	struct gate g = {.site = r->site};

	gate_deinit(&g);
	free(r->process);
	free(r->others);
	*r = (struct limit_result){0};
}

/* Adds a check that failed to run->gate, and says so. Takes the sites of @result. */
static void report_exceeded(struct run *run, const struct limit *l, struct limit_result *result)
{
	struct gate one = {0};
	struct gate_check *c =
		gate_add_check(&one, l->text, l->metric, message_of(run, l, result));

	c->site = result->site;
	result->site = (gate_sites){0};
	gate_log(&one, "limit exceeded: ");
	*vec_add(&run->gate.check) = *c;
	vec_deinit(&one.check);
}

static void check_one(struct session *s, const struct report *r, size_t index)
{
	struct run *run = s->run;
	const struct limit *l = &run->limits.data[index];
	struct limit_result *worst = &run->results.data[index];
	struct leaf_amounts amounts = {0};

	if (l->metric == LIMIT_RSS && !s->end.peak_resident)
		return;
	if (l->function && !find_amounts(r, l, &amounts))
		log_warn("process %u: --limit=%s: no call path has this function", s->process.pid,
			 l->text);
	struct limit_result now = {.value = l->function ? (double)sum_of(&amounts) :
							  value_of_program(s, l->metric)};

	now.is_exceeded = limit_is_exceeded(l, now.value);
	_cleanup_free_ char *title = session_title(s);

	now.process = xasprintf("process %u, %s", s->process.pid, title);
	if (now.is_exceeded && !l->function)
		find_amounts(r, l, &amounts);
	if (now.is_exceeded)
		add_sites(&now.site, r, &amounts);
	free(amounts.bytes);
	free(amounts.variance);
	now.exceeding = worst->exceeding;
	now.others = worst->others;
	worst->others = NULL;
	if (now.is_exceeded)
		add_exceeding(&now, s->process.pid);
	if (!worst->process || now.value > worst->value) {
		free_result(worst);
		*worst = now;
	} else {
		worst->exceeding = now.exceeding;
		worst->others = now.others;
		now.others = NULL;
		free_result(&now);
	}
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

/* Adds a limit to those of @ctx, a run. Why @text cannot be one; NULL: it is. */
static const char *add_limit(void *ctx, const char *text)
{
	struct run *r = ctx;
	const struct options *o = r->options;
	struct limit l;
	const char *why = limit_parse(text, &l);

	if (why)
		return why;
	if (l.metric == LIMIT_LEAKED && !o->leaks.check)
		return "leaks are found by --leak-check, which is needed, too";
	if (l.metric == LIMIT_TEMPORARY && o->profile.pages_as_heap)
		return "pages are never temporary: --pages-as-heap cannot be used with it";
	limit_parse(xstrdup(text), vec_add(&r->limits));
	*vec_add(&r->results) = (struct limit_result){0};
	/* only a history knows */
	r->needs_history |= l.metric == LIMIT_TEMPORARY || (l.metric == LIMIT_PEAK && l.function);
	return NULL;
}

int limits_open(struct run *r)
{
	const struct options *o = r->options;

	for (size_t i = 0; i < o->limits.count; i++) {
		const char *why = add_limit(r, o->limits.data[i]);

		if (why) {
			log_error("--limit=%s: %s", o->limits.data[i], why);
			return -EINVAL;
		}
	}
	return o->files.limits ? option_read_lines(o->files.limits, add_limit, r) : 0;
}

void limits_close(struct run *r)
{
	for (size_t i = 0; i < r->limits.count; i++) {
		free((char *)r->limits.data[i].text);
		free_result(&r->results.data[i]);
	}
	vec_deinit(&r->limits);
	vec_deinit(&r->results);
	gate_deinit(&r->gate);
}

void limits_check(struct session *s)
{
	struct run *run = s->run;

	if (!run->limits.count && run->options->repeat <= 1 && !run->options->files.limits_out)
		return;
	const struct report r = session_report(s);

	note_values(s);
	for (size_t i = 0; i < run->limits.count; i++)
		if (run->limits.data[i].metric != LIMIT_LEAKED)
			check_one(s, &r, i);
}

static void check_leaks(struct run *r, size_t index)
{
	const struct limit *l = &r->limits.data[index];
	struct limit_result *result = &r->results.data[index];

	result->value = (double)r->definite_bytes;
	result->is_exceeded = limit_is_exceeded(l, result->value);
	result->process = xstrdup("all processes");
}

/* A gate through which nothing has gone is closed. */
static void add_unexceeded(struct run *r, size_t index)
{
	const struct limit *l = &r->limits.data[index];
	const char *why = r->results.data[index].process ? NULL : "it was not measured";

	if (why && r->programs) /* otherwise it is said why nothing ran */
		log_error("limit not checked: %s: %s", l->text, why);
	gate_add_check(&r->gate, l->text, l->metric, why ? xstrdup(why) : NULL);
}

void limits_finish(struct run *r)
{
	struct limit_values *v = &r->values;

	v->is_known[LIMIT_LEAKED] = r->options->leaks.check;
	v->value[LIMIT_LEAKED] = (double)r->definite_bytes;
	for (size_t i = 0; i < r->limits.count; i++) {
		if (r->limits.data[i].metric == LIMIT_LEAKED)
			check_leaks(r, i);
		if (!r->results.data[i].is_exceeded)
			add_unexceeded(r, i);
		else if (r->options->repeat <= 1)
			report_exceeded(r, &r->limits.data[i], &r->results.data[i]);
	}
	gate_set_title(&r->gate, r->command);
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

int limits_write(struct run *r, const struct gate *g)
{
	const char *pattern = r->options->files.limits_out;
	const struct out_name name = {.which = OUT_LIMITS, .pid = (uint32_t)getpid()};
	_cleanup_free_ char *path = NULL;

	if (!pattern)
		return 0;
	enum gate_form form = gate_form_of(pattern);
	const struct limits_file file = {form == GATE_NONE ? GATE_GITHUB : form, g};
	const struct out_content content = {.put = put_gate, .ctx = &file};
	int rc = out_path(r, &name, &path);

	return rc != 0 ? rc : out_put(OUT_LIMITS, name.pid, path, &content);
}
