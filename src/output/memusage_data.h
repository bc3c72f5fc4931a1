/*
 * The data file of memusage(1), which memusagestat and ptmem-report draw:
 * spec/memusage.md section 2. 24-byte records {heap, stack, time}, native byte
 * order; the first two hold the peaks and are written again at the end. The unit
 * of time is the nanosecond.
 *
 * Errors are kept: the first one ends all writing, and memusage_data_finish
 * returns it.
 */
#ifndef PTMEM_OUTPUT_MEMUSAGE_DATA_H
#define PTMEM_OUTPUT_MEMUSAGE_DATA_H

#include "base/types.h"

#define MEMUSAGE_DATA_MAX_BUFFER 32768 /* records */

struct memusage_data;

struct memusage_data_peaks {
	uint64_t heap, stack, sum; /* sum: of live bytes and depth at one time */
	uint64_t start_ns, end_ns;
};

/*
 * Opens or creates @path, which stays as it was until memusage_data_start: what no
 * program's data come to is left alone, or taken away again. @buffer: how many records
 * are collected before they are written, 1 to MEMUSAGE_DATA_MAX_BUFFER. 0 or -errno.
 */
int memusage_data_open(const char *path, uint32_t buffer, struct memusage_data **data_out);

/*
 * Begins, or restarts where another program runs in
 * the process (exec): empties the file, no peaks yet.
 */
void memusage_data_start(struct memusage_data *d, uint64_t start_ns);
void memusage_data_add(struct memusage_data *d, uint64_t heap, uint64_t stack, uint64_t time_ns);
void memusage_data_finish(struct memusage_data *d, const struct memusage_data_peaks *peaks);

/* Writes what is left: 0 or -errno of the first failed write. */
int memusage_data_close(struct memusage_data *d);

#endif
