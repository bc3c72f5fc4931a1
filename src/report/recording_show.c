/*
 * The reports of recordings: one form on standard output (--format), flame graphs and folded stacks
 * into files, all of the same view.
 */
#include "report/show.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "recording/recording_json.h"
#include "recording/recording_pprof.h"
#include "report/recording_output.h"
#include "report/recording_paths.h"

/* A recording and the view of it. */
struct shown_recording {
	const struct report_request *request;
	const struct recording *recording;
	struct recording_view view;
	char *text;                /* description of the view */
	const struct gate *gate;   /* of JSON */
};

static int refuse(const struct report_request *r, const char *why)
{
	log_error("%s: %s", r->path[0], why);
	return EXIT_REFUSED;
}

static int init(struct shown_recording *s)
{
	const struct recording_question *q = &s->request->question;
	_cleanup_free_ char *why = NULL;

	if (recording_view_init(&s->view, s->recording, q, &why) != 0)
		return refuse(s->request, why);
	s->text = recording_view_text(&s->view, s->recording, q);
	return 0;
}

/* An empty result is not an error, but should not look like one. */
static void warn_of_nothing(const struct shown_recording *s)
{
	const struct recording_question *q = &s->request->question;
	const struct recording_value *sum = &s->view.sum;
	const char *path = s->request->path[0];

	if (!recording_question_is_given(q) || sum->bytes || sum->blocks)
		return;
	if (q->match)
		log_warn("%s: nothing matches --match=%s (%s)", path, q->match, s->text);
	else
		log_warn("%s: nothing was %s", path, s->text);
}

static struct path_tree *make_tree(const struct shown_recording *s)
{
	struct path_tree *t = path_tree_new();

	recording_paths_add(t, s->recording, &s->view);
	path_tree_sum(t);
	return t;
}

/* -- files -- */

static int write_paths(const struct shown_recording *s)
{
	const char *command = recording_meta(s->recording, "command");
	_cleanup_free_ char *subtitle = xasprintf("%s: bytes by call path", s->text);
	const struct path_words words = {.title = command ? command : "", .subtitle = subtitle};
	struct path_tree *t = make_tree(s);
	int status = path_files_write(s->request, t, &words);

	path_tree_free(t);
	return status;
}

/* -- standard output -- */

/* What is there to print of functions; NULL = nothing, and *@why. */
static char *text_of_functions(const struct shown_recording *s, const struct row_limits *limits,
			       char **why)
{
	const struct report_request *q = s->request;
	char *text = NULL;
	size_t size;
	int rc = 0;
	FILE *f = open_memstream(&text, &size);

	CHECK(f);
	if (q->annotate)
		rc = recording_annotate_print(
			f, s->recording, &s->view,
			&(struct source_question){q->annotate, &q->sources, limits}, why);
	if (q->peek && !rc)
		rc = recording_peek_print(
			f, s->recording, &s->view,
			&(struct source_question){q->peek, &q->sources, limits}, why);
	CHECK(!fclose(f));
	if (!rc)
		return text;
	free(text);
	return NULL;
}

static int print_text(const struct shown_recording *s)
{
	const struct report_request *q = s->request;
	const struct row_limits limits = {q->top, q->least_share};
	_cleanup_free_ char *why = NULL, *text = NULL;

	if (!q->annotate && !q->peek)
		return recording_text_print(stdout, s->recording, &q->question, &limits, &why) ?
			       refuse(q, why) :
			       0;
	text = text_of_functions(s, &limits, &why);
	if (!text)
		return refuse(q, why);
	printf("%s\n%s", s->text, text);
	return 0;
}

static int print_json(const struct shown_recording *s)
{
	_cleanup_free_ char *view = NULL, *why = NULL;

	if (recording_view_json(s->recording, &s->request->question, &view, &why) != 0)
		return refuse(s->request, why);
	const struct report_request *r = s->request;
	bool has_limits = r->limit.count || r->limits_file.count;
	_cleanup_free_ char *gate = has_limits ? gate_json_members(s->gate) : xstrdup("");
	_cleanup_free_ char *more = xasprintf("%s%s", view, gate);

	recording_json_write(stdout, s->recording, more);
	return 0;
}

static int print_csv(const struct shown_recording *s)
{
	recording_csv_write(stdout, s->recording, &s->view);
	return 0;
}

/* Of a thread only its allocations are known. */
static int print_pprof(const struct shown_recording *s)
{
	const struct recording *r = s->recording;
	struct recording_view total;

	recording_view_of(&total, r, VIEW_TOTAL);
	const struct recording_view *allocated = s->request->question.thread ? &s->view : &total;
	_cleanup_free_ struct pprof_value *value =
		recording_pprof_values(r, &s->view, allocated);

	recording_pprof_write(stdout, r, value, false);
	recording_view_deinit(&total);
	return 0;
}

static int print_massif(const struct shown_recording *s)
{
	const struct recording_question *q = &s->request->question;
	bool is_one = q->at || q->range || q->older || q->thread;

	recording_massif_write(stdout, s->recording, is_one ? &s->view : NULL,
			       s->request->text.threshold);
	return 0;
}

static int print_folded(const struct shown_recording *s)
{
	struct path_tree *t = make_tree(s);
	int status = path_files_folded("-", t, false);

	path_tree_free(t);
	return status;
}

static int print_speedscope(const struct shown_recording *s)
{
	recording_speedscope_write(stdout, s->recording, &s->view, s->text);
	return 0;
}

const struct report_format report_formats[] = {
	{"text", AS_TEXT, AS_TABLE, .print = print_text},
	{"json", AS_DATA | AS_SITED | AS_COUNTED, AS_ROWS | AS_JSON, .print = print_json,
	 .gate = GATE_JSON},
	{"csv", AS_DATA | AS_SITED | AS_COUNTED, AS_ROWS, .print = print_csv},
	{"folded", AS_FOLDED, AS_FOLDED, .print = print_folded},
	{"pprof", AS_DATA, 0, .print = print_pprof,
	 .no_diff = "make one of each file, and let pprof compare them by -base"},
	{"speedscope", AS_DATA, 0, .print = print_speedscope},
	{"massif", AS_MASSIF, 0, .print = print_massif},
	{"markdown", AS_GATE, AS_GATE, .gate = GATE_MARKDOWN},
	{"github", AS_GATE, AS_GATE, .gate = GATE_GITHUB},
	{"junit", AS_GATE, AS_GATE, .gate = GATE_JUNIT},
	{"sarif", AS_GATE, AS_GATE, .gate = GATE_SARIF},
	{.name = NULL},
};

int recording_show(const struct report_request *r, const struct recording *recording, bool prints,
		   const struct gate *gate)
{
	struct shown_recording s = {.request = r, .recording = recording, .gate = gate};
	int status = init(&s);

	if (!status)
		warn_of_nothing(&s);
	if (!status && (r->folded || r->flame))
		status = write_paths(&s);
	const struct report_format *format = report_format_of(r) ?: &report_formats[0];

	if (!status && prints && format->print)
		status = format->print(&s);
	recording_view_deinit(&s.view);
	free(s.text);
	return status;
}
