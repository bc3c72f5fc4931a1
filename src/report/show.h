/*
 * What ptmem-report is asked for, and doing it: main.c parses, this decides which
 * files are read and which report is made from them.
 */
#ifndef PTMEM_REPORT_SHOW_H
#define PTMEM_REPORT_SHOW_H

#include "report/massif_paths.h"
#include "report/msprint.h"
#include "report/picture.h"
#include "recording/recording_view.h"

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

#endif
