/*
 * What memusage(1) writes: the data file that memusagestat and ptmem-report draw, and the report
 * as text (doc/memusage.md).
 */
#ifndef PTMEM_OUTPUT_MEMUSAGE_OUTPUT_H
#define PTMEM_OUTPUT_MEMUSAGE_OUTPUT_H

#include <stdio.h>

#include "base/types.h"
#include "profile/memusage.h"

/*
 * The data file of memusage(1), which memusagestat and ptmem-report draw:
 * doc/memusage.md section 2. 24-byte records {heap, stack, time}, native byte
 * order; the first two hold the peaks and are written again at the end. The unit
 * of time is the nanosecond.
 *
 * The first error stops all writing, and memusage_data_finish returns it.
 */

#define MEMUSAGE_DATA_MAX_BUFFER 32768 /* records */

struct memusage_data;

struct memusage_data_peaks {
	uint64_t heap, stack, sum; /* sum: of live bytes and depth at one time */
	uint64_t start_ns, end_ns;
};

/*
 * Opens or creates @path, which is not changed before memusage_data_start; if no program's data are
 * written, an existing file is left alone, and a created one removed. @buffer: how many records are
 * collected before they are written, 1 to MEMUSAGE_DATA_MAX_BUFFER. @is_live: times are of this
 * machine's clock now, and are written as those since 1970. 0 or -errno.
 */
int memusage_data_open(const char *path, uint32_t buffer, bool is_live,
		       struct memusage_data **data_out);

/*
 * Starts, or restarts when the process executes another program: truncates the file and resets the
 * peaks.
 */
void memusage_data_start(struct memusage_data *d, uint64_t start_ns);
void memusage_data_add(void *ctx, uint64_t heap, uint64_t stack, uint64_t time_ns);
void memusage_data_finish(struct memusage_data *d, const struct memusage_data_peaks *peaks);

/* Writes the rest: 0 or -errno of the first failed write. */
int memusage_data_close(struct memusage_data *d);

/*
 * memusage's report as text; doc/memusage.md section 1.
 */

/* Prints the report, which starts with an empty line. 0 or -errno. */
int memusage_print(FILE *file, const struct memusage_numbers *n, bool with_mappings,
		   bool use_color);

#endif
