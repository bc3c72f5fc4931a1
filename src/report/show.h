/*
 * What ptmem-report is asked for, and doing it: main.c parses, this decides which
 * files are read and which report is made from them.
 */
#ifndef PTMEM_REPORT_SHOW_H
#define PTMEM_REPORT_SHOW_H

#include "report/massif_paths.h"
#include "report/msprint.h"
#include "report/picture.h"

enum report_exit { EXIT_NOT_WRITTEN = 1, EXIT_NOT_READ = 2, EXIT_REFUSED = 255 };

struct report_request {
	const char *path[2];           /* the file; with is_diff the old and the new one */
	/* operands found; more than two are ignored, as ms_print does */
	size_t path_count;
	struct msprint_options text;
	const char *png, *svg, *folded, *flame; /* files to write; NULL = not asked for */
	const char *title, *rss;       /* NULL = not given */
	unsigned x_size, y_size;       /* 0 = default */
	unsigned top;                  /* rows of --diff at each level */
	uint64_t snapshot;             /* a number, or MASSIF_SNAPSHOT_* */
	bool is_time_based, wants_total, is_diff;
	bool wants_help, wants_version;
};

/* Why @r makes no sense; NULL if it does. */
const char *show_check(const struct report_request *r);

/* Makes the reports: 0, or an enum report_exit once the error is logged. */
int show(const struct report_request *r);

#endif
