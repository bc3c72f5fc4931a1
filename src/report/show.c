/*
 * Reads the input files and writes the requested reports. Errors are logged here, where the file's
 * name is known; what main needs is the exit status.
 */
#include "report/show.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "output/outfile.h"
#include "profile/estimate.h"
#include "recording/graph_file.h"
#include "recording/processes.h"
#include "recording/recording_view.h"
#include "report/anonymize.h"
#include "report/chart/picture.h"
#include "report/gates/baseline.h"
#include "report/gates/gates.h"
#include "report/input.h"
#include "report/massif_paths.h"
#include "report/recording_paths.h"
#include "report/whatif/what_if.h"

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

static void apply_my_code(const struct report_request *r, struct input *input)
{
	if (input->kind == INPUT_MASSIF)
		input->massif->my_code = &r->my_code;
	for (size_t i = 0; input->kind == INPUT_RECORDING && i < r->my_code.rule.count; i++)
		my_code_add(&input->recording->my_code, r->my_code.rule.data[i]);
}

/* A profile of which only what --match selects remains. */
static int open_profile(const struct report_request *r, size_t i, struct input *out)
{
	_cleanup_free_ char *why = NULL;
	const char *match = r->question.match;
	int status = open_input(r->path[i], out);

	if (!status)
		apply_my_code(r, out);
	if (status || out->kind != INPUT_RECORDING)
		return status;
	if (r->temporary_us)
		recording_temporary_within(out->recording, r->temporary_us);
	if (!match)
		return 0;
	int err = recording_keep_matches(out->recording, match, &why);

	return err ? log_unread(r->path[i], err, why) : 0;
}

/* The text report. */

static int show_text(const struct report_request *r, const struct input *input)
{
	_cleanup_free_ char *why = NULL;
	int err = msprint(stdout, input->massif, &r->text, &why);

	if (err)
		log_error("%s: %s", r->path[0], why);
	return err ? EXIT_REFUSED : 0;
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
		outfile_log_error(r->png && r->svg ? "the pictures" :
				  r->png	   ? r->png :
						     r->svg, err);
	else if (options.rss_pid)
		warn_of_doubt(r, input->massif, rss, options.rss_pid);
	return err ? EXIT_NOT_WRITTEN : 0;
}

static int show_picture(const struct report_request *r, const struct input *input)
{
	struct input samples = {0};
	int status = r->rss ? open_input(r->rss, &samples) : 0;

	if (!status && r->rss && samples.kind != INPUT_SAMPLES) {
		log_error("%s: not a file of samples (one begins with \"time\", a tab and \"pid\")",
			  r->rss);
		status = EXIT_REFUSED;
	}
	if (!status)
		status = write_picture(r, input, samples.samples);
	input_deinit(&samples);
	return status;
}

/* Call paths. */

/* What a flame graph shows of each kind of memory. */
static const char *const values_shown[MEMORY_KINDS] = {
	[MEMORY_HEAP] = "live heap",
	[MEMORY_PAGES] = "mapped pages",
	[MEMORY_BRK] = "growth of the program break",
	[MEMORY_MAPPED] = "mapped memory",
	[MEMORY_FAULTS] = "bytes touched",
};

static int show_paths(const struct report_request *r, struct massif_file *f)
{
	_cleanup_free_ char *why = NULL;
	size_t index;

	if (massif_paths_find(f, r->snapshot, &index, &why) != 0) {
		log_error("%s: %s", r->path[0], why);
		return EXIT_REFUSED;
	}
	_cleanup_free_ char *snapshot = massif_snapshot_text(f, index);
	_cleanup_free_ char *title = xasprintf("%.*s", MASSIF_TEXT(f->command));
	uint64_t interval = massif_sampling_interval(f);
	_cleanup_free_ char *note = sampling_note(interval, interval);
	_cleanup_free_ char *subtitle = xasprintf("%s at %s%s: bytes by call path",
						  values_shown[f->memory], snapshot, note);
	const struct path_words words = {.title = title, .subtitle = subtitle};
	struct path_tree *t = path_tree_new();
	struct recording_view view;

	massif_paths_view(f, index, &view);
	recording_paths_add(t, massif_paths(f)->recording, &view);
	path_tree_sum(t);
	int status = path_files_write(r, t, &words);

	recording_view_deinit(&view);
	path_tree_free(t);
	return status;
}

static int check_input(const struct report_request *r, size_t i, const struct input *input)
{
	_cleanup_free_ char *why = request_check_input(r, input->kind);

	if (why)
		log_error("%s: %s", r->path[i], why);
	return why ? EXIT_REFUSED : 0;
}

static int show_forms(const struct report_request *r, const struct input *input,
		      const struct gate *gate)
{
	int status = r->html ? html_report_write(r, input) : 0;

	if (!status && (r->png || r->svg))
		status = show_picture(r, input);
	if (!status && input->kind == INPUT_RECORDING)
		return recording_show(r, input->recording, request_printed(r) != 0, gate);
	if (!status && (r->folded || r->flame))
		status = show_paths(r, input->massif);
	return !status && request_printed(r) & AS_TEXT ? show_text(r, input) : status;
}

static int show_one(const struct report_request *r, const struct input *input)
{
	struct gate gate = {0};
	int verdict = gates_are_wanted(r) ? gates_of_profile(r, input, &gate) : 0;
	int status = verdict == EXIT_REFUSED ? verdict : show_forms(r, input, &gate);

	if (verdict != EXIT_REFUSED)
		gates_show(r, &gate);
	gate_deinit(&gate);
	return status ? status : verdict;
}

/* -- baselines -- */

/* Those that conditions name. */
static int want_functions(const struct report_request *r, struct baseline *out)
{
	for (size_t i = 0; i < r->fail_if.count; i++) {
		struct fail_if f = {0};

		fail_if_parse(r->fail_if.data[i], &f); /* request_check has checked it */
		const char *why = f.of.function ? baseline_want(out, &f) : NULL;

		if (!why)
			continue;
		log_error("--fail-if=%s: %s", r->fail_if.data[i], why);
		return EXIT_REFUSED;
	}
	return 0;
}

/* @old: what the runs are compared with, or NULL. */
static int read_runs(const struct report_request *r, const struct baseline *old,
		     struct baseline *out)
{
	int status = want_functions(r, out);

	for (size_t i = 0; !status && i < r->path_count; i++) {
		struct input input = {0};

		status = open_profile(r, i, &input);
		if (!status)
			status = check_input(r, i, &input);
		if (!status && !input.recording && !input.massif) {
			log_error("%s: a baseline is of recordings or massif files", r->path[i]);
			status = EXIT_REFUSED;
		}
		if (!status && old && old->lacks_lines)
			input_merge_inlined(&input);
		if (!status)
			baseline_add(out, r->path[i], &input);
		input_deinit(&input);
	}
	return status;
}

static int put_baseline(FILE *file, const void *ctx)
{
	baseline_write(file, ctx);
	return 0;
}

static int compare_with_baseline(const struct report_request *r, const struct baseline *old,
				 const struct baseline *new)
{
	struct gate gate = {0};
	int status = gates_of_baseline(r, old, new, &gate);

	if (status != EXIT_REFUSED)
		gates_show(r, &gate);
	gate_deinit(&gate);
	return status;
}

static int read_baseline(const struct report_request *r, struct baseline *out)
{
	_cleanup_free_ char *why = NULL;
	int err = baseline_read(r->baseline, out, &why);

	return err ? log_unread(r->baseline, err, why) : 0;
}

static int show_baseline(const struct report_request *r)
{
	struct baseline old = {0}, runs = {0};
	int status = r->baseline ? read_baseline(r, &old) : 0, err;

	status = status ?: read_runs(r, r->baseline ? &old : NULL, &runs);
	if (!status && r->baseline) {
		status = compare_with_baseline(r, &old, &runs);
	} else if (!status && runs.doubt) {
		log_warn("%s", runs.doubt);
	}
	if (!status && r->write_baseline &&
	    (err = outfile_put(r->write_baseline, put_baseline, &runs)) != 0) {
		outfile_log_error(r->write_baseline, err);
		status = EXIT_NOT_WRITTEN;
	}
	baseline_deinit(&runs);
	baseline_deinit(&old);
	return status;
}

static int write_anonymized(const struct report_request *r)
{
	_cleanup_free_ char *why = NULL, *data = NULL;
	size_t size;
	int err = input_read(r->path[0], &data, &size);

	if (err)
		return log_unread(r->path[0], err, NULL);
	err = anonymize(data, size, r->key, r->anonymize, &why);
	if (why)
		return log_unread(r->path[0], -EINVAL, why);
	if (err)
		outfile_log_error(r->anonymize, err);
	return err ? EXIT_NOT_WRITTEN : 0;
}

/* -- several processes -- */

/* A file that cannot be read is a row that says so. */
static int add_process(const struct report_request *r, size_t i, struct processes *all)
{
	struct input input = {0};
	int status = open_profile(r, i, &input);

	if (status) {
		processes_add_unread(all, r->path[i], "it cannot be read");
		return EXIT_NOT_READ;
	}
	if (input.kind == INPUT_RECORDING) {
		processes_add(all, input.recording, r->path[i]);
		input.recording = NULL;
	} else {
		log_error("%s: not a recording: --merge takes files of ptmem --record", r->path[i]);
		status = EXIT_REFUSED;
	}
	input_deinit(&input);
	return status;
}

static int show_merged(const struct report_request *r)
{
	struct processes all = {0};
	size_t unread = 0;
	int status = 0;

	for (size_t i = 0; status != EXIT_REFUSED && i < r->path_count; i++) {
		int rc = add_process(r, i, &all);

		unread += rc != 0;
		status = rc ? rc : status;
	}
	if (status != EXIT_REFUSED && unread < r->path_count)
		status = merge_show(r, &all, request_printed(r) != 0) ?: status;
	processes_deinit(&all);
	return status;
}

/* What --brief compares: any two of a kind that --diff compares. */
static int check_compared(const struct report_request *r, const struct input *input)
{
	for (size_t i = 0; i < 2; i++)
		if (!input_paths(&input[i]) && input[i].kind != INPUT_MASSIF &&
		    input[i].kind != INPUT_GRAPH) {
			log_error("%s: --diff compares recordings, massif files and heap graphs",
				  r->path[i]);
			return EXIT_REFUSED;
		}
	return 0;
}

/* A recording becomes the graph in it. */
static int take_graph(const struct report_request *r, size_t i, struct input *input)
{
	char *why = NULL;

	if (input->kind == INPUT_GRAPH)
		return 0;
	if (input->kind != INPUT_RECORDING || !graph_file_is_in(input->recording)) {
		log_error("%s: there is no heap graph in it: ptmem --graph with --record keeps one",
			  r->path[i]);
		return EXIT_REFUSED;
	}
	int err = graph_file_take(input->recording, &input->graph, &why);

	if (err)
		return log_unread(r->path[i], err, why);
	recording_free(input->recording);
	input->recording = NULL;
	input->kind = INPUT_GRAPH;
	return 0;
}

int show(const struct report_request *r)
{
	struct input input[2] = {0};

	if (r->what_if)
		return what_if_show(r);
	if (r->anonymize)
		return write_anonymized(r);

	if (r->baseline || r->write_baseline)
		return show_baseline(r);
	if (r->is_merge)
		return show_merged(r);
	int status = open_profile(r, 0, &input[0]);

	if (!status && r->is_diff)
		status = open_profile(r, 1, &input[1]);
	for (size_t i = 0; !status && r->wants_graph && i <= r->is_diff; i++)
		status = take_graph(r, i, &input[i]);
	bool has_graph = input[0].kind == INPUT_GRAPH && !status;

	for (size_t i = 0; !status && !has_graph && !r->is_brief && i <= r->is_diff; i++)
		status = check_input(r, i, &input[i]);
	if (!status && r->is_brief && r->is_diff)
		status = check_compared(r, input);
	if (!status && !has_graph && r->is_diff)
		input_match_inlined(&input[0], &input[1]);
	if (!status && r->is_brief && !r->is_diff)
		status = brief_show(r, input);
	else if (!status && has_graph)
		status = graph_show(r, input);
	else if (!status)
		status = r->is_diff ? diff_show(r, input) : show_one(r, input);
	input_deinit(&input[0]);
	input_deinit(&input[1]);
	return status;
}
