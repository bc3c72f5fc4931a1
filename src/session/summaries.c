/*
 * Messages of a process that has ended are collected instead of printed while others may follow:
 * only then it is known whether there is one summary, or several.
 */
#include "session/summaries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "session/session.h"
#include "session/summary.h"

/* Processes that are followed for months are reported when they end, unless all are one page. */
static bool prints_each(const struct run *run)
{
	const struct options *o = run->options;
	bool is_one_page = o->files.html && !file_name_has(o->files.html, "pn");

	/* other sources have lines of their own */
	if (!o->profile.heap || options_sources(o) != 1u << SOURCE_HEAP)
		return true;
	return log_is_on(LOG_VERBOSE) || o->messages.stats ||
	       (o->attach.follow.count > 0 && !is_one_page);
}

static void begin_collecting(struct summaries *all)
{
	all->collected = open_memstream(&all->text, &all->text_size);
	CHECK(all->collected);
	log_collect_info(all->collected);
}

/* The caller frees it. */
static char *end_collecting(struct summaries *all)
{
	char *text;

	log_collect_info(NULL);
	CHECK(!fclose(all->collected));
	text = all->text;
	all->collected = NULL;
	all->text = NULL;
	return text;
}

void summaries_begin(struct session *s)
{
	struct summaries *all = &s->run->summaries;

	if (!prints_each(s->run) && (all->count || !session_is_alone(s)))
		begin_collecting(all);
}

static void hint_deinit(struct summaries_hint *h)
{
	free(h->line);
	free(h->process);
	*h = (struct summaries_hint){0};
}

static bool is_line(const struct summaries_hint *h, const char *line, size_t size)
{
	return h->line && strlen(h->line) == size && memcmp(h->line, line, size) == 0;
}

/* The caller frees it. */
static char *process_name(const struct session *s)
{
	_cleanup_free_ char *program = session_program_name(s);

	return xasprintf("%u, %s", s->process.pid, program);
}

/* Of more than fit, those of the largest processes are kept, sorted by the peaks. */
static void add_hint(struct summaries *all, const struct session *s, const char *line, size_t size)
{
	struct summaries_hint *end = all->hint + SUMMARIES_HINTS, *at = all->hint, new = {
		.peak = profile_totals(s->heap.profile)->peak_bytes};

	while (at < end - 1 && at->line && !is_line(at, line, size))
		at++;
	if (is_line(at, line, size)) {
		new.others = ++at->others;
		if (at->peak >= new.peak)
			return;
	} else if (at->line && at->peak >= new.peak) {
		return;
	}
	hint_deinit(at);
	new.line = xstrndup(line, size);
	new.process = process_name(s);
	for (; at > all->hint && at[-1].peak < new.peak; at--)
		*at = at[-1];
	*at = new;
}

/* Those in @text, lines with their ends, which is about @s. */
static void add_hints(struct summaries *all, const struct session *s, const char *text)
{
	for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
		const char *hint = strstr(text, ": hint: ");

		if (hint && hint < end)
			add_hint(all, s, text, (size_t)(end - text));
	}
}

void summaries_end(struct session *s)
{
	struct summaries *all = &s->run->summaries;

	if (!all->collected)
		return;
	char *text = end_collecting(all);

	add_hints(all, s, text);
	/* with a second one the first is not printed as it is */
	if (all->count != 1 || all->only) {
		free(text);
		free(all->only);
		all->only = NULL;
	} else {
		all->only = text;
	}
}

static void process_deinit(struct summaries_process *p)
{
	free(p->title);
	free(p->peak_line);
	free(p->sites);
	free(p->labels);
	*p = (struct summaries_process){0};
}

/* What @print prints; the caller frees it. */
static char *print_to_text(void (*print)(const void *what), const void *what)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size), *before;

	CHECK(to);
	before = log_collect_info(to);
	print(what);
	log_collect_info(before);
	CHECK(!fclose(to));
	return text;
}

static void print_peak(const void *s)
{
	summary_print_peak(s);
}

static void print_sites(const void *largest)
{
	largest_print(largest);
}

static void print_labels(const void *s)
{
	summary_print_labels(s);
}

/* Puts @s among the largest ones, if it is. */
static void add_process(struct summaries *all, struct session *s, const struct largest *largest)
{
	const size_t last = ARRAY_SIZE(all->most) - 1;
	uint64_t peak = profile_totals(s->heap.profile)->peak_bytes;
	size_t i = last + 1;

	while (i > 0 && (!all->most[i - 1].title || all->most[i - 1].peak < peak))
		i--;
	if (i > last)
		return;
	process_deinit(&all->most[last]);
	memmove(&all->most[i + 1], &all->most[i], (last - i) * sizeof(*all->most));
	_cleanup_free_ char *title = session_title(s);

	all->most[i] = (struct summaries_process){
		.title = xasprintf("process %u, %s", s->process.pid, title),
		.peak = peak,
		.peak_line = print_to_text(print_peak, s),
		.sites = print_to_text(print_sites, largest),
		.labels = print_to_text(print_labels, s),
	};
}

static void note_end(struct summaries *all, const struct session *s)
{
	int status = s->process.exit_status;
	char name[SIGNAL_NAME_SIZE];

	if (status < 0 || !WIFSIGNALED(status))
		return;
	if (!all->killed++)
		all->first_killed = xasprintf("%u by %s", s->process.pid,
					      signal_name(WTERMSIG(status), name));
}

/* Once, although it may execute several programs. */
static void count_process(struct summaries *all, const struct session *s)
{
	struct process_files *p = run_process(s->run, s->process.pid);

	all->processes += !p->is_summed;
	p->is_summed = true;
}

void summaries_print(struct session *s, const char *path)
{
	struct summaries *all = &s->run->summaries;
	const struct profile *p = s->heap.profile;
	const struct profile_totals *before = &s->process.inherited.totals;
	struct largest largest = {0};
	within_totals within = {0};

	summary_print(s, path, &largest);
	within_add(s, &within);
	within_print(&within);
	vec_deinit(&within);
	within_add(s, &all->within);
	if (path && !file_name_is_shared(path))
		out_note(s->run, OUT_MASSIF, path);
	all->count++;
	count_process(all, s);
	add_process(all, s, &largest);
	all->allocations += profile_count(p, profile_totals(p)->allocations - before->allocations);
	all->allocated += profile_totals(p)->allocated_bytes - before->allocated_bytes;
	all->live += profile_totals(p)->live_bytes;
	all->is_estimate |= profile_options(p)->sample_interval != 0;
	labels_add(s, &all->labels);
	note_end(all, s);
	largest_deinit(&largest);
}

/* -- all of them -- */

static size_t count_lines(const char *text)
{
	size_t lines = 0;

	for (; (text = strchr(text, '\n')); text++)
		lines++;
	return lines;
}

/* Of a process with less than a 20th of the largest peak a hint would be in the way. */
#define HINT_SHARE 20

static void print_hint(const struct summaries_hint *h)
{
	char n[AMOUNT_SIZE];
	_cleanup_free_ char *others =
		h->others ? xasprintf(", and %s more", amount_commas(h->others, n)) : NULL;
	_cleanup_free_ char *text =
		xasprintf("%s (process %s%s)\n", h->line, h->process, others ? others : "");

	log_print_collected(text);
}

static void print_hints(const struct summaries *all)
{
	const struct summaries_process *first = &all->most[0];
	size_t used = count_lines(first->peak_line) + count_lines(first->sites) +
		      MIN(all->count - 1, (size_t)SUMMARIES_NEXT) +
		      (all->count > ARRAY_SIZE(all->most)) + 1 + (all->killed > 0) + 1;

	for (size_t i = 0; i < SUMMARIES_HINTS && all->hint[i].line; i++) {
		const struct summaries_hint *h = &all->hint[i];

		/* one process that allocated nothing is no reason to profile all for longer */
		bool is_moot = (all->allocations && summary_is_hint_of_none(h->line)) ||
			       h->peak < first->peak / HINT_SHARE;
		if (!is_moot && used++ < SUMMARIES_LINES)
			print_hint(h);
	}
}

static void print_next(const struct summaries *all)
{
	for (size_t i = 1; i < ARRAY_SIZE(all->most) && all->most[i].title; i++) {
		char size[AMOUNT_SIZE];

		log_info("  %-12s %10s  %s", i == 1 ? "next" : "",
			 amount_bytes((double)all->most[i].peak, size), all->most[i].title);
	}
}

/* What @count of all->count are: a process that executes another program counts again. */
static const char *what_is_counted(const struct summaries *all, size_t count)
{
	if (all->processes < all->count)
		return count == 1 ? "program" : "programs";
	return count == 1 ? "process" : "processes";
}

static void print_title(const struct summaries *all)
{
	_cleanup_free_ char *in =
		all->processes < all->count ?
			xasprintf(" in %zu process%s", all->processes,
				  all->processes == 1 ? "" : "es") : NULL;

	log_info("largest peak of %zu %s%s: %s", all->count, what_is_counted(all, all->count),
		 in ? in : "", all->most[0].title);
}

static void print_totals(const struct summaries *all)
{
	const char *about = all->is_estimate ? "about " : "";
	size_t others = all->count - MIN(all->count, ARRAY_SIZE(all->most));
	uint64_t most = all->most[SUMMARIES_NEXT].peak;
	char n[AMOUNT_SIZE], m[AMOUNT_SIZE], k[AMOUNT_SIZE];

	if (others)
		log_info("  others       %s %s of %s%s each; -v prints all",
			 amount_commas(others, n), what_is_counted(all, others),
			 amount_bytes((double)most, m), most ? " or less" : "");
	log_info("  all          %s%s allocation%s of %s byte%s; %s byte%s in use at their ends",
		 about, amount_commas(all->allocations, n), plural(all->allocations),
		 amount_commas(all->allocated, m), plural(all->allocated),
		 amount_commas(all->live, k), plural(all->live));
	if (all->killed)
		log_info("  killed       %s process%s by a signal, the first one %s",
			 amount_commas(all->killed, n), all->killed == 1 ? "" : "es",
			 all->first_killed);
}

/* "37 profiles, massif.out.12 the first; page.html" */
static void print_files(const struct summaries *all)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	const char *gap = "";

	CHECK(out);
	for (enum output i = 0; i < OUTPUTS; i++) {
		if (!all->file[i].count)
			continue;
		fputs(gap, out);
		gap = "; ";
		if (all->file[i].count > 1)
			fprintf(out, "%zu files, ", all->file[i].count);
		fputs(all->file[i].first, out);
		if (all->file[i].count > 1)
			fputs(" the first", out);
	}
	CHECK(!fclose(out));
	if (*text)
		log_info("  written to   %s", text);
}

void summaries_finish(struct run *run)
{
	const struct summaries *all = &run->summaries;

	if (all->count == 1 && all->only) {
		log_print_collected(all->only);
		if (all->file[OUT_HTML].count)
			log_info("  written to   %s", all->file[OUT_HTML].first);
	}
	if (all->count < 2 || !run->options->profile.heap)
		return;
	print_title(all);
	log_print_collected(all->most[0].peak_line);
	log_print_collected(all->most[0].sites);
	log_print_collected(all->most[0].labels);
	print_next(all);
	print_totals(all);
	label_totals_print(run, &all->labels, all->live);
	print_files(all);
	print_hints(all);
	within_print(&all->within);
}

void summaries_deinit(struct summaries *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->most); i++)
		process_deinit(&s->most[i]);
	for (enum output i = 0; i < OUTPUTS; i++)
		free(s->file[i].first);
	for (size_t i = 0; i < SUMMARIES_HINTS; i++)
		hint_deinit(&s->hint[i]);
	vec_deinit(&s->within);
	label_totals_deinit(&s->labels);
	free(s->first_killed);
	free(s->only);
}
