/*
 * A data file of memusage(1) or of ptmem --data, in memory (doc/memusage.md section 2).
 *
 *	FILE   := PEAK PEAKS RECORD ...     24 bytes each, little-endian
 *	PEAK   := 0, peak of heap + stack, time of the start
 *	PEAKS  := peak of the heap, peak of the stack, time of the end
 *	RECORD := live heap, stack depth, time        one per call
 *
 * If the program was killed the peaks are 0 in the file, and are computed from the records. The
 * unit of time is not in the file: only ratios are meaningful.
 */
#ifndef PTMEM_REPORT_MEMUSAGE_FILE_H
#define PTMEM_REPORT_MEMUSAGE_FILE_H

#include "base/types.h"

#define MEMUSAGE_RECORD_SIZE 24

struct memusage_record {
	uint64_t heap, stack;
	uint64_t time;         /* in the file's order; with threads it may go back a little */
};

struct memusage_file {
	struct memusage_record *record;
	/* number of records without duplicates that memusage leaves at the end */
	size_t count;
	uint64_t peak_heap, peak_stack, peak_total;
	uint64_t start, end;   /* start <= end */
	bool is_complete;      /* the peaks were in the file */
};

/*
 * Takes ownership of @data (malloc'ed), also on failure. -EINVAL with *@why_out, which the caller
 * frees.
 */
int memusage_file_parse(char *data, size_t size, struct memusage_file **file_out, char **why_out);
void memusage_file_free(struct memusage_file *file); /* may be NULL */

#endif
