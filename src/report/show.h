/*
 * What ptmem-report is asked for, and doing it: report_options.c parses; the request is checked
 * (request_check.c); show.c decides which files are read and which reports are made of them,
 * diff_show.c and recording_show.c make those of two profiles and of recordings, report_files.c
 * writes folded stacks, flame graphs and pages.
 */
#ifndef PTMEM_REPORT_SHOW_H
#define PTMEM_REPORT_SHOW_H

#include "base/option_row.h"
#include "output/flame.h"
#include "output/gate.h"
#include "recording/recording_view.h"
#include "report/chart/picture.h"
#include "report/input.h"
#include "report/massif_output.h"
#include "report/massif_paths.h"

/* What is made of a file, in a form that has options of its own. */
enum report_kind {
	AS_TEXT = 1,
	AS_TABLE = 2,       /* of a difference */
	AS_ROWS = 4,        /* the same as CSV */
	AS_PICTURE = 8,
	AS_FOLDED = 16,
	AS_FLAME = 32,
	AS_HTML = 64,
	AS_MASSIF = 128,    /* a recording as massif file */
	AS_DATA = 256,      /* a recording in another form */
	AS_SITED = 512,     /* with others: it shows call sites, or whose code a frame is */
	AS_COUNTED = 1024,  /* with others: it shows how many allocations were temporary */
	AS_JSON = 2048,     /* with AS_ROWS: JSON instead of CSV */
	AS_GATE = 4096,     /* what gates found */
};

struct shown_recording;
struct gate;

#define REPORT_PATHS 1000 /* of runs of a program */

/* A form on standard output (--format); the table is in recording_show.c. */
struct report_format {
	const char *name; /* NULL: the end of the table */
	/* enum report_kind of a recording, and of a difference; 0: of that there is none */
	unsigned kinds, of_diff;
	int (*print)(const struct shown_recording *s); /* 0, or an enum report_exit */
	const char *no_diff; /* what helps instead; NULL: nothing */
	enum gate_form gate; /* of AS_GATE; of others if they are of a baseline */
};

extern const struct report_format report_formats[];

#define FORMAT_DEFAULT UINT32_MAX

enum report_exit {
	EXIT_NOT_WRITTEN = 1, EXIT_NOT_READ = 2, EXIT_GROWN = 3 /* --fail-if, --limit */,
	EXIT_REFUSED = 255,
};

struct report_request {
	/* the file; with is_diff OLD and NEW; of a baseline or is_merge several; one too many */
	const char *path[REPORT_PATHS + 1];
	size_t path_count;
	uint32_t given;                /* request_check.c's */
	struct msprint_options text;
	const char *png, *svg, *folded, *flame, *html; /* files to write; NULL = not asked for */
	struct my_code my_code;        /* after the recording's own */
	const char *title, *rss;       /* NULL = not given */
	uint32_t x_size, y_size;       /* 0 = default */
	struct option_strings fail_if; /* fail_if.h */
	struct option_strings limit;   /* limit.h */
	struct option_strings limits_file;
	const char *anonymize, *key;   /* a file to write, and a text; NULL = not given */
	const char *baseline, *write_baseline; /* baseline.h; NULL = not given */
	uint32_t top;                  /* rows of --diff at each level, of a recording's tables */
	uint32_t graph_depth;          /* of a heap graph: levels below owners */
	const char *who_holds;         /* likewise: graph_wish.holds; NULL = not given */
	const char *what_if;           /* allocators: allocator_spec.h; NULL = not given */
	const char *annotate, *peek;   /* a file or function, a function; NULL = not given */
	struct option_strings sources; /* directories with sources */
	double least_share;            /* percent: rows of a recording's tables; 0 = all */
	uint64_t temporary_us;         /* 0 = not given */
	uint32_t format;               /* index in report_formats, or FORMAT_DEFAULT */
	struct recording_question question; /* about recordings */
	uint64_t snapshot;             /* a number, or MASSIF_SNAPSHOT_* */
	bool is_time_based, wants_total, is_diff, is_merge, embeds_sources, is_brief;
	char *const *argv;             /* the command line, for messages */
	bool wants_graph;              /* of recordings: the heap graph in them */
	bool wants_help, wants_version;
};

/* The row of --format; NULL: not given. */
static inline const struct report_format *report_format_of(const struct report_request *r)
{
	return r->format == FORMAT_DEFAULT ? NULL : &report_formats[r->format];
}

/* -- the command line -- */

extern const struct option_table report_options;

/* @argv without its first word; *r has the defaults. false: the error is logged. */
bool report_options_parse(struct report_request *r, char **argv);
void report_options_print_help(void);

/* -- reports -- */

/* Prints heap graphs; @input: one, or with is_diff two: 0, or an enum report_exit. */
int graph_show(const struct report_request *r, const struct input *input);
/* The comparison of two: as text, in brief, or as JSON. */
void graph_diff_show(const struct report_request *r, const struct input *input, bool is_json);

struct brief;

/* The brief report of one file of any kind: 0, or an enum report_exit. */
int brief_show(const struct report_request *r, const struct input *input);
/* For those of comparisons: the command; prints and frees it. */
void brief_show_begin(const struct report_request *r, struct brief *b);
void brief_show_end(const struct report_request *r, struct brief *b);
/* Why --brief makes no sense with other options: NULL, or a text to be freed. */
char *brief_show_check(const struct report_request *r);

/* Makes the reports: 0, or an enum report_exit once the error is logged. */
int show(const struct report_request *r);

/* Checks of a request: compatible options, and different output files. */

/* Why @r cannot be made of a heap graph: NULL, or a text to be freed. */
char *request_check_graph(const struct report_request *r);

/* Option @name ("top") was given. */
void request_note(struct report_request *r, const char *name);

/* Why @r makes no sense; NULL if it does. The caller frees it. */
char *request_check(const struct report_request *r);
/* What goes to standard output, by --format or by default: enum report_kind; 0: nothing. */
unsigned request_printed(const struct report_request *r);
/* As request_check, once it is known what the files are. */
char *request_check_input(const struct report_request *r, enum input_kind kind);

/* Files that are made from a tree of call paths. */

/* Text of a flame graph. */
struct path_words {
	const char *title, *subtitle;  /* --title goes before the first */
};

/* These log errors; 0 or an enum report_exit. */
int path_files_folded(const char *path, const struct path_tree *t, bool is_diff);
/* Those that @r asks for by --folded and --flame. */
int path_files_write(const struct report_request *r, const struct path_tree *t,
		     const struct path_words *words);

/*
 * The HTML report of one profile, or of two that are compared.
 */

/*
 * Writes the page for @input: a profile with call trees, or --inspect's results, or with is_diff an
 * old and a new profile of the same kind. 0, or an enum report_exit after the error was logged.
 */
int html_report_write(const struct report_request *r, const struct input *input);

/* Reports about several processes (--merge). */

struct processes;

/*
 * Makes those that @r requests of @all, which processes_finish has not seen yet, with @prints one
 * on standard output: 0, or an enum report_exit once the error is logged.
 */
int merge_show(const struct report_request *r, struct processes *all, bool prints);
/* Whether there is one of several recordings. */
bool merge_has_form(const struct report_format *format);

/* The reports of ptmem-report about two profiles (--diff). */

/*
 * Makes the reports requested by @r from @input, an old and a new profile with call trees. 0, or an
 * enum report_exit after the error was logged.
 */
int diff_show(const struct report_request *r, const struct input *input);

/* The reports of ptmem-report about recordings. */

/*
 * Makes the reports that @r requests, with @prints one on standard output, to which JSON adds what
 * @gate has: 0, or an enum report_exit once the error is logged.
 */
int recording_show(const struct report_request *r, const struct recording *recording, bool prints,
		   const struct gate *gate);

#endif
