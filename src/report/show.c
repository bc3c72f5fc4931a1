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
#include "output/outfile.h"
#include "report/diff.h"
#include "report/html_report.h"
#include "report/input.h"
#include "report/massif_sampling.h"
#include "report/recording_show.h"
#include "report/rss.h"

/* A massif file and the snapshot whose paths are wanted. */
struct source {
	const char *path;
	struct input input;
	size_t snapshot;       /* index */
};

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

static int show_text(const struct report_request *r, const struct input *input)
{
	_cleanup_free_ char *why = NULL;
	int err = 0;

	if (input->kind == INPUT_MASSIF)
		err = msprint(stdout, input->massif, &r->text, &why);
	else
		why = xstrdup("there is no text report of such a file; draw it by --png=OUT");
	if (!err && input->kind == INPUT_MASSIF)
		return 0;
	log_error("%s: %s", r->path[0], why);
	return EXIT_REFUSED;
}

/* Pictures over time. */

static void warn_of_doubt(const struct report_request *r, const struct massif_file *profile,
			  const struct samples_file *rss, uint32_t pid)
{
	_cleanup_free_ char *doubt = rss_doubt(rss, pid, profile, r->path[0]);

	if (doubt)
		log_warn("--rss=%s: %s", r->rss, doubt);
}

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
	if (rss && rss->row_count)
		options.rss_pid = rss_process(rss, r->path[0]);
	int err = picture_write(input, &options, &why);

	if (err == -EINVAL && why) {
		log_error("%s: %s", r->path[0], why);
		return EXIT_REFUSED;
	}
	if (err)
		log_error("cannot write the picture: %s", strerror(-err));
	else if (options.rss_pid)
		warn_of_doubt(r, input->massif, rss, options.rss_pid);
	return err ? EXIT_NOT_WRITTEN : 0;
}

static int show_picture(const struct report_request *r, const struct input *input)
{
	struct input samples = {0};
	int status = r->rss ? open_input(r->rss, &samples) : 0;

	if (!status && r->rss && samples.kind != INPUT_SAMPLES) {
		log_error("%s: no file of samples (it begins with \"time\", a tab and \"pid\")",
			  r->rss);
		status = EXIT_REFUSED;
	}
	if (!status)
		status = write_picture(r, input, samples.samples);
	input_deinit(&samples);
	return status;
}

/* Call paths. */

static int find_source(const char *path, const struct input *input, uint64_t which,
		       struct source *out)
{
	_cleanup_free_ char *why = NULL;
	struct source s = {.path = path, .input = *input};

	if (s.input.kind != INPUT_MASSIF)
		why = xstrdup("no massif file, so it has no call paths");
	else
		massif_paths_find(s.input.massif, which, &s.snapshot, &why);
	if (why) {
		log_error("%s: %s", path, why);
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

/* What a flame graph says, and how far apart the samples of both sides are (0: exact). */
struct path_words {
	const char *title, *subtitle;
	uint64_t interval[2];
};

static int write_folded(const struct report_request *r, const struct path_tree *t)
{
	struct outfile out;
	int status = open_output(r->folded, &out);

	if (status)
		return status;
	folded_write(out.file, t, r->is_diff);
	return commit_output(r->folded, &out);
}

static int write_flame(const struct report_request *r, const struct path_tree *t,
		       const struct path_words *words)
{
	struct flame_options options = {
		.sample_interval = {words->interval[PATH_OLD], words->interval[PATH_NEW]},
		.title = r->title ? r->title : words->title,
		.subtitle = words->subtitle,
		.unit = "bytes",
		.width = r->x_size ? r->x_size : FLAME_WIDTH_DEFAULT,
		.is_fixed = r->x_size,
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

static int write_paths(const struct report_request *r, const struct path_tree *t,
		       const struct path_words *words)
{
	int status = r->folded ? write_folded(r, t) : 0;

	return !status && r->flame ? write_flame(r, t, words) : status;
}

/* What a flame graph shows of each kind of memory. */
static const char *const values_shown[MEMORY_KINDS] = {
	[MEMORY_HEAP] = "live heap",
	[MEMORY_PAGES] = "mapped pages",
	[MEMORY_BRK] = "growth of the program break",
	[MEMORY_MAPPED] = "mapped memory",
	[MEMORY_FAULTS] = "bytes touched",
};

/* What a massif file calls its program. */
static char *command_of(const struct source *s)
{
	return xasprintf("%.*s", MASSIF_TEXT(s->input.massif->command));
}

static int show_paths(const struct report_request *r, const struct input *input)
{
	struct source s;
	int status = find_source(r->path[0], input, r->snapshot, &s);

	if (status)
		return status;
	struct path_tree *t = path_tree_new();
	_cleanup_free_ char *snapshot = describe_snapshot(&s), *title = command_of(&s);
	_cleanup_free_ char *subtitle =
		xasprintf("%s at %s: bytes by call path",
			  values_shown[s.input.massif->memory], snapshot);

	massif_paths_add(s.input.massif, s.snapshot, MASSIF_CALLER_FIRST, PATH_NEW, t);
	path_tree_sum(t);
	status = write_paths(r, t, &(struct path_words){
			.title = title, .subtitle = subtitle,
			.interval[PATH_NEW] = massif_sampling_interval(s.input.massif)});
	path_tree_free(t);
	return status;
}

/* Options that ask a recording something make no sense for other files. */
static int refuse_question(const struct report_request *r)
{
	if (r->format <= FORMAT_TEXT && !recording_question_is_given(&r->question))
		return 0;
	log_error("%s: --format, --at, --range, --thread and --match are for recordings "
		  "(ptmem --record)", r->path[0]);
	return EXIT_REFUSED;
}

/* The HTML report. */

/* Whether @input has call paths: massif files and recordings have. */
static int check_profile(const char *path, const struct input *input)
{
	if (input->kind == INPUT_MASSIF || input->kind == INPUT_RECORDING)
		return 0;
	log_error("%s: no massif file, so it has no call paths", path);
	return EXIT_REFUSED;
}

static int write_html(const struct report_request *r, const struct input *input,
		      const struct input *old)
{
	_cleanup_free_ char *why = NULL;
	struct outfile out;
	int status = open_output(r->html, &out);

	if (status)
		return status;
	if (html_report_write(out.file, input, old, &r->question, &why) == 0)
		return commit_output(r->html, &out);
	outfile_abort(&out);
	log_error("%s: %s", r->path[r->is_diff], why);
	return EXIT_REFUSED;
}

/* @input: OLD and NEW, or the only one. */
static int show_html(const struct report_request *r, const struct input input[2])
{
	int status = 0;

	for (int i = 0; !status && i <= r->is_diff; i++)
		status = check_profile(r->path[i], &input[i]);
	if (!status && r->is_diff && input[0].kind != input[1].kind) {
		log_error("%s and %s are files of different kinds", r->path[0], r->path[1]);
		status = EXIT_REFUSED;
	}
	if (!status && input[0].kind != INPUT_RECORDING)
		status = refuse_question(r);
	if (status)
		return status;
	return write_html(r, &input[r->is_diff], r->is_diff ? &input[0] : NULL);
}

/* Differences. */

static void add_both(const struct source side[2], enum massif_order order, struct path_tree *t)
{
	for (int i = 0; i < 2; i++)
		massif_paths_add(side[i].input.massif, side[i].snapshot, order, (enum path_side)i,
				 t);
	path_tree_sum(t);
}

static void set_intervals(const struct source side[2], uint64_t interval[2])
{
	for (int i = 0; i < 2; i++)
		interval[i] = massif_sampling_interval(side[i].input.massif);
}

static void print_diff(const struct report_request *r, const struct source side[2],
		       char *const snapshot[2])
{
	struct path_tree *t = path_tree_new();
	struct diff_options options = {.top = r->top, .threshold = r->text.threshold};

	add_both(side, MASSIF_SITE_FIRST, t);
	set_intervals(side, options.interval);
	printf("old  %s, %s\nnew  %s, %s\n\n", side[0].path, snapshot[0], side[1].path,
	       snapshot[1]);
	diff_print(stdout, t, &options);
	path_tree_free(t);
}

static int write_diff_paths(const struct report_request *r, const struct source side[2],
			    char *const snapshot[2])
{
	struct path_tree *t = path_tree_new();
	_cleanup_free_ char *command = command_of(&side[1]);
	_cleanup_free_ char *title = xasprintf("Growth of %s", command);
	_cleanup_free_ char *subtitle =
		xasprintf("width: bytes in NEW (%s) or, if more, in OLD (%s); colour: growth",
			  snapshot[1], snapshot[0]);

	add_both(side, MASSIF_CALLER_FIRST, t);
	struct path_words words = {.title = title, .subtitle = subtitle};

	set_intervals(side, words.interval);
	int status = write_paths(r, t, &words);

	path_tree_free(t);
	return status;
}

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

/* The base name of the program in a command line. */
static struct massif_text program_of(const struct source *s)
{
	struct massif_text t = s->input.massif->command;
	const char *blank = memchr(t.at, ' ', t.size);

	if (blank)
		t.size = (size_t)(blank - t.at);
	const char *slash = memrchr(t.at, '/', t.size);

	return slash ? (struct massif_text){slash + 1, t.size - (size_t)(slash + 1 - t.at)} : t;
}

/* Differences of profiles that have little in common are numbers without a meaning. */
static void warn_of_unlike(const struct source side[2])
{
	enum memory_kind old = side[0].input.massif->memory, new = side[1].input.massif->memory;
	struct massif_text a = program_of(&side[0]), b = program_of(&side[1]);

	if (old != new)
		log_warn("%s is a profile of %s, %s of %s: differences mean little", side[0].path,
			 memory_kind_name(old), side[1].path, memory_kind_name(new));
	if (a.size != b.size || memcmp(a.at, b.at, a.size))
		log_warn("%s is a profile of %.*s, %s of %.*s", side[0].path, MASSIF_TEXT(a),
			 side[1].path, MASSIF_TEXT(b));
}

static int show_both(const struct report_request *r, const struct source side[2])
{
	_cleanup_free_ char *old = describe_snapshot(&side[0]), *new = describe_snapshot(&side[1]);
	char *const snapshot[2] = {old, new};

	warn_of_unlike(side);
	if (!is_stdout(r->folded) && !is_stdout(r->flame) && !is_stdout(r->html))
		print_diff(r, side, snapshot);
	return r->flame || r->folded ? write_diff_paths(r, side, snapshot) : 0;
}

static int show_diff(const struct report_request *r, const struct input input[2])
{
	struct source side[2];
	int status = 0;

	if (input[0].kind == INPUT_RECORDING && input[1].kind == INPUT_RECORDING)
		return recording_show(r, input[0].recording, input[1].recording);
	status = refuse_question(r);
	for (int i = 0; !status && i < 2; i++)
		status = find_source(r->path[i], &input[i], r->snapshot, &side[i]);
	return status ? status : show_both(r, side);
}

static int show_one(const struct report_request *r, const struct input *input)
{
	if (input->kind == INPUT_RECORDING && !r->png && !r->svg)
		return recording_show(r, NULL, input->recording);
	if (refuse_question(r))
		return EXIT_REFUSED;
	if (!r->png && !r->svg && !r->folded && !r->flame) {
		if (r->html)
			return 0;
		if (r->top == REPORT_TOP_DEFAULT)
			return show_text(r, input);
		log_error("--top goes with --diff or a recording (see --help)");
		return EXIT_REFUSED;
	}
	int status = r->folded || r->flame ? show_paths(r, input) : 0;

	return !status && (r->png || r->svg) ? show_picture(r, input) : status;
}

int show(const struct report_request *r)
{
	struct input input[2] = {0};
	int status = open_input(r->path[0], &input[0]);

	if (!status && r->is_diff)
		status = open_input(r->path[1], &input[1]);
	if (!status && r->html)
		status = show_html(r, input);
	if (!status)
		status = r->is_diff ? show_diff(r, input) : show_one(r, &input[0]);
	input_deinit(&input[0]);
	input_deinit(&input[1]);
	return status;
}
