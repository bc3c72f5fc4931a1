/*
 * The reports of two profiles. All of them are made from the same matching of frames, and all but
 * the page from the same view: snapshots of massif files, or what is asked of recordings.
 */
#include "report/show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "output/brief.h"
#include "profile/estimate.h"
#include "report/diff_output.h"
#include "report/diff_paths.h"
#include "report/gates/gates.h"
#include "report/massif_paths.h"
#include "report/recording_output.h"

struct diff {
	const struct report_request *request;
	struct diff_pair pair;
	char *view[2];             /* in words */
	char *more[2];             /* of recordings: members of their JSON */
	struct gate gate;
};

/* -- what is compared -- */

static int refuse(const struct diff *d, enum path_side side, const char *why)
{
	log_error("%s: %s", d->request->path[side], why);
	return EXIT_REFUSED;
}

static int find_recording(struct diff *d, enum path_side side)
{
	const struct recording_question *q = &d->request->question;
	const struct recording *r = d->pair.input[side].recording;
	struct recording_view *v = &d->pair.view[side];
	_cleanup_free_ char *why = NULL;

	if (recording_view_init(v, r, q, &why) != 0 ||
	    recording_view_json(r, q, &d->more[side], &why) != 0)
		return refuse(d, side, why);
	d->view[side] = recording_view_text(v, r, q);
	return 0;
}

static int find_massif(struct diff *d, enum path_side side)
{
	struct massif_file *f = d->pair.input[side].massif;
	_cleanup_free_ char *why = NULL;
	size_t *snapshot = &d->pair.snapshot[side];

	if (massif_paths_find(f, d->request->snapshot, snapshot, &why) != 0)
		return refuse(d, side, why);
	massif_paths_view(f, *snapshot, &d->pair.view[side]);
	uint64_t interval = massif_sampling_interval(f);
	_cleanup_free_ char *note = sampling_note(interval, interval);
	_cleanup_free_ char *text = massif_snapshot_text(f, *snapshot);

	d->view[side] = xasprintf("%s%s", text, note);
	return 0;
}

/* Of the column of errors; NULL: both profiles are exact. A massif file has bounds alone. */
static const char *error_heading(const struct input *input)
{
	if (!input_interval(&input[PATH_OLD]) && !input_interval(&input[PATH_NEW]))
		return NULL;
	return input->kind == INPUT_RECORDING ? "+-" : "+- at most";
}

/* Differences of profiles that have little in common are numbers without a meaning. */
static void warn_of_unlike(struct diff *d)
{
	const struct input *old = &d->pair.input[PATH_OLD], *new = &d->pair.input[PATH_NEW];
	const char *const *path = d->request->path;
	_cleanup_free_ char *a = input_program(old), *b = input_program(new);
	bool is_sampled = input_interval(old) != 0;

	if (old->kind == INPUT_MASSIF && old->massif->memory != new->massif->memory)
		gate_warn(&d->gate, xasprintf("%s is a profile of %s, %s of %s: differences mean "
					      "little", path[0],
					      memory_kind_name(old->massif->memory), path[1],
					      memory_kind_name(new->massif->memory)));
	if (strcmp(a, b) != 0)
		gate_warn(&d->gate, xasprintf("%s is a profile of %s, %s of %s", path[0], a,
					      path[1], b));
	if (is_sampled != (input_interval(new) != 0))
		gate_warn(&d->gate, xasprintf("%s is exact, %s has samples: differences are those "
					      "of estimates, too", path[is_sampled],
					      path[!is_sampled]));
	for (int side = PATH_OLD; side <= PATH_NEW; side++)
		if (input_lines(&d->pair.input[side]) == INPUT_NO_LINES &&
		    input_lines(&d->pair.input[!side]) == INPUT_HAS_LINES)
			gate_warn(&d->gate, xasprintf("%s has no debug information of the program, "
						      "%s has: what inlined functions "
						      "allocate counts for those that contain "
						      "them", path[side], path[!side]));
	for (int side = PATH_OLD; side <= PATH_NEW; side++)
		if (input_gap(&d->pair.input[side]))
			gate_warn(&d->gate, xasprintf("%s: %s", path[side],
						      input_gap(&d->pair.input[side])));
}

/* An answer without a path is no mistake, but its reader should not look for one. */
static void warn_of_nothing(const struct diff *d)
{
	const struct recording_question *q = &d->request->question;

	for (int side = PATH_OLD; side <= PATH_NEW; side++)
		if (d->pair.view[side].sum.bytes || d->pair.view[side].sum.blocks)
			return;
	if (recording_question_is_given(q) && q->match)
		log_warn("nothing matches --match=%s in either file", q->match);
	else if (recording_question_is_given(q))
		log_warn("nothing was %s in either file", d->view[PATH_NEW]);
}

/* -- reports -- */

static void print_table(const struct diff *d)
{
	const struct report_request *r = d->request;
	struct path_tree *t = diff_pair_tree(&d->pair, DIFF_SITE_FIRST);
	const struct diff_options options = {
		.top = r->top,
		.threshold = r->text.threshold,
		.error_heading = error_heading(d->pair.input),
	};

	printf("old  %s, %s\nnew  %s, %s\n\n", r->path[0], d->view[0], r->path[1], d->view[1]);
	diff_print(stdout, t, &options);
	path_tree_free(t);
}

static void print_rows(const struct diff *d, bool is_json)
{
	struct path_tree *t = diff_pair_tree(&d->pair, DIFF_TABLE);
	struct diff_rows rows;
	_cleanup_free_ char *more =
		d->request->fail_if.count ? gate_json_members(&d->gate) : NULL;
	const struct diff_json_rows view = {
		.view = {d->view[0], d->view[1]}, .rows = &rows, .more = more};

	diff_rows_init(&rows, t);
	if (is_json)
		diff_json_write(stdout, d->pair.input, d->more, d->pair.match, &view);
	else
		diff_rows_write_csv(stdout, &rows, d->pair.input->kind == INPUT_RECORDING);
	diff_rows_deinit(&rows);
	path_tree_free(t);
}

static int write_paths(const struct diff *d)
{
	struct path_tree *t = diff_pair_tree(&d->pair, DIFF_CALLER_FIRST);
	_cleanup_free_ char *command = input_command(&d->pair.input[PATH_NEW]);
	_cleanup_free_ char *title = xasprintf("Growth of %s", command);
	_cleanup_free_ char *subtitle =
		xasprintf("width: bytes in NEW (%s) or, if more, in OLD (%s); colour: growth",
			  d->view[PATH_NEW], d->view[PATH_OLD]);
	const struct path_words words = {
		.title = title,
		.subtitle = subtitle,
	};
	int status = path_files_write(d->request, t, &words);

	if (!status && request_printed(d->request) & AS_FOLDED)
		status = path_files_folded("-", t, true);
	path_tree_free(t);
	return status;
}

/* The sites that changed: the root's children. */
static void print_brief(const struct diff *d)
{
	struct path_tree *t = diff_pair_tree(&d->pair, DIFF_SITE_FIRST);
	const struct path_node *root = path_tree_node(t, 0);
	struct brief b;

	brief_show_begin(d->request, &b);
	brief_set_title(&b, xasprintf("changes from %s to %s", d->request->path[0],
				      d->request->path[1]));
	for (int side = PATH_OLD; side <= PATH_NEW; side++)
		brief_add_fact(&b, xasprintf("%s  %" PRIu64 " bytes, %s", side ? "new" : "old",
					     root->total[side], d->view[side]));
	for (uint32_t i = root->first_child; i; i = path_tree_node(t, i)->next_sibling) {
		const struct path_node *n = path_tree_node(t, i);
		bool has_more = n->total[PATH_NEW] > n->total[PATH_OLD];
		uint64_t change = has_more ? n->total[PATH_NEW] - n->total[PATH_OLD] :
					     n->total[PATH_OLD] - n->total[PATH_NEW];

		if (change > 0)
			brief_add(&b, change, xasprintf("%s, now %" PRIu64 " bytes,",
							has_more ? "more" : "less",
							n->total[PATH_NEW]),
				  xstrdup(n->name), xstrdup("--top=100"));
	}
	path_tree_free(t);
	brief_show_end(d->request, &b);
}

static int write_all(const struct diff *d)
{
	if (d->request->is_brief) {
		print_brief(d);
		return 0;
	}
	const struct report_request *r = d->request;
	unsigned printed = request_printed(r);
	int status = r->html ? html_report_write(r, d->pair.input) : 0;

	if (!status && printed & AS_TABLE)
		print_table(d);
	if (!status && printed & AS_ROWS)
		print_rows(d, printed & AS_JSON);
	if (!status && (r->folded || r->flame || printed & AS_FOLDED))
		status = write_paths(d);
	return status;
}

int diff_show(const struct report_request *r, const struct input *input)
{
	struct diff d = {.request = r, .pair.input = input};
	int status = 0;

	if (input[PATH_OLD].kind != input[PATH_NEW].kind) {
		bool is_first = input[PATH_OLD].kind == INPUT_RECORDING;

		log_error("%s is a recording, and %s a massif file: --diff compares two of a kind; "
			  "ptmem-report --format=massif %s >FILE makes the other",
			  r->path[!is_first], r->path[is_first], r->path[!is_first]);
		return EXIT_REFUSED;
	}
	for (int side = PATH_OLD; !status && side <= PATH_NEW; side++)
		status = (input->kind == INPUT_RECORDING ? find_recording : find_massif)(
			&d, (enum path_side)side);
	if (!status) {
		warn_of_unlike(&d);
		warn_of_nothing(&d);
		d.pair.match = diff_pair_match(input, false);
		int verdict = gates_are_wanted(r) ? gates_of_pair(r, &d.pair, &d.gate) : 0;

		status = verdict == EXIT_REFUSED ? verdict : write_all(&d);
		for (size_t i = 0; r->is_brief && i < d.gate.warning.count; i++)
			log_warn("%s", d.gate.warning.data[i]);
		if (verdict != EXIT_REFUSED && !r->is_brief)
			gates_show(r, &d.gate);
		status = status ? status : verdict;
		gate_deinit(&d.gate);
	}
	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		recording_view_deinit(&d.pair.view[side]);
		free(d.view[side]);
		free(d.more[side]);
	}
	frame_match_free(d.pair.match);
	return status;
}
