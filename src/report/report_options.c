/*
 * ptmem-report's command line: the table of its options, and the words that are read by it. The
 * first argument that is not an option is the file; options may follow it, as scripts for ms_print
 * do.
 */
#include "report/show.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/option_row.h"
#include "recording/recording_view.h"

/* Digits and points, and a percent sign if you like; of two points the second ends the number. */
static bool parse_threshold(const char *text, void *field)
{
	struct report_request *r = field;
	size_t n = strspn(text, "0123456789.");
	double threshold = strtod(text, NULL);

	if (!n || strcmp(text + n + (text[n] == '%'), "") || threshold > 100)
		return false;
	r->text.threshold = r->least_share = threshold;
	return true;
}

static const char *const named_snapshots[] = {"peak", "last", NULL};

static bool parse_snapshot(const char *text, void *field)
{
	uint64_t *snapshot = field;

	*snapshot = strtoull(text, NULL, 10); /* ULLONG_MAX if there are too many digits */
	if (!strcmp(text, "peak"))
		*snapshot = MASSIF_SNAPSHOT_PEAK;
	else if (!strcmp(text, "last"))
		*snapshot = MASSIF_SNAPSHOT_LAST;
	else
		return *text && !text[strspn(text, "0123456789")] && *snapshot <= UINT32_MAX;
	return true;
}

#define TIME_MAX_US 0x1p62 /* lifetimes have 63 bits */

/* "100us", "1.5ms", "2s" or "2", in microseconds; not 0. */
static bool parse_temporary(const char *text, void *field)
{
	static const struct {
		const char *name;
		double us;
	} units[] = {{"", 1e6}, {"s", 1e6}, {"ms", 1e3}, {"us", 1}};
	size_t digits = strspn(text, "0123456789.");
	uint64_t *us_out = field;
	char *end;
	double value = strtod(text, &end);

	for (size_t i = 0; digits && end == text + digits && i < ARRAY_SIZE(units); i++) {
		double us = value * units[i].us;

		if (strcmp(end, units[i].name) != 0)
			continue;
		if (us > 0 && us <= TIME_MAX_US) {
			*us_out = (uint64_t)us + ((double)(uint64_t)us < us);
			return true;
		}
	}
	return false;
}

#define AT(field) .offset = offsetof(struct report_request, field)
#define WHOLE_NUMBER(low, high) \
	.type = OPT_NUMBER, .flags = OPT_DIGITS, OPTION_RANGE(low, high), .value = "N"
#define NOT_EMPTY(what) .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, .takes = (what)
#define FILE_NAME NOT_EMPTY("the name of a file")

static const struct option_row rows[] = {
	{.name = "threshold", .type = OPT_PARSED, .parse = parse_threshold, .value = "NUM",
	 .takes = "a percentage from 0 to 100",
	 .text = "sum up what holds less than NUM percent [1.0; text of recordings: 0]"},
	{.name = "x", WHOLE_NUMBER(MSPRINT_SIZE_MIN, MSPRINT_SIZE_MAX), AT(text.width),
	 .initial = "72", .text = "graph width in columns, 4 to 1000"},
	{.name = "y", WHOLE_NUMBER(MSPRINT_SIZE_MIN, MSPRINT_SIZE_MAX), AT(text.height),
	 .initial = "20", .text = "graph height in rows, 4 to 1000"},
	{.name = "png", FILE_NAME, AT(png), .value = "OUT",
	 .text = "draw a picture: memory over time"},
	{.name = "svg", FILE_NAME, AT(svg), .value = "OUT", .text = "the same as SVG",
	 .brief = "draw a picture as SVG"},
	{.name = "x-size", WHOLE_NUMBER(1, PICTURE_SIZE_MAX), AT(x_size),
	 .text = "width of pictures in pixels [800; flame graphs: the window's, 300 at least]"},
	{.name = "y-size", WHOLE_NUMBER(1, PICTURE_SIZE_MAX), AT(y_size),
	 .text = "height of pictures in pixels [600]"},
	{.name = "title", .type = OPT_TEXT, AT(title), .value = "TEXT", .takes = "a text",
	 .text = "title of the picture [the program's command line]"},
	{.name = "time-based", .letter = 't', .type = OPT_FLAG, AT(is_time_based),
	 .text = "memusage data: draw over time, not over calls"},
	{.name = "total", .letter = 'T', .type = OPT_FLAG, AT(wants_total),
	 .text = "memusage data: draw heap + stack too"},
	{.name = "rss", FILE_NAME, AT(rss), .value = "FILE",
	 .text = "lay resident memory from samples over a massif picture"},
	{.name = "folded", NOT_EMPTY("the name of a file, or \"-\""), AT(folded), .value = "OUT",
	 .text = "write call paths as folded stacks"},
	{.name = "flame", FILE_NAME, AT(flame), .value = "OUT",
	 .text = "draw a flame graph (SVG, for a browser)"},
	{.name = "html", FILE_NAME, AT(html), .value = "OUT",
	 .text = "write an interactive report (HTML, for a browser)"},
	{.name = "snapshot", .type = OPT_PARSED, .parse = parse_snapshot, AT(snapshot),
	 OPTION_CHOICES(named_snapshots), .value = "WHICH",
	 .takes = "peak, last or a snapshot's number",
	 .text = "which snapshot's paths: peak, last, N [peak, else last]"},
	{.name = "format", .type = OPT_CHOICE, .flags = OPT_LISTED, AT(format),
	 OPTION_CHOICES(report_formats), .value = "FORM", .text = " [text]",
	 .brief = "form of what is printed of a recording"},
	{.name = "at", NOT_EMPTY("a time"), AT(question.at), .value = "TIME",
	 .text = "of a recording: what was live then; 2.5, 300ms, 40%, end"},
	{.name = "range", NOT_EMPTY("two times"), AT(question.range), .value = "T1..T2",
	 .text = "what was allocated then, and still live at T2",
	 .brief = "of a recording: what was allocated in a range of time"},
	{.name = "older-than", NOT_EMPTY("a time"), AT(question.older), .value = "TIME",
	 .text = "what was live at the end, and at least so old; 2.5, 300ms, 10%",
	 .brief = "of a recording: what was live at the end, and at least so old"},
	{.name = "thread", NOT_EMPTY("an id or a name"), AT(question.thread), .value = "THREAD",
	 .text = "what this thread allocated",
	 .brief = "of a recording: what a thread allocated"},
	{.name = "match", NOT_EMPTY("an expression"), AT(question.match), .value = "REGEX",
	 .text = "only call paths with such a function, file or object"},
	{.name = "annotate", NOT_EMPTY("a source file or a function"), AT(annotate),
	 .value = "NAME", .text = "of a recording: source lines with what they hold"},
	{.name = "source", .type = OPT_TEXTS, .flags = OPT_NOT_EMPTY, AT(sources), .value = "DIR",
	 .text = "where sources for --annotate or --embed-sources are now; repeatable"},
	{.name = "embed-sources", .type = OPT_FLAG, AT(embeds_sources),
	 .text = "with --html, of a recording: source files are in the page"},
	{.name = "peek", NOT_EMPTY("a function"), AT(peek), .value = "FUNCTION",
	 .text = "of a recording: callers and callees of a function"},
	{.name = "temporary", .type = OPT_PARSED, .parse = parse_temporary, AT(temporary_us),
	 .value = "TIME", .takes = "a time, as 100us, 2ms or 1s",
	 .text = "what lived less is temporary [what its thread releases next]",
	 .brief = "what lived less is temporary"},
	{.name = "my-code", .type = OPT_PARSED, .parse = my_code_include, .flags = OPT_REPEATABLE,
	 AT(my_code), .value = "PATTERN", .takes = "a pattern",
	 .text = "functions of these source files or objects are yours: call sites"},
	{.name = "not-my-code", .type = OPT_PARSED, .parse = my_code_exclude,
	 .flags = OPT_REPEATABLE, AT(my_code), .value = "PATTERN", .takes = "a pattern",
	 .text = "they are not: their callers are",
	 .brief = "functions of these source files or objects are not yours"},
	{.name = "diff", .type = OPT_FLAG, AT(is_diff),
	 .text = "compare two files, OLD NEW: growth by call site"},
	{.name = "merge", .type = OPT_FLAG, AT(is_merge),
	 .text = "one report of the recordings of several processes, FILE..."},
	{.name = "fail-if", .type = OPT_TEXTS, .flags = OPT_NOT_EMPTY, AT(fail_if),
	 .value = "METRIC>+AMOUNT",
	 .text = "with --diff or --baseline: status 3 if NEW has more by that,\n"
		 "peak>+5%, live-at-end>+1M, allocations>+0, allocated>+1%,\n"
		 "leaked>+0, rss>+10%; with --diff peak@parse>+5% is about\n"
		 "call paths with the function parse; repeatable",
	 .brief = "with --diff or --baseline: what growth is a failure"},
	{.name = "baseline", FILE_NAME, AT(baseline), .value = "FILE",
	 .text = "compare with a baseline, by function; of several runs of a\n"
		 "program, FILE..., all must be beyond --fail-if",
	 .brief = "compare with a baseline"},
	{.name = "write-baseline", NOT_EMPTY("the name of a file, or \"-\""), AT(write_baseline),
	 .value = "OUT", .text = "write a baseline of one or several runs, FILE..."},
	{.name = "limit", .type = OPT_TEXTS, .flags = OPT_NOT_EMPTY, AT(limit),
	 .value = "METRIC<AMOUNT",
	 .text = "status 3 unless this holds, as of ptmem: peak<100M,\n"
		 "allocations@parse<10K; repeatable",
	 .brief = "a limit that the profile must keep"},
	{.name = "limits-file", .type = OPT_TEXTS, .flags = OPT_NOT_EMPTY, AT(limits_file),
	 .value = "FILE", .text = "a file of limits, one on each line; repeatable",
	 .brief = "a file of limits"},
	{.name = "anonymize", NOT_EMPTY("the name of a file, or \"-\""), AT(anonymize),
	 .value = "OUT", .text = "write a recording whose names are words that say nothing"},
	{.name = "key", NOT_EMPTY("a text"), AT(key), .value = "TEXT",
	 .text = "for --anonymize: the same text gives the same words"},
	{.name = "brief", .type = OPT_FLAG, AT(is_brief),
	 .text = "at most 4 KiB: what is largest, each with the command that\n"
		 "shows more; as text or --format=markdown",
	 .brief = "what is largest, in at most 4 KiB"},
	{.name = "top", WHOLE_NUMBER(1, 1000000), AT(top), .initial = "10",
	 .takes = "a whole number from 1", .text = "with --diff or a recording, N rows"},
	{.name = "graph", .type = OPT_FLAG, AT(wants_graph),
	 .text = "of a recording: its heap graph (ptmem --graph)"},
	{.name = "graph-depth", WHOLE_NUMBER(0, 1000), AT(graph_depth), .initial = "1",
	 .takes = "a whole number",
	 .text = "of a heap graph: levels of blocks below owners"},
	{.name = "who-holds", NOT_EMPTY("an address, a type or a function"), AT(who_holds),
	 .value = "ADDRESS|TYPE|FUNCTION",
	 .text = "of a heap graph: what holds the block there, or such blocks"},
	{.name = "what-if", NOT_EMPTY("allocators"), AT(what_if), .value = "ALLOCATOR,...",
	 .text = "of a file of ptmem --events: the RSS that the heap would have with\n"
		 "glibc, glibc:arena_max=2, jemalloc, tcmalloc, mimalloc, /LIB.so",
	 .brief = "what memory would be with other allocators"},
	{.name = "help", .letter = 'h', .type = OPT_FLAG, AT(wants_help),
	 .text = "show this message"},
	{.name = "version", .type = OPT_FLAG, AT(wants_version), .text = "show the version"},
};

const struct option_table report_options = {rows, ARRAY_SIZE(rows)};

void report_options_print_help(void)
{
	static const struct option_layout layout = {"  ", ", ", "", 23, false};

	puts("Usage: ptmem-report [OPTION]... FILE\n"
	     "       ptmem-report --diff [OPTION]... OLD NEW\n"
	     "       ptmem-report --merge [OPTION]... FILE...\n"
	     "       ptmem-report --baseline=FILE|--write-baseline=OUT [OPTION]... FILE...\n"
	     "Prints a profile by ptmem or Valgrind's Massif as ms_print does, or draws it; "
	     "\"-\" is\nstandard input. "
	     "--png and --svg draw memusage's data files and ptmem's samples as well,\n"
	     "and the heap from --inspect's JSON.\n");
	option_print_all(stdout, &report_options, &layout);
}

static bool parse_option(struct report_request *r, const char *argument)
{
	bool is_long = argument[1] == '-', is_letter = argument[1] && !argument[2];
	size_t size = strcspn(argument, "=");
	const char *value = argument[size] ? argument + size + 1 : NULL;
	const struct option_row *o = NULL;

	if (is_letter)
		o = option_find_letter(&report_options, argument[1]);
	else if (is_long)
		o = option_find(&report_options, argument + 2, size - 2);
	if (!o) {
		log_error("unknown option '%s' (see --help)", argument);
		return false;
	}
	_cleanup_free_ char *takes = option_takes(o);

	if (!o->value && value)
		log_error("--%s takes no value", o->name);
	else if (o->value && !value)
		log_error("--%s takes %s: --%s=%s", o->name, takes, o->name, o->value);
	else if (!option_set(o, value, r))
		log_error("--%s takes %s, not '%s'", o->name, takes, value);
	else {
		request_note(r, o->name);
		return true;
	}
	return false;
}

bool report_options_parse(struct report_request *r, char **argv)
{
	option_set_initial(&report_options, r);
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
