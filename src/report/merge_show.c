/*
 * --merge: the recordings of several processes as one report. A file that cannot be read has a row
 * that says why, and the report is of the others.
 */
#include "report/show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "output/outfile.h"
#include "profile/estimate.h"
#include "recording/embedded_sources.h"
#include "recording/processes.h"
#include "recording/processes_page.h"
#include "report/recording_output.h"
#include "report/recording_paths.h"

/* All processes, and the moment that is shown of them. */
struct merged {
	const struct report_request *request;
	struct processes *all;
	size_t moment;
	struct recording_part *part;   /* those that are there then */
	struct recording_view *view;
	size_t parts;
};

/* -- the moment -- */

static int find_moment(struct merged *m)
{
	const char *at = m->request->question.at;
	double end = (double)m->all->end, value = 0;

	m->moment = m->all->peak;
	if (!at || strcmp(at, "peak") == 0)
		return 0;
	if (!recording_time_parse(at, end / 1e3, &value)) {
		log_error("--at takes a time since the first process began (2.5, 300ms, 40%%, "
			  "start, peak or end), up to %.3f s, not '%s'", end / 1e6, at);
		return EXIT_REFUSED;
	}
	m->moment = processes_moment_at(m->all, (uint64_t)(value * 1e3));
	return 0;
}

static void find_parts(struct merged *m)
{
	size_t rows = m->all->row.count;

	m->part = xcalloc(rows + 1, sizeof(*m->part));
	m->view = xcalloc(rows + 1, sizeof(*m->view));
	for (size_t i = 0; i < rows; i++) {
		const struct processes_row *row = &m->all->row.data[i];
		uint32_t state = processes_state(row, m->moment);

		if (!row->recording || state == PROCESSES_NOT_THERE)
			continue;
		processes_view(row, state, &m->view[m->parts]);
		m->part[m->parts] =
			(struct recording_part){row->recording, &m->view[m->parts]};
		m->parts++;
	}
}

static void merged_deinit(struct merged *m)
{
	for (size_t i = 0; i < m->parts; i++)
		recording_view_deinit(&m->view[i]);
	free(m->part);
	free(m->view);
}

/* "live in all processes together after 1.250 s"; the caller frees it. */
static char *moment_text(const struct merged *m)
{
	const struct processes_moment *at = &m->all->moment.data[m->moment];

	return xasprintf("live in %u process%s together%s, after %.3f s", at->running,
			 at->running == 1 ? "" : "es",
			 m->moment == m->all->peak ? " when they held most" : "",
			 (double)at->time / 1e6);
}

/* -- text -- */

/* Sums of numbers of blocks need one unit. */
static bool has_one_interval(const struct merged *m)
{
	for (size_t i = 1; i < m->parts; i++)
		if (m->part[i].recording->interval != m->part[0].recording->interval)
			return false;
	return true;
}

static void put_amount(FILE *out, const char *name, uint64_t bytes, const char *more)
{
	char human[AMOUNT_SIZE], exact[AMOUNT_SIZE];

	fprintf(out, "%-12s %s (%s byte%s)%s\n", name, amount_bytes((double)bytes, human),
		amount_commas(bytes, exact), plural(bytes), more);
}

/* "process 12, ./a"; the caller frees it. */
static char *title_of(const struct processes_row *row)
{
	return !row->recording ? xasprintf("%s: %s", row->name, row->problem) :
	       row->part ? xasprintf("process %" PRIu64 " part %u, %s", row->pid, row->part,
				     row->command) :
			   xasprintf("process %" PRIu64 ", %s", row->pid, row->command);
}

static void put_head(FILE *out, const struct merged *m)
{
	const struct processes *p = m->all;
	const struct processes_row *largest = processes_largest(p);
	const struct processes_moment *peak = &p->moment.data[p->peak];
	_cleanup_free_ char *title = title_of(largest);
	_cleanup_free_ char *of = xasprintf(" in %s", title);
	_cleanup_free_ char *when = xasprintf(" after %.3f s, in %u process%s",
					      (double)peak->time / 1e6, peak->running,
					      peak->running == 1 ? "" : "es");
	uint64_t sum = 0, live = 0, allocated = 0, allocations = 0;
	char a[AMOUNT_SIZE], b[AMOUNT_SIZE];
	size_t unread = 0;

	for (size_t i = 0; i < p->row.count; i++) {
		unread += !p->row.data[i].recording;
		sum += p->row.data[i].peak;
		live += p->row.data[i].live;
		allocated += p->row.data[i].allocated;
		allocations += p->row.data[i].allocations;
	}
	put_amount(out, "largest", largest->peak, of);
	put_amount(out, "all together", peak->bytes, when);
	fprintf(out, "%-12s %zu, in %.3f s", "processes", p->row.count - unread,
		(double)p->end / 1e6);
	if (unread)
		fprintf(out, "; %zu file%s cannot be read", unread, plural(unread));
	putc('\n', out);
	put_amount(out, "peak of each", sum, " as a sum; not at one time");
	put_amount(out, "end of each", live, " in use, as a sum");
	fprintf(out, "%-12s %s of %s byte%s\n", "allocations", amount_commas(allocations, a),
		amount_commas(allocated, b), plural(allocated));
}

static int compare_peaks(const void *a, const void *b)
{
	const struct processes_row *const *x = a, *const *y = b;

	if (!(*x)->recording != !(*y)->recording)
		return (*x)->recording ? 1 : -1; /* problems come first */
	if ((*x)->peak != (*y)->peak)
		return (*x)->peak < (*y)->peak ? 1 : -1;
	return *x < *y ? -1 : *x > *y;
}

static void put_row(FILE *out, const struct processes_row *row, const char *title)
{
	char peak[AMOUNT_SIZE], live[AMOUNT_SIZE], count[AMOUNT_SIZE];

	fprintf(out, "%15s %15s %13s %9.3f %9.3f  %s\n", amount_commas(row->peak, peak),
		amount_commas(row->live, live), amount_commas(row->allocations, count),
		(double)row->start / 1e6, (double)(row->end - row->start) / 1e6, title);
}

/* The others: sums, from the first start to the last end. */
static void add_other(struct processes_row *sum, const struct processes_row *row)
{
	sum->start = sum->part++ ? MIN(sum->start, row->start) : row->start;
	sum->end = MAX(sum->end, row->end);
	sum->peak += row->peak;
	sum->live += row->live;
	sum->allocations += row->allocations;
}

static void put_processes(FILE *out, const struct merged *m)
{
	size_t n = m->all->row.count;
	_cleanup_free_ const struct processes_row **row = xcalloc(n + 1, sizeof(*row));
	struct processes_row others = {0};

	for (size_t i = 0; i < n; i++)
		row[i] = &m->all->row.data[i];
	qsort(row, n, sizeof(*row), compare_peaks);
	fprintf(out, "\n%15s %15s %13s %9s %9s  %s\n", "peak", "at its end", "allocations",
		"begin s", "length s", "process");
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *title = title_of(row[i]);

		if (!row[i]->recording)
			fprintf(out, "%65s  %s\n", "", title);
		else if (i < m->request->top)
			put_row(out, row[i], title);
		else
			add_other(&others, row[i]);
	}
	if (others.part) {
		_cleanup_free_ char *title =
			xasprintf("[%u other%s: sums]", others.part, plural(others.part));

		put_row(out, &others, title);
	}
}

static int print_text(struct merged *m)
{
	const struct row_limits limits = {m->request->top, m->request->least_share};
	_cleanup_free_ char *text = moment_text(m);
	char bytes[AMOUNT_SIZE];
	uint64_t sum = m->all->moment.data[m->moment].bytes;
	_cleanup_free_ char *title = xasprintf("%s: %s byte%s", text, amount_commas(sum, bytes),
					       plural(sum));

	put_head(stdout, m);
	put_processes(stdout, m);
	if (!has_one_interval(m))
		log_warn("some recordings are exact and others are samples, or their distances "
			 "differ: there is no table of call sites");
	else if (m->parts)
		recording_sites_print(stdout, title, m->part, m->parts, &limits);
	return 0;
}

/* -- other forms -- */

static void put_field(const char *text)
{
	_cleanup_free_ char *clean = text_clean(text ? text : "", text ? strlen(text) : 0);

	csv_begin(stdout, clean);
	csv_put_quoted(stdout, clean);
	putchar('"');
}

/* RFC 4180; in the order of the tree. */
static int print_csv(struct merged *m)
{
	fputs("pid,parent_pid,depth,start_s,duration_s,peak_bytes,end_bytes,end_blocks,"
	      "leaked_bytes,allocations,allocated_bytes,end,file,problem,command\r\n", stdout);
	for (size_t i = 0; i < m->all->row.count; i++) {
		const struct processes_row *row = &m->all->row.data[i];
		const struct processes_row *parent =
			row->parent ? &m->all->row.data[row->parent - 1] : NULL;
		const char *end = row->recording ? recording_meta(row->recording, "exit") : NULL;

		printf("%" PRIu64 ",%" PRIu64 ",%u,%.6f,%.6f,%" PRIu64 ",%" PRIu64 ",%" PRIu64
		       ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
		       row->pid, parent ? parent->pid : row->parent_pid, row->depth,
		       (double)row->start / 1e6, (double)(row->end - row->start) / 1e6, row->peak,
		       row->live, row->live_blocks, row->leaked, row->allocations,
		       row->allocated);
		put_field(end);
		putchar(',');
		put_field(row->name);
		putchar(',');
		put_field(row->problem);
		putchar(',');
		put_field(row->command);
		fputs("\r\n", stdout);
	}
	return 0;
}

static int print_json(struct merged *m)
{
	processes_json_write(stdout, m->all);
	return 0;
}

static struct path_tree *make_tree(const struct merged *m)
{
	struct path_tree *t = path_tree_new();

	for (size_t i = 0; i < m->parts; i++)
		recording_paths_add(t, m->part[i].recording, m->part[i].view);
	path_tree_sum(t);
	return t;
}

static int print_folded(struct merged *m)
{
	struct path_tree *t = make_tree(m);
	int status = path_files_folded("-", t, false);

	path_tree_free(t);
	return status;
}

static int write_paths(struct merged *m)
{
	_cleanup_free_ char *text = moment_text(m);
	_cleanup_free_ char *subtitle = xasprintf("%s: bytes by call path", text);
	const struct path_words words = {processes_largest(m->all)->command, subtitle};
	struct path_tree *t = make_tree(m);
	int status = path_files_write(m->request, t, &words);

	path_tree_free(t);
	return status;
}

/* "" unless they are asked for. The caller frees it. */
static char *sources_of(const struct merged *m)
{
	_cleanup_free_ const struct recording **r = xcalloc(m->all->row.count + 1, sizeof(*r));
	size_t count = 0;

	if (!m->request->embeds_sources)
		return xstrdup("");
	for (size_t i = 0; i < m->all->row.count; i++)
		if (m->all->row.data[i].recording)
			r[count++] = m->all->row.data[i].recording;
	return embedded_sources_json(r, count, &m->request->sources);
}

static int put_page(FILE *file, const void *ctx)
{
	const struct merged *m = ctx;
	_cleanup_free_ char *sources = sources_of(m);

	processes_page_write(file, m->all, sources);
	return 0;
}

static int write_page(const struct merged *m)
{
	int err = outfile_put(m->request->html, put_page, m);

	if (err)
		outfile_log_error(m->request->html, err);
	return err ? EXIT_NOT_WRITTEN : 0;
}

static const struct {
	const char *format;
	int (*print)(struct merged *m);
} forms[] = {
	{"text", print_text},
	{"json", print_json},
	{"csv", print_csv},
	{"folded", print_folded},
};

bool merge_has_form(const struct report_format *format)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (strcmp(format->name, forms[i].format) == 0)
			return true;
	return false;
}

static int (*form_of(const struct report_request *r))(struct merged *m)
{
	const struct report_format *format = report_format_of(r);

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (!format || strcmp(format->name, forms[i].format) == 0)
			return forms[i].print;
	return NULL;
}

static bool is_same(const struct processes_row *a, const struct processes_row *b)
{
	return a->recording && b->recording && a->pid == b->pid && a->start == b->start &&
	       a->part == b->part;
}

/* Rows of one program of one process, as of a file that is given twice. */
static void warn_of_repeats(const struct processes *p)
{
	size_t repeats = 0;
	const struct processes_row *first = NULL;

	for (size_t i = 0; i < p->row.count; i++) {
		const struct processes_row *row = &p->row.data[i];
		size_t k = 0;

		while (k < i && !is_same(&p->row.data[k], row))
			k++;
		repeats += k < i;
		first = !first && k < i ? row : first;
	}
	if (repeats)
		log_warn("%zu recording%s of a process that another one is of, too, as process "
			 "%" PRIu64 " in %s: sums count it more than once",
			 repeats, repeats == 1 ? " is" : "s are", first->pid, first->name);
}

int merge_show(const struct report_request *r, struct processes *all, bool prints)
{
	struct merged m = {.request = r, .all = all};

	processes_finish(all);
	warn_of_repeats(all);
	int status = find_moment(&m);

	if (!status)
		find_parts(&m);
	if (!status && r->html)
		status = write_page(&m);
	if (!status && (r->folded || r->flame))
		status = write_paths(&m);
	if (!status && prints)
		status = form_of(r)(&m);
	merged_deinit(&m);
	return status;
}
