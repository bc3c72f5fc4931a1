/*
 * ptmem-report: shows a massif.out file as text like ms_print, or draws it, and ptmem's other
 * files, as pictures. One table of options is used for parsing and --help. A new form of report
 * needs a line in it and a branch in show.c. The first argument that is not an option is the file;
 * options may follow it, as scripts for ms_print do. Exit status: 0; 255 for a bad option, no file,
 * or a file that is not a massif file; 2 if the file cannot be read (like ms_print); 1 if the
 * report cannot be written.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/files.h"
#include "base/log.h"
#include "recording/recording_view.h"
#include "report/show.h"

struct report_option {
	const char *name;              /* with its hyphens */
	const char *short_name;        /* NULL = none */
	const char *value;             /* how --help calls it; NULL = takes none */
	const char *takes;             /* what a value must be, for errors; NULL = takes none */
	const char *help;
	bool (*set)(struct report_request *request, const char *value); /* false = bad value */
};

static bool parse_number(const char *text, unsigned min, unsigned max, unsigned *out)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long value = strtoul(text, NULL, 10); /* ULONG_MAX if there are too many digits */

	if (!digits || text[digits] || value < min || value > max)
		return false;
	*out = (unsigned)value;
	return true;
}

static bool parse_size(const char *text, unsigned *out)
{
	return parse_number(text, MSPRINT_SIZE_MIN, MSPRINT_SIZE_MAX, out);
}

/* For options that keep their value unchanged. */
static bool keep_text(const char *value, const char **out)
{
	*out = value;
	return *value;
}

static bool set_width(struct report_request *r, const char *value)
{
	return parse_size(value, &r->text.width);
}

static bool set_height(struct report_request *r, const char *value)
{
	return parse_size(value, &r->text.height);
}

/* Digits and points, and a percent sign if you like; of two points the second ends the number. */
static bool set_threshold(struct report_request *r, const char *value)
{
	size_t n = strspn(value, "0123456789.");
	double threshold = strtod(value, NULL);

	if (!n || strcmp(value + n + (value[n] == '%'), "") || threshold > 100)
		return false;
	r->text.threshold = r->least_share = threshold;
	return true;
}

static bool set_png(struct report_request *r, const char *value)
{
	return keep_text(value, &r->png);
}

static bool set_svg(struct report_request *r, const char *value)
{
	return keep_text(value, &r->svg);
}

static bool set_folded(struct report_request *r, const char *value)
{
	return keep_text(value, &r->folded);
}

static bool set_flame(struct report_request *r, const char *value)
{
	return keep_text(value, &r->flame);
}

static bool set_html(struct report_request *r, const char *value)
{
	return keep_text(value, &r->html);
}

static bool set_rss(struct report_request *r, const char *value)
{
	return keep_text(value, &r->rss);
}

static bool set_title(struct report_request *r, const char *value)
{
	r->title = value;
	return true;
}

static bool set_x_size(struct report_request *r, const char *value)
{
	return parse_number(value, 1, PICTURE_SIZE_MAX, &r->x_size);
}

static bool set_y_size(struct report_request *r, const char *value)
{
	return parse_number(value, 1, PICTURE_SIZE_MAX, &r->y_size);
}

static bool set_top(struct report_request *r, const char *value)
{
	return parse_number(value, 1, 1000000, &r->top);
}

static bool set_time_based(struct report_request *r, const char *value)
{
	return r->is_time_based = true;
}

static bool set_total(struct report_request *r, const char *value)
{
	return r->wants_total = true;
}

static bool set_diff(struct report_request *r, const char *value)
{
	return r->is_diff = true;
}

static bool set_snapshot(struct report_request *r, const char *value)
{
	unsigned number;

	if (!strcmp(value, "peak"))
		r->snapshot = MASSIF_SNAPSHOT_PEAK;
	else if (!strcmp(value, "last"))
		r->snapshot = MASSIF_SNAPSHOT_LAST;
	else if (parse_number(value, 0, UINT32_MAX, &number))
		r->snapshot = number;
	else
		return false;
	return true;
}

static bool set_format(struct report_request *r, const char *value)
{
	static const struct {
		const char *name;
		enum report_format format;
	} formats[] = {
		{"text", FORMAT_TEXT}, {"json", FORMAT_JSON}, {"csv", FORMAT_CSV},
		{"folded", FORMAT_FOLDED}, {"pprof", FORMAT_PPROF},
		{"speedscope", FORMAT_SPEEDSCOPE}, {"massif", FORMAT_MASSIF},
	};

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (strcmp(value, formats[i].name) == 0)
			r->format = formats[i].format;
	return r->format != FORMAT_DEFAULT;
}

static bool set_at(struct report_request *r, const char *value)
{
	return keep_text(value, &r->question.at);
}

static bool set_range(struct report_request *r, const char *value)
{
	return keep_text(value, &r->question.range);
}

static bool set_older_than(struct report_request *r, const char *value)
{
	return keep_text(value, &r->question.older);
}

static bool set_thread(struct report_request *r, const char *value)
{
	return keep_text(value, &r->question.thread);
}

static bool set_temporary(struct report_request *r, const char *value)
{
	return recording_temporary_parse(value, &r->temporary_us);
}

static bool set_match(struct report_request *r, const char *value)
{
	return keep_text(value, &r->question.match);
}

static bool add_my_code(struct report_request *r, char sign, const char *value)
{
	_cleanup_free_ char *rule = xasprintf("%c%s", sign, value);

	my_code_add(&r->my_code, rule);
	return *value;
}

static bool set_my_code(struct report_request *r, const char *value)
{
	return add_my_code(r, '+', value);
}

static bool set_not_my_code(struct report_request *r, const char *value)
{
	return add_my_code(r, '-', value);
}

static bool set_help(struct report_request *r, const char *value)
{
	return r->wants_help = true;
}

static bool set_version(struct report_request *r, const char *value)
{
	return r->wants_version = true;
}

#define SIZE_RANGE "a whole number from 4 to 1000"

static const struct report_option options[] = {
	{"--threshold", NULL, "NUM", "a percentage from 0 to 100",
	 "sum up what holds less than NUM percent [1.0; text of recordings: 0]", set_threshold},
	{"--x", NULL, "N", SIZE_RANGE, "graph width in columns, 4 to 1000 [72]", set_width},
	{"--y", NULL, "N", SIZE_RANGE, "graph height in rows, 4 to 1000 [20]", set_height},
	{"--png", NULL, "OUT", "the name of a file", "draw a picture: memory over time", set_png},
	{"--svg", NULL, "OUT", "the name of a file", "the same as SVG", set_svg},
	{"--x-size", NULL, "N", "a whole number from 1 to 20000",
	 "width of pictures in pixels [800; flame graphs: the window's, 300 at least]", set_x_size},
	{"--y-size", NULL, "N", "a whole number from 1 to 20000",
	 "height of pictures in pixels [600]", set_y_size},
	{"--title", NULL, "TEXT", "a text", "title of the picture [the program's command line]",
	 set_title},
	{"--time-based", "-t", NULL, NULL, "memusage data: draw over time, not over calls",
	 set_time_based},
	{"--total", "-T", NULL, NULL, "memusage data: draw heap + stack too", set_total},
	{"--rss", NULL, "FILE", "the name of a file",
	 "lay resident memory from samples over a massif picture", set_rss},
	{"--folded", NULL, "OUT", "the name of a file, or \"-\"",
	 "write call paths as folded stacks", set_folded},
	{"--flame", NULL, "OUT", "the name of a file", "draw a flame graph (SVG, for a browser)",
	 set_flame},
	{"--html", NULL, "OUT", "the name of a file",
	 "write an interactive report (HTML, for a browser)", set_html},
	{"--snapshot", NULL, "WHICH", "peak, last or a snapshot's number",
	 "which snapshot's paths: peak, last, N [peak, else last]", set_snapshot},
	{"--format", NULL, "FORM", "text, json, csv, folded, pprof, speedscope or massif",
	 "text, json, csv, folded, pprof, speedscope, massif [text]", set_format},
	{"--at", NULL, "TIME", "a time", "of a recording: what was live then; 2.5, 300ms, 40%, end",
	 set_at},
	{"--range", NULL, "T1..T2", "two times", "what was allocated then, and still live at T2",
	 set_range},
	{"--older-than", NULL, "TIME", "a time",
	 "what was live at the end, and at least so old; 2.5, 300ms, 10%", set_older_than},
	{"--thread", NULL, "THREAD", "an id or a name", "what this thread allocated", set_thread},
	{"--match", NULL, "REGEX", "an expression",
	 "only call paths with such a function, file or object", set_match},
	{"--temporary", NULL, "TIME", "a time, as 100us, 2ms or 1s",
	 "what lived less is temporary [what its thread releases next]", set_temporary},
	{"--my-code", NULL, "PATTERN", "a pattern",
	 "functions of these source files or objects are yours: call sites", set_my_code},
	{"--not-my-code", NULL, "PATTERN", "a pattern",
	 "they are not: their callers are", set_not_my_code},
	{"--diff", NULL, NULL, NULL, "compare two files, OLD NEW: growth by call site", set_diff},
	{"--top", NULL, "N", "a whole number from 1", "with --diff or a recording, N rows [10]",
	 set_top},
	{"--help", "-h", NULL, NULL, "show this message", set_help},
	{"--version", NULL, NULL, NULL, "show the version", set_version},
};

static void print_help(void)
{
	puts("Usage: ptmem-report [OPTION]... FILE\n"
	     "       ptmem-report --diff [OPTION]... OLD NEW\n"
	     "Prints a profile by ptmem or Valgrind's Massif as ms_print does, or draws it; "
	     "\"-\" is\nstandard input. "
	     "--png and --svg draw memusage's data files and ptmem's samples as well,\n"
	     "and the heap from --inspect's JSON.\n");
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		const struct report_option *o = &options[i];
		_cleanup_free_ char *left =
			xasprintf("%s%s%s%s%s", o->short_name ? o->short_name : "",
				  o->short_name ? ", " : "", o->name, o->value ? "=" : "",
				  o->value ? o->value : "");

		printf("  %-20s %s\n", left, o->help);
	}
}

/* The option that @argument names; *@value_out: after its '=', NULL if there is none. */
static const struct report_option *find_option(const char *argument, const char **value_out)
{
	size_t size = strcspn(argument, "=");

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		const struct report_option *o = &options[i];

		if ((strlen(o->name) == size && !strncmp(o->name, argument, size)) ||
		    (o->short_name && !strcmp(o->short_name, argument))) {
			*value_out = argument[size] ? argument + size + 1 : NULL;
			return o;
		}
	}
	return NULL;
}

static bool parse_option(struct report_request *r, const char *argument)
{
	const char *value;
	const struct report_option *o = find_option(argument, &value);

	if (!o)
		log_error("unknown option '%s' (see --help)", argument);
	else if (!o->value && value)
		log_error("%s takes no value", o->name);
	else if (o->value && !value)
		log_error("%s takes %s: %s=%s", o->name, o->takes, o->name, o->value);
	else if (!o->set(r, value))
		log_error("%s takes %s, not '%s'", o->name, o->takes, value);
	else {
		request_note(r, o->name);
		return true;
	}
	return false;
}

static bool parse_arguments(struct report_request *r, char **argv)
{
	for (; *argv && !r->wants_help && !r->wants_version; argv++) {
		if (**argv == '-' && strcmp(*argv, "-") != 0) {
			if (!parse_option(r, *argv))
				return false;
		} else if (r->path_count < ARRAY_SIZE(r->path)) {
			r->path[r->path_count++] = *argv;
		}
	}
	if (r->wants_help || r->wants_version)
		return true;
	_cleanup_free_ char *why = request_check(r);

	if (why)
		log_error("%s (see --help)", why);
	return !why;
}

static char *join_arguments(char **argv)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	CHECK(f);
	for (; *argv; argv++)
		fprintf(f, " %s", *argv);
	CHECK(!fclose(f));
	return_ptr(text);
}

static int run(const struct report_request *r)
{
	if (r->wants_help)
		print_help();
	else if (r->wants_version)
		puts("ptmem-report " PTMEM_VERSION);
	else
		return show(r);
	return 0;
}

int main(int argc, char **argv)
{
	_cleanup_free_ char *arguments = join_arguments(argv + (argc > 0));
	struct report_request request = {
		.text = {.threshold = 1.0, .width = 72, .height = 20, .arguments = arguments},
		.snapshot = MASSIF_SNAPSHOT_DEFAULT,
		.top = REPORT_TOP_DEFAULT,
	};

	standard_files_hold();
	signal(SIGXFSZ, SIG_IGN); /* beyond RLIMIT_FSIZE a write fails, and that is reported */
	log_set_name("ptmem-report");
	if (!parse_arguments(&request, argv + (argc > 0)))
		return EXIT_REFUSED;
	int status = run(&request);

	my_code_deinit(&request.my_code);
	if (fflush(stdout) || ferror(stdout)) {
		log_error("cannot write the report: %s", strerror(errno));
		return EXIT_NOT_WRITTEN;
	}
	return status;
}
