/*
 * What ptmem-report is asked for, and doing it: main.c parses; the request is checked
 * (request_check.c); show.c decides which files are read and which reports are made of them,
 * diff_show.c and recording_show.c make those of two profiles and of recordings, report_files.c
 * writes folded stacks, flame graphs and pages.
 */
#ifndef PTMEM_REPORT_SHOW_H
#define PTMEM_REPORT_SHOW_H

#include "output/flame.h"
#include "recording/recording_view.h"
#include "report/chart/picture.h"
#include "report/input.h"
#include "report/massif_output.h"
#include "report/massif_paths.h"

/*
 * What ptmem-report is asked for, and doing it: main.c parses, this decides which
 * files are read and which report is made from them.
 */

#define REPORT_TOP_DEFAULT 10u

/* Forms of recordings on standard output. */
enum report_format {
	FORMAT_DEFAULT, FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV, FORMAT_FOLDED,
	FORMAT_PPROF, FORMAT_SPEEDSCOPE, FORMAT_MASSIF,
};

enum report_exit { EXIT_NOT_WRITTEN = 1, EXIT_NOT_READ = 2, EXIT_REFUSED = 255 };

struct report_request {
	const char *path[3];           /* the file; with is_diff OLD and NEW; one too many */
	size_t path_count;
	uint32_t given;                /* request_check.c's */
	struct msprint_options text;
	const char *png, *svg, *folded, *flame, *html; /* files to write; NULL = not asked for */
	struct my_code my_code;        /* after the recording's own */
	const char *title, *rss;       /* NULL = not given */
	unsigned x_size, y_size;       /* 0 = default */
	unsigned top;                  /* rows of --diff at each level, of a recording's tables */
	double least_share;            /* percent: rows of a recording's tables; 0 = all */
	uint64_t temporary_us;         /* 0 = not given */
	enum report_format format;
	struct recording_question question; /* about recordings */
	uint64_t snapshot;             /* a number, or MASSIF_SNAPSHOT_* */
	bool is_time_based, wants_total, is_diff;
	bool wants_help, wants_version;
};

/* Makes the reports: 0, or an enum report_exit once the error is logged. */
int show(const struct report_request *r);

/* Checks of a request: compatible options, and different output files. */

/* Option @name ("--top") was given. */
void request_note(struct report_request *r, const char *name);

/* Why @r makes no sense; NULL if it does. The caller frees it. */
char *request_check(const struct report_request *r);
/* Whether a report goes to standard output, by --format or by default. */
bool request_prints(const struct report_request *r);
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

/* The reports of ptmem-report about two profiles (--diff). */

/*
 * Makes the reports requested by @r from @input, an old and a new profile with call trees. 0, or an
 * enum report_exit after the error was logged.
 */
int diff_show(const struct report_request *r, const struct input *input);

/* The reports of ptmem-report about recordings. */

/* Makes the reports that @r requests: 0, or an enum report_exit once the error is logged. */
int recording_show(const struct report_request *r, const struct recording *recording);

#endif
