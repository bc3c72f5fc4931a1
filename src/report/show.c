/*
 * Reading what is asked for and writing what is wanted from it. Errors are logged
 * here, where the file's name is known; what main needs is the exit status.
 */
#include "report/show.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "output/flame.h"
#include "output/folded.h"
#include "output/writer.h"
#include "report/diff.h"
#include "report/input.h"

/* A massif file and the snapshot whose paths are wanted. */
struct source {
	const char *path;
	struct input input;
	size_t snapshot;       /* index */
};

const char *show_check(const struct report_request *r)
{
	if (!r->path_count)
		return "no file given";
	if (r->is_diff && r->path_count < 2)
		return "--diff takes two files, OLD NEW";
	if (r->is_diff && (r->png || r->svg))
		return "--diff makes a table and with --flame a flame graph, no --png or --svg";
	if (r->rss && !r->png && !r->svg)
		return "--rss goes with --png or --svg";
	if (r->flame && r->x_size && r->x_size < FLAME_WIDTH_MIN)
		return "a flame graph is 300 pixels wide at least";
	return NULL;
}

static int log_unread(const char *path, int err, const char *why)
{
	if (err == -EINVAL && why) {
		log_error("%s: %s", path, why);
		return EXIT_REFUSED;
	}
	log_error("cannot read %s: %s", path, strerror(-err));
	return EXIT_NOT_READ;
}

static int open_input(const char *path, struct input *out)
{
	_cleanup_free_ char *why = NULL;
	int err = input_open(path, out, &why);

	return err ? log_unread(path, err, why) : 0;
}

/* The text report. */

static int show_text(const struct report_request *r)
{
	_cleanup_free_ char *why = NULL;
	const char *path = r->path[0];
	struct input input;
	int status = open_input(path, &input);

	if (status)
		return status;
	int err = 0;

	if (input.kind == INPUT_MASSIF)
		err = msprint(stdout, input.massif, &r->text, &why);
	else
		why = xstrdup("there is no text report of such a file; draw it by --png=OUT");
	if (err || input.kind != INPUT_MASSIF) {
		log_error("%s: %s", path, why);
		status = EXIT_REFUSED;
	}
	input_deinit(&input);
	return status;
}

/* Pictures over time. */

static int write_picture(const struct report_request *r, const struct input *input,
			 const struct samples_file *rss)
{
	_cleanup_free_ char *why = NULL;
	struct picture_options options = {
		.title = r->title,
		.png = r->png,
		.svg = r->svg,
		.width = r->x_size ? r->x_size : PICTURE_X_DEFAULT,
		.height = r->y_size ? r->y_size : PICTURE_Y_DEFAULT,
		.is_time_based = r->is_time_based,
		.wants_total = r->wants_total,
		.rss = rss,
	};
	int err = picture_write(input, &options, &why);

	if (err == -EINVAL && why) {
		log_error("%s: %s", r->path[0], why);
		return EXIT_REFUSED;
	}
	if (err)
		log_error("cannot write the picture: %s", strerror(-err));
	return err ? EXIT_NOT_WRITTEN : 0;
}

static int show_picture(const struct report_request *r)
{
	struct input input, samples = {0};
	int status = open_input(r->path[0], &input);

	if (status)
		return status;
	if (r->rss)
		status = open_input(r->rss, &samples);
	if (!status && r->rss && samples.kind != INPUT_SAMPLES) {
		log_error("%s: no file of samples (it begins with \"time\", a tab and \"pid\")",
			  r->rss);
		status = EXIT_REFUSED;
	}
	if (!status)
		status = write_picture(r, &input, samples.samples);
	input_deinit(&input);
	input_deinit(&samples);
	return status;
}

/* Call paths. */

static int open_source(const char *path, uint64_t which, struct source *out)
{
	_cleanup_free_ char *why = NULL;
	struct source s = {.path = path};
	int status = open_input(path, &s.input);

	if (status)
		return status;
	if (s.input.kind != INPUT_MASSIF)
		why = xstrdup("no massif file, so it has no call paths");
	else
		massif_paths_find(s.input.massif, which, &s.snapshot, &why);
	if (why) {
		log_error("%s: %s", path, why);
		input_deinit(&s.input);
		return EXIT_REFUSED;
	}
	*out = s;
	return 0;
}

static const struct massif_snapshot *snapshot_of(const struct source *s)
{
	return &s->input.massif->snapshot[s->snapshot];
}

/* "peak snapshot 7" */
static char *describe_snapshot(const struct source *s)
{
	return xasprintf("%ssnapshot %" PRIu64, s->snapshot == s->input.massif->peak ? "peak " : "",
			 snapshot_of(s)->number);
}

/* Opens @path for writing, logs the error. */
static int open_output(const char *path, struct outfile *out)
{
	int err = outfile_open(path, out);

	if (err)
		log_error("cannot write %s: %s", path, strerror(-err));
	return err ? EXIT_NOT_WRITTEN : 0;
}

static int commit_output(const char *path, struct outfile *out)
{
	int err = outfile_commit(out);

	if (err)
		log_error("cannot write %s: %s", path, strerror(-err));
	return err ? EXIT_NOT_WRITTEN : 0;
}

static int write_folded(const struct report_request *r, const struct path_tree *t)
{
	struct outfile out;
	int status = open_output(r->folded, &out);

	if (status)
		return status;
	folded_write(out.file, t, r->is_diff);
	return commit_output(r->folded, &out);
}

static int write_flame(const struct report_request *r, const struct path_tree *t, const char *title,
		       const char *subtitle)
{
	struct flame_options options = {
		.title = r->title ? r->title : title,
		.subtitle = subtitle,
		.unit = "bytes",
		.width = r->x_size ? r->x_size : FLAME_WIDTH_DEFAULT,
		.min_frame = FLAME_MIN_FRAME,
		.is_diff = r->is_diff,
	};
	struct outfile out;
	int status = open_output(r->flame, &out);

	if (status)
		return status;
	flame_write(out.file, t, &options);
	return commit_output(r->flame, &out);
}

static int write_paths(const struct report_request *r, const struct path_tree *t, const char *title,
		       const char *subtitle)
{
	int status = r->folded ? write_folded(r, t) : 0;

	return !status && r->flame ? write_flame(r, t, title, subtitle) : status;
}

/* What a massif file calls its program; the whole line, though the format ends it at '#'. */
static char *command_of(const struct source *s)
{
	struct massif_text line = massif_file_line(s->input.massif, s->input.massif->command);

	return xasprintf("%.*s", MASSIF_TEXT(line));
}

static int show_paths(const struct report_request *r)
{
	struct source s;
	int status = open_source(r->path[0], r->snapshot, &s);

	if (status)
		return status;
	struct path_tree *t = path_tree_new();
	_cleanup_free_ char *snapshot = describe_snapshot(&s), *title = command_of(&s);
	_cleanup_free_ char *subtitle = xasprintf("live heap at %s: bytes by call path", snapshot);

	massif_paths_add(s.input.massif, s.snapshot, MASSIF_CALLER_FIRST, PATH_NEW, t);
	path_tree_sum(t);
	status = write_paths(r, t, title, subtitle);
	path_tree_free(t);
	input_deinit(&s.input);
	return status;
}

/* Differences. */

static void add_both(const struct source side[2], enum massif_order order, struct path_tree *t)
{
	for (int i = 0; i < 2; i++)
		massif_paths_add(side[i].input.massif, side[i].snapshot, order, (enum path_side)i,
				 t);
	path_tree_sum(t);
}

static void print_diff(const struct report_request *r, const struct source side[2],
		       char *const snapshot[2])
{
	struct path_tree *t = path_tree_new();
	struct diff_options options = {.top = r->top, .threshold = r->text.threshold};

	add_both(side, MASSIF_SITE_FIRST, t);
	printf("old  %s, %s\nnew  %s, %s\n\n", side[0].path, snapshot[0], side[1].path,
	       snapshot[1]);
	diff_print(stdout, t, &options);
	path_tree_free(t);
}

static int write_diff_paths(const struct report_request *r, const struct source side[2],
			    char *const snapshot[2])
{
	struct path_tree *t = path_tree_new();
	_cleanup_free_ char *title = command_of(&side[1]);
	_cleanup_free_ char *subtitle =
		xasprintf("width: bytes in NEW (%s); red grew, blue shrank since OLD (%s); "
			  "paths now empty have no width", snapshot[1], snapshot[0]);

	add_both(side, MASSIF_CALLER_FIRST, t);
	int status = write_paths(r, t, title, subtitle);

	path_tree_free(t);
	return status;
}

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

static int show_both(const struct report_request *r, const struct source side[2])
{
	_cleanup_free_ char *old = describe_snapshot(&side[0]), *new = describe_snapshot(&side[1]);
	char *const snapshot[2] = {old, new};

	if (!is_stdout(r->folded) && !is_stdout(r->flame))
		print_diff(r, side, snapshot);
	return r->flame || r->folded ? write_diff_paths(r, side, snapshot) : 0;
}

static int show_diff(const struct report_request *r)
{
	struct source side[2];
	int status = open_source(r->path[0], r->snapshot, &side[0]);

	if (status)
		return status;
	status = open_source(r->path[1], r->snapshot, &side[1]);
	if (!status) {
		status = show_both(r, side);
		input_deinit(&side[1].input);
	}
	input_deinit(&side[0].input);
	return status;
}

int show(const struct report_request *r)
{
	if (r->is_diff)
		return show_diff(r);
	if (!r->png && !r->svg && !r->folded && !r->flame)
		return show_text(r);
	int status = r->folded || r->flame ? show_paths(r) : 0;

	return !status && (r->png || r->svg) ? show_picture(r) : status;
}
