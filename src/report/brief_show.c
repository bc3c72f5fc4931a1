/*
 * --brief of each kind of file: what its other reports show, as findings (output/brief.h), and
 * which options of ptmem-report show more of each.
 */
#include "report/show.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "output/brief.h"
#include "output/graph/graph_report.h"
#include "recording/graph_file.h"
#include "report/massif_paths.h"
#include "report/recording_output.h"

/* Files that can only be drawn. */
#define DRAW "--png=memory.png"
#define PAGE "--html=memory.html"

static int refuse(const struct report_request *r, const char *why)
{
	log_error("%s: %s", r->path[0], why);
	return EXIT_REFUSED;
}

static int add_recording(const struct report_request *r, const struct input *input,
			 struct brief *b)
{
	struct recording_view v;
	_cleanup_free_ char *why = NULL;

	if (recording_view_init(&v, input->recording, &r->question, &why) != 0)
		return refuse(r, why);
	_cleanup_free_ char *text = recording_view_text(&v, input->recording, &r->question);
	const struct recording_part part = {input->recording, &v};

	brief_set_title(b, input_command(input));
	recording_brief(b, &part, text, true);
	recording_view_deinit(&v);
	return 0;
}

static int add_massif(const struct report_request *r, const struct input *input, struct brief *b)
{
	struct massif_file *f = input->massif;
	struct recording_view v;
	_cleanup_free_ char *why = NULL;
	size_t index;

	if (massif_paths_find(f, r->snapshot, &index, &why) != 0)
		return refuse(r, why);
	_cleanup_free_ char *text = massif_snapshot_text(f, index);

	massif_paths_view(f, index, &v);
	const struct recording_part part = {massif_paths(f)->recording, &v};

	brief_set_title(b, input_command(input));
	brief_add_fact(b, xasprintf("bytes of %s", text));
	recording_brief(b, &part, "of all,", false);
	recording_view_deinit(&v);
	return 0;
}

static void add_memusage(const struct memusage_file *m, struct brief *b)
{
	brief_set_title(b, xasprintf("memusage's data of %zu calls", m->count));
	brief_add(b, m->peak_total, xstrdup("heap and stack at their common peak"), NULL,
		  xstrdup("--total " DRAW));
	brief_add(b, m->peak_heap, xstrdup("heap at its peak"), NULL, xstrdup(DRAW));
	brief_add(b, m->peak_stack, xstrdup("stack at its peak"), NULL, xstrdup(DRAW));
	b->all = DRAW;
}

/* Bytes of each field at their highest, by process. */
static void add_samples(const struct samples_file *f, struct brief *b)
{
	brief_set_title(b, xasprintf("%zu samples of /proc/PID/status", f->row_count));
	for (size_t field = 0; field < f->field_count; field++) {
		const char *name = f->field[field];
		uint64_t most = 0;
		size_t at = SIZE_MAX;

		for (size_t i = 0; i < f->row_count && text_begins_with(name, "Vm"); i++) {
			uint64_t bytes = samples_file_bytes(f, i, field);

			if (bytes != SAMPLES_NONE && bytes >= most)
				most = bytes, at = i;
		}
		if (at == SIZE_MAX)
			continue;
		brief_add(b, most,
			  xasprintf("at most, process %u after %.3f s:", f->pid[at], f->time[at]),
			  xstrdup(name), xstrdup(DRAW));
	}
	b->all = DRAW;
}

static void add_inspect(const struct inspect_file *f, struct brief *b)
{
	char bytes[AMOUNT_SIZE];

	brief_set_title(b, xstrdup(f->title));
	brief_add_fact(b, xasprintf("%s: %s", f->all, amount_bytes(f->sum, bytes)));
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (f->row[i] > 0)
			brief_add(b, (uint64_t)f->row[i],
				  xasprintf("%.1f %%  %s", 100 * f->row[i] / f->sum,
					    inspect_row_text[i]), NULL, xstrdup(PAGE));
	for (size_t i = 0; i < f->arenas.count; i++)
		brief_add(b, (uint64_t)f->arenas.data[i].free, xstrdup("free in"),
			  xstrdup(f->arenas.data[i].name), xstrdup(PAGE));
	b->all = PAGE;
}

static int add_graph(const struct report_request *r, const struct graph_file *f, struct brief *b)
{
	const struct graph_title title = {.pid = f->pid, .command = f->command ?: "",
					  .stopped_ns = f->stopped_ns};
	const struct graph_wish wish = {.depth = r->graph_depth};

	graph_report_brief(b, &title, &f->graph, &wish);
	return 0;
}

static int add(const struct report_request *r, const struct input *input, struct brief *b)
{
	switch (input->kind) {
	case INPUT_RECORDING:
		return add_recording(r, input, b);
	case INPUT_MASSIF:
		return add_massif(r, input, b);
	case INPUT_GRAPH:
		return add_graph(r, input->graph, b);
	case INPUT_MEMUSAGE:
		add_memusage(input->memusage, b);
		return 0;
	case INPUT_SAMPLES:
		add_samples(input->samples, b);
		return 0;
	case INPUT_INSPECT:
		add_inspect(input->inspect, b);
		return 0;
	}
	return 0;
}

void brief_show_begin(const struct report_request *r, struct brief *b)
{
	size_t words = 0;

	while (r->argv && r->argv[words])
		words++;
	*b = (struct brief){.command = {r->argv, words}};
}

void brief_show_end(const struct report_request *r, struct brief *b)
{
	const struct report_format *format = report_format_of(r);

	brief_print(stdout, b, format && format->kinds == AS_GATE ? BRIEF_MARKDOWN : BRIEF_TEXT);
	brief_deinit(b);
}

int brief_show(const struct report_request *r, const struct input *input)
{
	struct brief b;

	brief_show_begin(r, &b);
	int status = add(r, input, &b);

	if (status)
		brief_deinit(&b);
	else
		brief_show_end(r, &b);
	return status;
}

char *brief_show_check(const struct report_request *r)
{
	const struct report_format *format = report_format_of(r);
	const char *other = r->png ? "png" : r->svg ? "svg" : r->folded ? "folded" :
			    r->flame ? "flame" : r->html ? "html" : r->is_merge ? "merge" :
			    r->baseline ? "baseline" : r->write_baseline ? "write-baseline" :
			    r->anonymize ? "anonymize" : r->annotate ? "annotate" :
			    r->peek ? "peek" : r->who_holds ? "who-holds" :
			    r->fail_if.count ? "fail-if" : r->limit.count ? "limit" :
			    r->limits_file.count ? "limits-file" : NULL;

	if (!r->is_brief)
		return NULL;
	if (other)
		return xasprintf("--brief is a report of its own: --%s cannot be used with it",
				 other);
	if (format && strcmp(format->name, "text") != 0 && strcmp(format->name, "markdown") != 0)
		return xasprintf("--brief is printed as --format=text or markdown, not %s",
				 format->name);
	return NULL;
}
