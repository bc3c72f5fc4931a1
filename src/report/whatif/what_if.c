/*
 * See what_if.h. The report has for each allocator the peak of resident memory and that at the end,
 * both compared with live bytes, CPU time, memory over time, and which call sites keep pages at the
 * end that are nearly empty.
 */
#include "report/whatif/what_if.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/amount.h"
#include "base/cgroup.h"
#include "base/cleanup.h"
#include "base/json_write.h"
#include "base/log.h"
#include "base/text.h"
#include "report/whatif/replay_run.h"

#define CURVE_WIDTH 64u
#define RANGE_SHARE 50 /* replays that differ by less than 1/50 agree */

struct what_if {
	const struct report_request *request;
	struct replay_plan plan;
	allocator_specs specs;
	VEC(const char *) libraries;         /* by spec: replay_find */
	VEC(struct replay_outcome) outcomes; /* in the order of specs, of those that succeeded */
};

char *what_if_check(const struct report_request *r)
{
	static const char *const forms[] = {"text", "json", "markdown"};
	const struct report_format *format = report_format_of(r);
	allocator_specs specs = {0};

	if (r->is_diff || r->is_merge || r->baseline || r->write_baseline || r->png || r->svg ||
	    r->folded || r->flame || r->html || r->annotate || r->peek || r->anonymize ||
	    r->wants_graph || r->is_brief || r->limit.count || r->limits_file.count ||
	    recording_question_is_given(&r->question))
		return xstrdup("--what-if makes a report of its own: of other options only "
			       "--format, --top, --my-code and --not-my-code go with it");
	if (r->path_count > 1)
		return xasprintf("one file too many: %s", r->path[1]);
	if (format && !text_is_among(format->name, forms, ARRAY_SIZE(forms)))
		return xasprintf("--what-if makes text, json or markdown, not %s", format->name);
	char *bad = allocator_specs_parse(r->what_if, &specs), *why = NULL;

	if (bad)
		why = xasprintf("--what-if=%s: %s", r->what_if, bad);
	free(bad);
	allocator_specs_deinit(&specs);
	return why;
}

/* -- text -- */

static double ratio(uint64_t bytes, uint64_t live)
{
	return live ? (double)bytes / (double)live : 0;
}

/* "1.08", or "-" if nothing is live. */
static const char *ratio_text(uint64_t bytes, uint64_t live, char out[static AMOUNT_SIZE])
{
	if (live)
		snprintf(out, AMOUNT_SIZE, "%.2f", ratio(bytes, live));
	else
		snprintf(out, AMOUNT_SIZE, "-");
	return out;
}

static const char *touched_text(const struct replay_plan *p)
{
	return p->touch_size ? "large blocks are touched as the program did, others wholly" :
			       "every page of what was requested is touched";
}

static void print_head(const struct what_if *w)
{
	const struct replay_plan *p = &w->plan;
	_cleanup_free_ char *command = text_clean(p->command, strlen(p->command));
	char n[4][AMOUNT_SIZE];

	printf("%s (process %" PRIu32 "): its %s calls of malloc in %" PRIu64 " thread%s, "
	       "repeated with other allocators\n", command, p->pid,
	       amount_commas(p->calls, n[0]), p->head.threads, plural(p->head.threads));
	printf("live bytes: %s at the peak, %s at the end\n",
	       amount_bytes((double)p->peak_bytes, n[0]), amount_bytes((double)p->end_bytes, n[1]));
	printf("Memory is the heap's, resident; %s.\n", touched_text(p));
}

static void print_rows(const struct what_if *w)
{
	char n[5][AMOUNT_SIZE];

	printf("\n%10s %8s %10s %8s %8s  %s\n", "peak", "of live", "at the end", "of live", "CPU",
	       "allocator");
	for (size_t i = 0; i < w->outcomes.count; i++) {
		const struct replay_outcome *o = &w->outcomes.data[i];

		printf("%10s %8s %10s %8s %6.2f s  %s\n", amount_bytes((double)o->peak, n[0]),
		       ratio_text(o->peak, o->live_at_peak, n[1]),
		       amount_bytes((double)o->end, n[2]),
		       ratio_text(o->end, w->plan.end_bytes, n[3]), (double)o->cpu_ns / 1e9,
		       o->spec->text);
	}
}

static bool is_wide(const struct replay_range *r)
{
	return r->most - r->least > r->most / RANGE_SHARE;
}

/* "end 47.5 MiB to 52.4 MiB" */
static void print_range(const char *name, const struct replay_range *r)
{
	char n[2][AMOUNT_SIZE];

	printf("%s %s to %s", name, amount_bytes((double)r->least, n[0]),
	       amount_bytes((double)r->most, n[1]));
}

static void print_ranges(const struct what_if *w, bool is_markdown)
{
	bool has_head = false;

	for (size_t i = 0; i < w->outcomes.count; i++) {
		const struct replay_outcome *o = &w->outcomes.data[i];
		bool has_peak = is_wide(&o->peak_range), has_end = is_wide(&o->end_range);

		if (!has_peak && !has_end)
			continue;
		if (!has_head)
			puts("\nIt depends on when memory is returned. With a clock that is a "
			     "quarter slower, or faster:");
		has_head = true;
		fputs("- ", stdout);
		if (has_peak)
			print_range("peak", &o->peak_range);
		if (has_peak && has_end)
			fputs(", ", stdout);
		if (has_end)
			print_range("end", &o->end_range);
		fputs(" with ", stdout);
		if (is_markdown)
			markdown_put_code(stdout, o->spec->text);
		else
			fputs(o->spec->text, stdout);
		putchar('\n');
	}
}

/* The largest of the samples in column @x of time; the one before if there are none. */
static void make_curve(const struct what_if *w, const struct replay_outcome *o, uint64_t most,
		       char out[static CURVE_WIDTH + 1])
{
	static const char levels[] = " .:-=+*#%@";
	uint64_t column[CURVE_WIDTH] = {0}, last = 0;
	bool has[CURVE_WIDTH] = {false};

	for (size_t i = 0; i < w->plan.samples.count; i++) {
		double share = (double)w->plan.samples.data[i].time_ns /
			       (double)(w->plan.duration_ns + 1);
		size_t x = MIN((size_t)(share * CURVE_WIDTH), CURVE_WIDTH - 1);

		column[x] = has[x] ? MAX(column[x], o->resident[i]) : o->resident[i];
		has[x] = true;
	}
	for (size_t x = 0; x < CURVE_WIDTH; x++) {
		last = has[x] ? column[x] : last;
		uint64_t level = most ? last * (sizeof(levels) - 2) / most : 0;

		out[x] = levels[MIN(level + (last > 0 && level == 0), sizeof(levels) - 2)];
	}
	out[CURVE_WIDTH] = '\0';
}

static uint64_t highest_peak(const struct what_if *w)
{
	uint64_t most = 0;

	for (size_t i = 0; i < w->outcomes.count; i++)
		most = MAX(most, w->outcomes.data[i].peak);
	return most;
}

static void print_curves(const struct what_if *w)
{
	uint64_t most = highest_peak(w);
	char curve[CURVE_WIDTH + 1], amount[AMOUNT_SIZE];

	printf("\nResident memory over %.1f s; '@' is %s:\n", (double)w->plan.duration_ns / 1e9,
	       amount_bytes((double)most, amount));
	for (size_t i = 0; i < w->outcomes.count; i++) {
		make_curve(w, &w->outcomes.data[i], most, curve);
		printf("  |%s| %s\n", curve, w->outcomes.data[i].spec->text);
	}
}

static void print_pins(const struct what_if *w, const struct replay_outcome *o)
{
	char n[4][AMOUNT_SIZE];

	printf("\n%s: %s page%s (%s) nearly empty at the end%s\n", o->spec->text,
	       amount_commas(o->pages, n[0]), plural(o->pages),
	       amount_bytes((double)o->pages * PAGE_SIZE_MIN, n[1]),
	       o->pins.count ? "; the blocks on them, by call site:" : "");
	if (o->pins.count)
		printf("%10s %10s %10s\n", "pages", "blocks", "live");
	for (size_t i = 0; i < MIN(o->pins.count, w->request->top); i++) {
		const struct pinning_site *s = &o->pins.data[i];
		_cleanup_free_ char *label = text_site_label(w->plan.site_name[s->site]);

		printf("%10s %10s %10s  %s\n", amount_commas(s->pages, n[0]),
		       amount_commas(s->blocks, n[1]), amount_bytes((double)s->bytes, n[2]), label);
	}
}

static void print_text(const struct what_if *w)
{
	print_head(w);
	print_rows(w);
	print_ranges(w, false);
	print_curves(w);
	for (size_t i = 0; i < w->outcomes.count; i++)
		print_pins(w, &w->outcomes.data[i]);
}

/* -- markdown -- */

static void print_markdown_pins(const struct what_if *w, const struct replay_outcome *o)
{
	char n[2][AMOUNT_SIZE];

	fputs("\nNearly empty pages at the end with ", stdout);
	markdown_put_code(stdout, o->spec->text);
	printf(": %s, %s\n", amount_commas(o->pages, n[0]),
	       amount_bytes((double)o->pages * PAGE_SIZE_MIN, n[1]));
	if (o->pins.count)
		puts("\n| pages | blocks | live | call site |\n| ---: | ---: | ---: | --- |");
	for (size_t i = 0; i < MIN(o->pins.count, w->request->top); i++) {
		const struct pinning_site *s = &o->pins.data[i];
		_cleanup_free_ char *label = text_site_label(w->plan.site_name[s->site]);

		printf("| %" PRIu64 " | %" PRIu64 " | %s | ", s->pages, s->blocks,
		       amount_bytes((double)s->bytes, n[0]));
		markdown_put_code(stdout, label);
		puts(" |");
	}
}

static void print_markdown(const struct what_if *w)
{
	char n[4][AMOUNT_SIZE];

	markdown_put_code(stdout, w->plan.command);
	printf(" with other allocators: %s calls; live %s at the peak, %s at the end. Memory is "
	       "the heap's, resident; %s.\n\n",
	       amount_commas(w->plan.calls, n[0]), amount_bytes((double)w->plan.peak_bytes, n[1]),
	       amount_bytes((double)w->plan.end_bytes, n[2]), touched_text(&w->plan));
	puts("| allocator | peak | of live | at the end | of live | CPU |\n"
	     "| --- | ---: | ---: | ---: | ---: | ---: |");
	for (size_t i = 0; i < w->outcomes.count; i++) {
		const struct replay_outcome *o = &w->outcomes.data[i];

		fputs("| ", stdout);
		markdown_put_code(stdout, o->spec->text);
		printf(" | %s | %s | %s | %s | %.2f s |\n", amount_bytes((double)o->peak, n[0]),
		       ratio_text(o->peak, o->live_at_peak, n[1]),
		       amount_bytes((double)o->end, n[2]),
		       ratio_text(o->end, w->plan.end_bytes, n[3]), (double)o->cpu_ns / 1e9);
	}
	print_ranges(w, true);
	for (size_t i = 0; i < w->outcomes.count; i++)
		print_markdown_pins(w, &w->outcomes.data[i]);
}

/* -- JSON -- */

static void write_outcome(struct json_writer *j, const struct what_if *w,
			  const struct replay_outcome *o)
{
	json_write_open(json_write_line(j, 1), NULL, '{');
	json_write_text(j, "allocator", o->spec->text);
	json_write_text(j, "library", o->library);
	json_write_numbers(j, {"peak_bytes", o->peak}, {"end_bytes", o->end},
			   {"peak_least_bytes", o->peak_range.least},
			   {"peak_most_bytes", o->peak_range.most},
			   {"end_least_bytes", o->end_range.least},
			   {"end_most_bytes", o->end_range.most},
			   {"live_at_peak_bytes", o->live_at_peak}, {"cpu_ns", o->cpu_ns},
			   {"failed", o->failed}, {"nearly_empty_pages", o->pages});
	json_write_open(json_write_line(j, 2), "resident", '[');
	for (size_t i = 0; i < w->plan.samples.count; i++)
		json_write_number(j, NULL, o->resident[i]);
	json_write_close(j, 1);
	json_write_open(json_write_line(j, 2), "sites", '[');
	for (size_t i = 0; i < o->pins.count; i++) {
		const struct pinning_site *s = &o->pins.data[i];

		json_write_open(json_write_line(j, 3), NULL, '{');
		json_write_text(j, "call_site", w->plan.site_name[s->site]);
		json_write_numbers(j, {"pages", s->pages}, {"blocks", s->blocks},
				   {"bytes", s->bytes});
		json_write_close(j, 1);
	}
	json_write_close(j, 2);
}

static void print_json(const struct what_if *w)
{
	const struct replay_plan *p = &w->plan;
	struct json_writer j = {.out = stdout, .escape = JSON_SHOWN};

	json_write_open(&j, NULL, '{');
	json_write_text(&j, "format", "ptmem-what-if");
	json_write_number(&j, "version", 1);
	json_write_text(&j, "command", p->command);
	json_write_numbers(&j, {"pid", p->pid}, {"calls", p->calls}, {"threads", p->head.threads},
			   {"live_peak_bytes", p->peak_bytes}, {"live_peak_blocks", p->peak_blocks},
			   {"live_end_bytes", p->end_bytes}, {"live_end_blocks", p->end_blocks},
			   {"duration_ns", p->duration_ns});
	json_write_bool(&j, "is_complete", !p->cut_line);
	json_write_number(&j, "touched_if_bytes", p->touch_size);
	json_write_open(json_write_line(&j, 0), "time_ns", '[');
	for (size_t i = 0; i < p->samples.count; i++)
		json_write_number(&j, NULL, p->samples.data[i].time_ns);
	json_write_close(&j, 1);
	json_write_open(json_write_line(&j, 0), "live", '[');
	for (size_t i = 0; i < p->samples.count; i++)
		json_write_number(&j, NULL, p->samples.data[i].live_bytes);
	json_write_close(&j, 1);
	json_write_open(json_write_line(&j, 0), "allocators", '[');
	for (size_t i = 0; i < w->outcomes.count; i++)
		write_outcome(&j, w, &w->outcomes.data[i]);
	json_write_close(&j, 2);
	putchar('\n');
}

/* -- the whole -- */

static int log_unread(const char *path, int err, const char *why)
{
	log_error(why ? "%s: %s" : "cannot read %s: %s", path, why ?: strerror(-err));
	return why ? EXIT_REFUSED : EXIT_NOT_READ;
}

/* A heap that does not fit here would make the machine swap, or kill another process. */
static int check_memory(struct what_if *w)
{
	uint64_t available = memory_available() ?: UINT64_MAX;
	char n[2][AMOUNT_SIZE];

	w->plan.limit = available / 10 * 9;
	if (w->plan.peak_bytes < w->plan.limit)
		return 0;
	log_error("%s: its %s at the peak do not fit into the %s of memory that are available "
		  "here", w->request->path[0], amount_bytes((double)w->plan.peak_bytes, n[0]),
		  amount_bytes((double)available, n[1]));
	return EXIT_REFUSED;
}

static void warn(const struct what_if *w)
{
	const struct replay_plan *p = &w->plan;

	if (p->cut_line)
		log_warn("%s is cut in its line %u: \"at the end\" means there",
			 w->request->path[0], p->cut_line);
	if (p->earlier_blocks)
		log_warn("%s: %" PRIu64 " blocks are older than the profile: they are allocated "
			 "at the start, without what was freed before",
			 w->request->path[0], p->earlier_blocks);
	if (p->other_calls)
		log_warn("%s: %" PRIu64 " calls of allocators of the program's own are left out",
			 w->request->path[0], p->other_calls);
	if (!p->calls)
		log_warn("%s: no call of malloc is in it", w->request->path[0]);
}

static void warn_of_outcome(const struct replay_outcome *o)
{
	_cleanup_free_ char *said = xstrdup(o->said);

	if (*said)
		log_print_lines(LOG_WARN, "the allocator says: ", said);
	if (o->failed)
		log_warn("%s: %" PRIu64 " calls got no memory", o->spec->text, o->failed);
}

/* All that are missing are named, before the file is read, which may be long. */
static int find_libraries(struct what_if *w)
{
	int status = 0;

	for (size_t i = 0; i < w->specs.count; i++) {
		_cleanup_free_ char *why = NULL;
		const char *library = replay_find(&w->specs.data[i], &why);

		*vec_add(&w->libraries) = library;
		if (library)
			continue;
		log_error("--what-if=%s: %s", w->specs.data[i].text, why);
		status = EXIT_REFUSED;
	}
	return status;
}

/* What fails, as an allocator that needs more memory than there is, is left out of the report. */
static int replay_all(struct what_if *w)
{
	int status = 0;

	for (size_t i = 0; i < w->specs.count; i++) {
		_cleanup_free_ char *why = NULL;
		struct replay_outcome outcome;

		if (!replay_run(&w->plan, &w->specs.data[i], w->libraries.data[i], &outcome,
				&why)) {
			log_error("--what-if=%s: %s", w->specs.data[i].text, why);
			status = EXIT_REFUSED;
			continue;
		}
		warn_of_outcome(&outcome);
		*vec_add(&w->outcomes) = outcome;
	}
	return status;
}

static void print(const struct what_if *w)
{
	const struct report_format *format = report_format_of(w->request);

	if (format && strcmp(format->name, "json") == 0)
		print_json(w);
	else if (format && strcmp(format->name, "markdown") == 0)
		print_markdown(w);
	else
		print_text(w);
}

static int answer(struct what_if *w)
{
	const struct report_request *r = w->request;
	_cleanup_free_ char *why = NULL;
	int status = find_libraries(w);

	if (status)
		return status;
	int err = replay_plan_make(r->path[0], &r->my_code, &w->plan, &why);

	if (err)
		return log_unread(r->path[0], err, why);
	status = check_memory(w);
	if (status)
		return status;
	warn(w);
	status = replay_all(w);
	if (w->outcomes.count)
		print(w);
	return status;
}

int what_if_show(const struct report_request *r)
{
	struct what_if w = {.request = r, .plan = {.fd = -1}};

	free(allocator_specs_parse(r->what_if, &w.specs)); /* what_if_check has refused others */
	int status = answer(&w);

	vec_release(&w.outcomes, o, replay_outcome_deinit(o));
	vec_deinit(&w.libraries);
	allocator_specs_deinit(&w.specs);
	replay_plan_deinit(&w.plan);
	return status;
}
