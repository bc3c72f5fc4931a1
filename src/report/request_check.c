/*
 * See show.h. Refused are options that have no effect on any report that is made, reports
 * that the kind of the file does not allow, and outputs that would overwrite an input or another
 * output.
 */
#include "report/show.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/files.h"
#include "base/text.h"
#include "output/flame.h"
#include "report/gates/fail_if.h"
#include "report/gates/gates.h"
#include "report/whatif/what_if.h"

#define OF_SITES (AS_TABLE | AS_GATE | AS_ROWS | AS_PICTURE | AS_HTML | AS_SITED)
#define FORMS_OF_SITES "pictures, flame graphs, pages, --diff and texts of recordings"
#define OF_GRAPHS "the text or JSON of a heap graph (ptmem --graph-out; of a recording: --graph)"
#define PATHS (AS_TABLE | AS_ROWS | AS_JSON | AS_FOLDED | AS_FLAME)

static const struct {
	const char *name;
	/* forms that it has an effect on: of recordings, and of all other files */
	unsigned kinds, of_recordings;
	const char *where; /* these, in words */
} effects[] = {
	{"threshold", AS_TEXT | AS_TABLE, AS_TEXT | AS_TABLE | AS_MASSIF,
	 "the text, --diff or --format=massif"},
	{"x", AS_TEXT, 0, "the text of a massif file"},
	{"y", AS_TEXT, 0, "the text of a massif file"},
	{"x-size", AS_PICTURE | AS_FLAME, AS_PICTURE | AS_FLAME, "--png, --svg or --flame"},
	{"y-size", AS_PICTURE, AS_PICTURE, "--png or --svg"},
	{"title", AS_PICTURE | AS_FLAME, AS_PICTURE | AS_FLAME, "--png, --svg or --flame"},
	{"time-based", AS_PICTURE, 0, "--png or --svg"},
	{"total", AS_PICTURE, 0, "--png or --svg"},
	{"rss", AS_PICTURE, 0, "--png or --svg"},
	{"snapshot", PATHS, 0,
	 "--folded, --flame or --diff of massif files; recordings have --at, --range"},
	{"my-code", OF_SITES, OF_SITES | AS_TEXT, FORMS_OF_SITES},
	{"not-my-code", OF_SITES, OF_SITES | AS_TEXT, FORMS_OF_SITES},
	{"older-than", 0, AS_TEXT | AS_MASSIF | AS_DATA | PATHS,
	 "all forms of recordings but --html"},
	{"annotate", 0, AS_TEXT, "the text of a recording"},
	{"embed-sources", 0, AS_HTML, "--html of a recording"},
	{"peek", 0, AS_TEXT, "the text of a recording"},
	{"temporary", 0, AS_TEXT | AS_HTML | AS_COUNTED,
	 "the text, JSON, CSV or page of a recording"},
	{"top", AS_TABLE | AS_GATE, AS_TEXT | AS_TABLE | AS_GATE,
	 "--diff, --baseline, a recording's text or the forms of gates"},
	{"graph-depth", AS_TEXT | AS_DATA, 0, OF_GRAPHS},
	{"who-holds", AS_TEXT | AS_DATA, 0, OF_GRAPHS},
};

void request_note(struct report_request *r, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(effects); i++) {
		if (strcmp(effects[i].name, name) == 0)
			r->given |= 1u << i;
	}
}

static bool is_noted(const struct report_request *r, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(effects); i++)
		if (strcmp(effects[i].name, name) == 0)
			return r->given >> i & 1;
	return false;
}

static bool is_stdio(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

unsigned request_printed(const struct report_request *r)
{
	const struct report_format *format = report_format_of(r);
	/* the text gives way to files, a table of differences to what takes its place */
	bool is_default = r->is_diff ? !r->html && !is_stdio(r->folded) && !is_stdio(r->flame) :
				       !r->png && !r->svg && !r->folded && !r->flame && !r->html;

	if (r->write_baseline || r->anonymize)
		return 0;
	if (!format && r->baseline)
		return AS_GATE;
	if (!format)
		return !is_default ? 0 : r->is_diff ? AS_TABLE : AS_TEXT;
	if (r->baseline)
		return AS_GATE;
	return r->is_diff ? format->of_diff : format->kinds;
}

static unsigned find_kinds(const struct report_request *r)
{
	/* of a difference: red and blue */
	unsigned flame = r->is_diff ? AS_FLAME : AS_FLAME | AS_SITED;

	return (r->png || r->svg ? AS_PICTURE : 0) | (r->folded ? AS_FOLDED : 0) |
	       (r->flame ? flame : 0) | (r->html ? AS_HTML : 0) | request_printed(r);
}

static char *check_effects(const struct report_request *r, bool is_recording, bool is_other)
{
	unsigned kinds = find_kinds(r);

	for (size_t i = 0; i < ARRAY_SIZE(effects); i++) {
		unsigned has_effect = (is_other ? effects[i].kinds : 0) |
				      (is_recording ? effects[i].of_recordings : 0);

		if (r->given >> i & 1 && !(has_effect & kinds))
			return xasprintf("--%s goes with %s", effects[i].name, effects[i].where);
	}
	return NULL;
}

static const char for_recordings[] = "--format, --at, --range, --older-than, --thread and "
				     "--match are for recordings (ptmem --record)";

static const char only_pictures[] = "neither a massif file nor a recording: it can only be drawn, "
				    "by --png or --svg";

static const char for_graphs[] = "a heap graph can be printed, as text, by --format=json or "
				 "--format=pprof, shown by --html, and compared by --diff with "
				 "another one";

char *request_check_graph(const struct report_request *r)
{
	static const char *const good[] = {"top", "graph-depth", "who-holds"};
	static const char *const forms_of_graphs[] = {"text", "json", "pprof"};
	const struct report_format *format = report_format_of(r);

	if (r->png || r->svg || r->folded || r->flame || r->fail_if.count || r->limit.count ||
	    r->limits_file.count || recording_question_is_given(&r->question) ||
	    (format && !text_is_among(format->name, forms_of_graphs, ARRAY_SIZE(forms_of_graphs))))
		return xstrdup(for_graphs);
	for (size_t i = 0; i < ARRAY_SIZE(effects); i++)
		if (r->given >> i & 1 && !text_is_among(effects[i].name, good, ARRAY_SIZE(good)))
			return xasprintf("--%s goes with %s", effects[i].name, effects[i].where);
	return NULL;
}

/* What can be made of each kind of file. */
static const struct {
	unsigned kinds;
	const char *others; /* why there is nothing else */
} forms[] = {
	[INPUT_MASSIF] = {AS_TEXT | AS_GATE | AS_PICTURE | PATHS | AS_HTML | AS_SITED,
			  for_recordings},
	[INPUT_MEMUSAGE] = {AS_PICTURE, only_pictures},
	[INPUT_SAMPLES] = {AS_PICTURE, only_pictures},
	[INPUT_RECORDING] = {AS_TEXT | AS_MASSIF | AS_DATA | AS_GATE | AS_PICTURE | PATHS |
				     AS_HTML | AS_SITED | AS_COUNTED,
			     "a recording has no such form"},
	[INPUT_INSPECT] = {AS_PICTURE | AS_HTML,
			   "neither a massif file nor a recording: it can only be drawn, by "
			   "--png, --svg or --html"},
	[INPUT_GRAPH] = {AS_TEXT | AS_HTML, for_graphs},
};

char *request_check_input(const struct report_request *r, enum input_kind kind)
{
	const struct report_format *format = report_format_of(r);
	bool is_recording = kind == INPUT_RECORDING;

	if (find_kinds(r) & ~forms[kind].kinds)
		return xstrdup(forms[kind].others);
	if (!is_recording && (recording_question_is_given(&r->question) ||
			      (!r->is_diff && !r->baseline && format &&
			       format->kinds != AS_TEXT && format->kinds != AS_GATE)))
		return xstrdup(for_recordings);
	if (is_noted(r, "graph-depth") || is_noted(r, "who-holds"))
		return xstrdup("--graph-depth and --who-holds go with " OF_GRAPHS);
	if (r->my_code.rule.count && kind != INPUT_MASSIF && !is_recording)
		return xstrdup("--my-code and --not-my-code are for massif files and recordings");
	if (is_recording && (r->png || r->svg) &&
	    (r->question.at || r->question.range || r->question.thread))
		return xstrdup("--png and --svg draw the whole run: --at, --range and --thread go "
			       "with --flame, --html and what is printed");
	if (r->rss && kind != INPUT_MASSIF)
		return xstrdup("--rss lays resident memory over massif files only");
	if ((r->is_time_based || r->wants_total) && kind != INPUT_MEMUSAGE)
		return xstrdup("--time-based and --total are for data files of memusage");
	return check_effects(r, is_recording, !is_recording);
}

/* Of an input; "-" is what standard input is. */
static void identify(struct file_id *id, const char *path)
{
	if (is_stdio(path))
		file_id_init_fd(id, STDIN_FILENO);
	else
		file_id_init(id, path);
}

/* The inputs come first. */
enum { INPUTS = 4, FILES = 11 };

struct checked_file {
	const char *what, *path; /* the option; NULL if it is not given */
};

static char *describe_clash(const struct checked_file *first, const struct checked_file *output,
			    bool is_input)
{
	if (is_input)
		return xasprintf("%s=%s would overwrite what is read", output->what, output->path);
	return xasprintf("%s and %s would write the same file, %s", first->what, output->what,
			 output->path);
}

/* Of several files but the first one: whether @path would overwrite it. */
static char *check_other_inputs(const struct report_request *r, const char *what, const char *path)
{
	struct file_id out = {0};
	char *why = NULL;

	if (!path || is_stdio(path))
		return NULL;
	file_id_init(&out, path);
	for (size_t i = 1; i < r->path_count && !why; i++) {
		struct file_id run = {0};

		identify(&run, r->path[i]);
		if (file_id_is_same(&run, &out))
			why = xasprintf("%s=%s would overwrite what is read", what, path);
		file_id_deinit(&run);
	}
	file_id_deinit(&out);
	return why;
}

/* The runs of a baseline that is written, and recordings that are merged. */
static char *check_runs(const struct report_request *r)
{
	char *why = check_other_inputs(r, "--write-baseline", r->write_baseline);

	if (!why && r->is_merge)
		why = check_other_inputs(r, "--html", r->html);
	if (!why && r->is_merge)
		why = check_other_inputs(r, "--folded", r->folded);
	if (!why && r->is_merge)
		why = check_other_inputs(r, "--flame", r->flame);
	return why;
}

static char *check_files(const struct report_request *r)
{
	const struct checked_file files[FILES] = {
		{"FILE", r->path_count > 0 ? r->path[0] : NULL},
		{"NEW", r->is_diff ? r->path[1] : NULL},
		{"--rss", r->rss},
		{"--baseline", r->baseline},
		{"--png", r->png},
		{"--svg", r->svg},
		{"--folded", r->folded},
		{"--flame", r->flame},
		{"--html", r->html},
		{"--write-baseline", r->write_baseline},
		{"--anonymize", r->anonymize},
	};
	struct file_id id[FILES] = {0};
	char *why = NULL;

	for (size_t i = 0; i < FILES; i++) {
		if (files[i].path && i < INPUTS)
			identify(&id[i], files[i].path);
		else if (files[i].path)
			file_id_init(&id[i], files[i].path);
		for (size_t k = 0; k < i && i >= INPUTS && !why; k++) {
			bool are_stdout = k >= INPUTS && is_stdio(files[k].path) &&
					  is_stdio(files[i].path);

			if (are_stdout || file_id_is_same(&id[i], &id[k]))
				why = describe_clash(&files[k], &files[i], k < INPUTS);
		}
	}
	for (size_t i = 0; i < FILES; i++)
		file_id_deinit(&id[i]);
	return why ? why : check_runs(r);
}

static char *check_question(const struct report_request *r)
{
	const struct recording_question *q = &r->question;

	if ((q->at != NULL) + (q->range != NULL) + (q->older != NULL) > 1)
		return xstrdup("--at, --range and --older-than cannot be combined");
	if (r->sources.count && !r->annotate && !r->embeds_sources)
		return xstrdup("--source goes with --annotate or --embed-sources");
	if (q->thread && (q->at || q->range || q->older))
		return xstrdup("--thread goes with neither --at, --range nor --older-than: a "
			       "recording has what a thread allocated in all");
	return NULL;
}

/* Two reports on one stream could not be distinguished. */
static char *check_printed(const struct report_request *r)
{
	const char *file = is_stdio(r->png)    ? "--png" :
			   is_stdio(r->svg)    ? "--svg" :
			   is_stdio(r->folded) ? "--folded" :
			   is_stdio(r->flame)  ? "--flame" :
			   is_stdio(r->html)   ? "--html" :
						 NULL;

	if (!file || !request_printed(r))
		return NULL;
	return xasprintf("%s=- and --format would both write to standard output", file);
}

static char *check_limits(const struct report_request *r)
{
	const struct report_format *format = report_format_of(r);
	bool has_limits = r->limit.count || r->limits_file.count;
	bool is_of_checks = format && format->kinds == AS_GATE && format->gate != GATE_MARKDOWN;
	struct limit l;

	if (has_limits && (r->is_diff || r->baseline || r->write_baseline))
		return xstrdup("--limit and --limits-file are about one profile: comparisons have "
			       "--fail-if");
	if ((has_limits || r->fail_if.count) && r->question.match)
		return xstrdup("--limit, --limits-file and --fail-if are about whole profiles: "
			       "--match cannot be used with them");
	for (size_t i = 0; i < r->limit.count; i++) {
		const char *why = limit_parse(r->limit.data[i], &l);

		if (why)
			return xasprintf("--limit=%s: %s", r->limit.data[i], why);
	}
	if (is_of_checks && !has_limits && !r->fail_if.count)
		return xasprintf("--format=%s says what was checked: it needs --limit or "
				 "--limits-file, or --fail-if with --diff or --baseline",
				 format->name);
	return NULL;
}

/* Whether anything is asked for but a form of one whole profile that is printed. */
static bool wants_other_report(const struct report_request *r)
{
	return r->is_diff || r->png || r->svg || r->folded || r->flame || r->html ||
	       recording_question_is_given(&r->question);
}

typedef bool has_form_fn(const struct report_format *format);

/* "text, json or csv": what @has says of --format. The caller frees it. */
static char *forms_with(has_form_fn *has)
{
	char *text = xstrdup("");
	unsigned left = 0;

	for (const struct report_format *f = report_formats; f->name; f++)
		left += has(f);
	for (const struct report_format *f = report_formats; f->name; f++) {
		if (!has(f))
			continue;
		_cleanup_free_ char *before = text;

		left--;
		text = xasprintf("%s%s%s", before, f->name,
				 left > 1 ? ", " : left ? " or " : "");
	}
	return text;
}

static bool is_of_baseline(const struct report_format *format)
{
	return format->gate || format == report_formats; /* the text */
}

/* A baseline takes any number of profiles, and makes nothing else of them. */
static char *check_baseline(const struct report_request *r)
{
	const struct report_format *format = report_format_of(r);

	if (!r->baseline && !r->write_baseline)
		return NULL;
	if (r->baseline && r->write_baseline)
		return xstrdup("--baseline and --write-baseline cannot be combined");
	if (wants_other_report(r))
		return xstrdup("--baseline and --write-baseline are about whole profiles, and make "
			       "no other report");
	if (r->path_count > REPORT_PATHS)
		return xstrdup("a baseline is of 1,000 runs at most");
	if (!format || (!r->write_baseline && is_of_baseline(format)))
		return NULL;
	_cleanup_free_ char *made = forms_with(is_of_baseline);

	return xasprintf("--baseline makes %s, and --write-baseline its own form", made);
}

/* A copy of a file, and nothing else of it. */
static char *check_anonymize(const struct report_request *r)
{
	if (r->key && !r->anonymize)
		return xstrdup("--key goes with --anonymize");
	if (!r->anonymize)
		return NULL;
	if (wants_other_report(r) || r->baseline || r->write_baseline || report_format_of(r) ||
	    r->annotate || r->peek)
		return xstrdup("--anonymize copies a whole recording, and makes no other report");
	return NULL;
}

/* Several recordings are one report of a few forms. */
static char *check_merge(const struct report_request *r)
{
	const struct recording_question *q = &r->question;
	const struct report_format *format = report_format_of(r);

	if (!r->is_merge)
		return NULL;
	if (r->is_diff || r->baseline || r->write_baseline)
		return xstrdup("--merge cannot be combined with --diff, --baseline or "
			       "--write-baseline");
	if (r->annotate || r->peek || r->anonymize)
		return xstrdup("--annotate, --peek and --anonymize are of one recording, not of "
			       "--merge");
	if (r->path_count > REPORT_PATHS)
		return xstrdup("--merge takes 1,000 recordings at most");
	if (r->png || r->svg || r->rss)
		return xstrdup("--merge draws --flame and --html, no --png or --svg");
	if (q->range || q->older || q->thread || q->match)
		return xstrdup("--merge has --at; --range, --older-than, --thread and --match are "
			       "of one recording");
	if (r->limit.count || r->limits_file.count)
		return xstrdup("--limit and --limits-file are about one profile: ptmem checks them "
			       "for each process");
	if (!format || merge_has_form(format))
		return NULL;
	_cleanup_free_ char *made = forms_with(merge_has_form);

	return xasprintf("--merge makes %s, and --flame or --html; --format=%s is of one recording",
			 made, format->name);
}

static char *check_fail_if(const struct report_request *r)
{
	struct fail_if f;

	if (r->fail_if.count && !r->is_diff && !r->baseline && !r->write_baseline)
		return xstrdup("--fail-if goes with --diff or --baseline");
	for (size_t i = 0; i < r->fail_if.count; i++) {
		const char *why = fail_if_parse(r->fail_if.data[i], &f);

		if (why)
			return xasprintf("--fail-if=%s: %s", r->fail_if.data[i], why);
		if (r->write_baseline && !f.of.function)
			return xasprintf("--fail-if=%s goes with --diff or --baseline; with "
					 "--write-baseline those that name a function, as "
					 "allocations@parse>+0", r->fail_if.data[i]);
	}
	return NULL;
}

static bool is_of_diff(const struct report_format *format)
{
	return format->of_diff && format->of_diff != AS_GATE;
}

static char *check_diff(const struct report_request *r)
{
	const struct report_format *format = report_format_of(r);

	if (!r->is_diff)
		return NULL;
	if (r->png || r->svg)
		return xstrdup("--diff makes a table and with --flame a flame graph, "
			       "no --png or --svg");
	if (!format || format->of_diff)
		return NULL;
	_cleanup_free_ char *made = forms_with(is_of_diff);

	return xasprintf("--diff makes %s; --format=%s is of one profile%s%s", made, format->name,
			 format->no_diff ? ": " : "", format->no_diff ?: "");
}

/* Other options than these have no effect on --what-if. */
static char *check_given(const struct report_request *r)
{
	static const char *const good[] = {"top", "my-code", "not-my-code"};

	for (size_t i = 0; i < ARRAY_SIZE(effects); i++)
		if (r->given >> i & 1 && !text_is_among(effects[i].name, good, ARRAY_SIZE(good)))
			return xasprintf("--%s goes with %s", effects[i].name, effects[i].where);
	return NULL;
}

char *request_check(const struct report_request *r)
{
	if (!r->path_count)
		return xstrdup("no file given");
	if (r->what_if)
		return what_if_check(r) ?: check_given(r);
	if (r->is_diff && r->path_count < 2)
		return xstrdup("--diff takes two files, OLD NEW");
	char *bad_brief = brief_show_check(r);

	if (bad_brief)
		return bad_brief;
	char *bad_baseline = check_baseline(r);

	if (bad_baseline)
		return bad_baseline;
	char *bad_merge = check_merge(r);

	if (bad_merge)
		return bad_merge;
	if (!r->baseline && !r->write_baseline && !r->is_merge &&
	    r->path_count > (r->is_diff ? 2 : 1))
		return xasprintf("one file too many: %s", r->path[r->is_diff ? 2 : 1]);
	char *bad_diff = check_diff(r);

	if (bad_diff)
		return bad_diff;
	if (r->wants_graph && (r->is_merge || r->baseline || r->write_baseline || r->anonymize))
		return xstrdup("--graph shows the heap graph of one recording, or with --diff "
			       "compares those of two");
	if (r->flame && r->x_size && r->x_size < FLAME_WIDTH_MIN)
		return xstrdup("a flame graph is 300 pixels wide at least");
	if (r->flame && text_ends_in(r->flame, ".png"))
		return xstrdup("--flame writes SVG: give it a name that ends in .svg");
	char *why = check_anonymize(r) ?: check_fail_if(r);

	if (!why)
		why = check_limits(r);
	if (!why)
		why = check_effects(r, true, true);
	if (!why)
		why = check_question(r);
	if (!why)
		why = check_printed(r);
	return why ? why : check_files(r);
}
