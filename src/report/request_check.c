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
#include "output/flame.h"

/* What is made of the file, in a form that has options of its own. */
enum report_kind {
	TEXT = 1,
	TABLE = 2,       /* of a difference */
	ROWS = 4,        /* the same as JSON or CSV */
	PICTURE = 8,
	FOLDED = 16,
	FLAME = 32,
	HTML = 64,
	MASSIF = 128,    /* a recording as massif file */
	DATA = 256,      /* a recording in another form */
	SITED = 512,     /* with others: it shows call sites, or whose code a frame is */
	COUNTED = 1024,  /* with others: it shows how many allocations were temporary */
};

#define OF_SITES (TABLE | ROWS | PICTURE | HTML | SITED)
#define FORMS_OF_SITES "pictures, flame graphs, pages, --diff and texts of recordings"
#define PATHS (TABLE | ROWS | FOLDED | FLAME)

static const struct {
	const char *name;
	/* forms that it has an effect on: of recordings, and of all other files */
	unsigned kinds, of_recordings;
	const char *where; /* these, in words */
} effects[] = {
	{"--threshold", TEXT | TABLE, TEXT | TABLE | MASSIF, "the text, --diff or --format=massif"},
	{"--x", TEXT, 0, "the text of a massif file"},
	{"--y", TEXT, 0, "the text of a massif file"},
	{"--x-size", PICTURE | FLAME, FLAME, "--png, --svg or --flame"},
	{"--y-size", PICTURE, 0, "--png or --svg"},
	{"--title", PICTURE | FLAME, FLAME, "--png, --svg or --flame"},
	{"--time-based", PICTURE, 0, "--png or --svg"},
	{"--total", PICTURE, 0, "--png or --svg"},
	{"--rss", PICTURE, 0, "--png or --svg"},
	{"--snapshot", PATHS, 0,
	 "--folded, --flame or --diff of massif files; recordings have --at, --range"},
	{"--my-code", OF_SITES, OF_SITES | TEXT, FORMS_OF_SITES},
	{"--not-my-code", OF_SITES, OF_SITES | TEXT, FORMS_OF_SITES},
	{"--older-than", 0, TEXT | MASSIF | DATA | PATHS, "all forms of recordings but --html"},
	{"--temporary", 0, TEXT | HTML | COUNTED, "the text, JSON, CSV or page of a recording"},
	{"--top", TABLE, TEXT | TABLE, "--diff or a recording's text"},
};

void request_note(struct report_request *r, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(effects); i++) {
		if (strcmp(effects[i].name, name) == 0)
			r->given |= 1u << i;
	}
}

static bool is_stdio(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

/* What is printed; 0 = nothing. */
static unsigned find_printed(const struct report_request *r)
{
	/* the text gives way to files, a table of differences to what takes its place */
	bool is_default = r->is_diff ? !r->html && !is_stdio(r->folded) && !is_stdio(r->flame) :
				       !r->png && !r->svg && !r->folded && !r->flame && !r->html;

	switch (r->format) {
	case FORMAT_DEFAULT:
		return !is_default ? 0 : r->is_diff ? TABLE : TEXT;
	case FORMAT_TEXT:
		return r->is_diff ? TABLE : TEXT;
	case FORMAT_FOLDED:
		return FOLDED;
	case FORMAT_MASSIF:
		return MASSIF;
	case FORMAT_JSON:
	case FORMAT_CSV:
		return r->is_diff ? ROWS : DATA | SITED | COUNTED;
	default:
		return r->is_diff ? ROWS : DATA;
	}
}

bool request_prints(const struct report_request *r)
{
	return find_printed(r) != 0;
}

static unsigned find_kinds(const struct report_request *r)
{
	unsigned flame = r->is_diff ? FLAME : FLAME | SITED; /* of a difference: red and blue */

	return (r->png || r->svg ? PICTURE : 0) | (r->folded ? FOLDED : 0) |
	       (r->flame ? flame : 0) | (r->html ? HTML : 0) | find_printed(r);
}

static char *check_effects(const struct report_request *r, bool is_recording, bool is_other)
{
	unsigned kinds = find_kinds(r);

	for (size_t i = 0; i < ARRAY_SIZE(effects); i++) {
		unsigned has_effect = (is_other ? effects[i].kinds : 0) |
				      (is_recording ? effects[i].of_recordings : 0);

		if (r->given >> i & 1 && !(has_effect & kinds))
			return xasprintf("%s goes with %s", effects[i].name, effects[i].where);
	}
	return NULL;
}

static const char for_recordings[] = "--format, --at, --range, --older-than, --thread and "
				     "--match are for recordings (ptmem --record)";

static const char only_pictures[] = "neither a massif file nor a recording: it can only be drawn, "
				    "by --png or --svg";

/* What can be made of each kind of file. */
static const struct {
	unsigned kinds;
	const char *others; /* why there is nothing else */
} forms[] = {
	[INPUT_MASSIF] = {TEXT | PICTURE | PATHS | HTML | SITED, for_recordings},
	[INPUT_MEMUSAGE] = {PICTURE, only_pictures},
	[INPUT_SAMPLES] = {PICTURE, only_pictures},
	[INPUT_RECORDING] = {TEXT | MASSIF | DATA | PATHS | HTML | SITED | COUNTED,
			     "--png and --svg draw no recordings; --flame does"},
	[INPUT_INSPECT] = {PICTURE | HTML, "neither a massif file nor a recording: it can only be "
					   "drawn, by --png, --svg or --html"},
};

char *request_check_input(const struct report_request *r, enum input_kind kind)
{
	bool is_recording = kind == INPUT_RECORDING;

	if (find_kinds(r) & ~forms[kind].kinds)
		return xstrdup(forms[kind].others);
	if (!is_recording && (recording_question_is_given(&r->question) ||
			      (!r->is_diff && r->format > FORMAT_TEXT)))
		return xstrdup(for_recordings);
	if (r->my_code.rule.count && kind != INPUT_MASSIF && !is_recording)
		return xstrdup("--my-code and --not-my-code are for massif files and recordings");
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
enum { INPUTS = 3, FILES = 8 };

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

static char *check_files(const struct report_request *r)
{
	const struct checked_file files[FILES] = {
		{"FILE", r->path_count > 0 ? r->path[0] : NULL},
		{"NEW", r->is_diff ? r->path[1] : NULL},
		{"--rss", r->rss},
		{"--png", r->png},
		{"--svg", r->svg},
		{"--folded", r->folded},
		{"--flame", r->flame},
		{"--html", r->html},
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
	return why;
}

static bool ends_with(const char *s, const char *end)
{
	size_t size = strlen(s), n = strlen(end);

	return size >= n && !strcmp(s + size - n, end);
}

static char *check_question(const struct recording_question *q)
{
	if ((q->at != NULL) + (q->range != NULL) + (q->older != NULL) > 1)
		return xstrdup("--at, --range and --older-than cannot be combined");
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

	if (!file || !find_printed(r))
		return NULL;
	return xasprintf("%s=- and --format would both write to standard output", file);
}

char *request_check(const struct report_request *r)
{
	if (!r->path_count)
		return xstrdup("no file given");
	if (r->is_diff && r->path_count < 2)
		return xstrdup("--diff takes two files, OLD NEW");
	if (r->path_count > (r->is_diff ? 2 : 1))
		return xasprintf("one file too many: %s", r->path[r->is_diff ? 2 : 1]);
	if (r->is_diff && (r->png || r->svg))
		return xstrdup("--diff makes a table and with --flame a flame graph, "
			       "no --png or --svg");
	if (r->is_diff && r->format == FORMAT_PPROF)
		return xstrdup("--diff makes no pprof: make one of each file, and let pprof "
			       "compare them by -base");
	if (r->is_diff && (r->format == FORMAT_SPEEDSCOPE || r->format == FORMAT_MASSIF))
		return xstrdup("--diff makes text, json, csv or folded, not speedscope or massif");
	if (r->flame && r->x_size && r->x_size < FLAME_WIDTH_MIN)
		return xstrdup("a flame graph is 300 pixels wide at least");
	if (r->flame && ends_with(r->flame, ".png"))
		return xstrdup("--flame writes SVG: give it a name that ends in .svg");
	char *why = check_effects(r, true, true);

	if (!why)
		why = check_question(&r->question);
	if (!why)
		why = check_printed(r);
	return why ? why : check_files(r);
}
