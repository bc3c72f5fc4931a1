/*
 * The reports of recordings: one form on standard output (--format), flame graphs and folded stacks
 * into files, all of the same view.
 */
#include "report/recording_show.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "output/flame.h"
#include "output/folded.h"
#include "output/outfile.h"
#include "report/diff.h"
#include "report/recording_csv.h"
#include "recording/recording_json.h"
#include "report/recording_massif.h"
#include "report/recording_paths.h"
#include "report/recording_pprof.h"
#include "report/recording_speedscope.h"
#include "report/recording_text.h"
#include "report/recording_view_json.h"

/* One or two recordings and what is asked of them. */
struct show {
	const struct report_request *request;
	const struct recording *side[2]; /* by enum path_side; [PATH_OLD] may be NULL */
	struct recording_view view[2];
	char *text;                /* what the view of the new one is */
};

static int refuse(const struct report_request *r, const char *why)
{
	log_error("%s: %s", r->path[r->is_diff], why);
	return EXIT_REFUSED;
}

static int init(struct show *s)
{
	_cleanup_free_ char *why = NULL;

	for (int i = 0; i < 2; i++) {
		if (s->side[i] && recording_view_init(&s->view[i], s->side[i],
						      &s->request->question, &why) != 0)
			return refuse(s->request, why);
	}
	s->text = recording_view_text(&s->view[PATH_NEW], s->side[PATH_NEW],
				      &s->request->question);
	return 0;
}

/* An answer without a path is no mistake, but its reader should not look for one. */
static void warn_of_nothing(const struct show *s)
{
	const struct recording_question *q = &s->request->question;
	const struct recording_value *sum = &s->view[PATH_NEW].sum;
	const char *path = s->request->path[s->request->is_diff];

	if (!recording_question_is_given(q) || sum->bytes || sum->blocks)
		return;
	if (q->match)
		log_warn("%s: nothing matches --match=%s (%s)", path, q->match, s->text);
	else
		log_warn("%s: nothing was %s", path, s->text);
}

static void deinit(struct show *s)
{
	for (int i = 0; i < 2; i++)
		recording_view_deinit(&s->view[i]);
	free(s->text);
}

static struct path_tree *make_tree(const struct show *s, enum recording_order order)
{
	struct path_tree *t = path_tree_new();

	for (int i = 0; i < 2; i++)
		if (s->side[i])
			recording_paths_add(t, (enum path_side)i, s->side[i], &s->view[i], order,
					    false);
	path_tree_sum(t);
	return t;
}

/* -- files -- */

static int log_unwritten(const char *path, int err)
{
	if (err)
		log_error("cannot write %s: %s", path, strerror(-err));
	return err ? EXIT_NOT_WRITTEN : 0;
}

static int write_folded(const struct show *s, const char *path)
{
	struct path_tree *t = make_tree(s, RECORDING_CALLER_FIRST);
	struct outfile out;
	int err = outfile_open(path, &out);

	if (!err) {
		folded_write(out.file, t, s->request->is_diff);
		err = outfile_commit(&out);
	}
	path_tree_free(t);
	return log_unwritten(path, err);
}

static int write_flame(const struct show *s, const char *path)
{
	const struct report_request *r = s->request;
	struct path_tree *t = make_tree(s, RECORDING_CALLER_FIRST);
	const char *command = recording_meta(s->side[PATH_NEW], "command");
	_cleanup_free_ char *subtitle = xasprintf("%s: bytes by call path", s->text);
	const struct flame_options options = {
		.title = r->title ? r->title : command ? command : "",
		.subtitle = subtitle,
		.unit = "bytes",
		.width = r->x_size ? r->x_size : FLAME_WIDTH_DEFAULT,
		.is_fixed = r->x_size,
		.min_frame = FLAME_MIN_FRAME,
		.is_diff = r->is_diff,
	};
	struct outfile out;
	int err = outfile_open(path, &out);

	if (!err) {
		flame_write(out.file, t, &options);
		err = outfile_commit(&out);
	}
	path_tree_free(t);
	return log_unwritten(path, err);
}

/* -- standard output -- */

static int print_diff(const struct show *s)
{
	const struct report_request *r = s->request;
	struct path_tree *t = make_tree(s, RECORDING_SITE_FIRST);
	const struct diff_options options = {.top = r->top, .threshold = r->text.threshold};

	printf("old  %s\nnew  %s, %s\n\n", r->path[0], r->path[1], s->text);
	diff_print(stdout, t, &options);
	path_tree_free(t);
	return 0;
}

static int print_text(const struct show *s)
{
	_cleanup_free_ char *why = NULL;

	if (s->request->is_diff)
		return print_diff(s);
	if (recording_text_print(stdout, s->side[PATH_NEW], &s->request->question,
				 s->request->top, &why) != 0)
		return refuse(s->request, why);
	return 0;
}

static int print_json(const struct show *s)
{
	_cleanup_free_ char *why = NULL;
	char *view[2] = {NULL, NULL};

	for (int i = 0; i < 2 && !why; i++)
		if (s->side[i])
			recording_view_json(s->side[i], &s->request->question, &view[i], &why);
	if (!why && s->request->is_diff)
		recording_json_write_diff(stdout, s->side, (const char *[]){view[0], view[1]});
	else if (!why)
		recording_json_write(stdout, s->side[PATH_NEW], view[PATH_NEW]);
	free(view[PATH_OLD]);
	free(view[PATH_NEW]);
	return why ? refuse(s->request, why) : 0;
}

static int print_csv(const struct show *s)
{
	recording_csv_write(stdout, s->side[PATH_NEW], &s->view[PATH_NEW]);
	return 0;
}

static int print_pprof(const struct show *s)
{
	_cleanup_free_ char *why = NULL;
	const struct recording *r = s->side[PATH_NEW];
	struct recording_view total;

	if (recording_view_of(&total, r, VIEW_TOTAL, s->request->question.match, &why) != 0)
		return refuse(s->request, why);
	recording_pprof_write(stdout, r, &s->view[PATH_NEW], &total);
	recording_view_deinit(&total);
	return 0;
}

static int print_massif(const struct show *s)
{
	_cleanup_free_ char *why = NULL;
	const struct recording_massif_options options = {
		.threshold = s->request->text.threshold,
		.match = s->request->question.match,
	};

	if (recording_massif_write(stdout, s->side[PATH_NEW], &options, &why) != 0)
		return refuse(s->request, why);
	return 0;
}

static int print_format(const struct show *s)
{
	switch (s->request->format) {
	case FORMAT_JSON:
		return print_json(s);
	case FORMAT_CSV:
		return print_csv(s);
	case FORMAT_PPROF:
		return print_pprof(s);
	case FORMAT_SPEEDSCOPE:
		recording_speedscope_write(stdout, s->side[PATH_NEW], &s->view[PATH_NEW], s->text);
		return 0;
	case FORMAT_MASSIF:
		return print_massif(s);
	case FORMAT_FOLDED:
		return write_folded(s, "-");
	default:
		return print_text(s);
	}
}

static bool is_stdout(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

/* As of massif files: the table of a difference gives way to what goes to standard output. */
static bool wants_text(const struct report_request *r)
{
	if (r->format != FORMAT_DEFAULT)
		return true;
	if (r->is_diff)
		return !is_stdout(r->folded) && !is_stdout(r->flame) && !is_stdout(r->html);
	return !r->folded && !r->flame && !r->html;
}

int recording_show(const struct report_request *r, const struct recording *old,
		   const struct recording *new)
{
	struct show s = {.request = r, .side = {[PATH_OLD] = old, [PATH_NEW] = new}};
	int status = r->snapshot == MASSIF_SNAPSHOT_DEFAULT ?
			     0 :
			     refuse(r, "a recording has no snapshots: use --at or --range");

	if (!status)
		status = init(&s);
	if (!status)
		warn_of_nothing(&s);
	if (!status && r->folded)
		status = write_folded(&s, r->folded);
	if (!status && r->flame)
		status = write_flame(&s, r->flame);
	if (!status && wants_text(r))
		status = print_format(&s);
	deinit(&s);
	return status;
}
