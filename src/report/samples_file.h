/*
 * The file of a sampler of /proc/PID/status, in memory.
 *
 *	FILE   := HEADER { ROW }
 *	HEADER := "time" TAB "pid" { TAB FIELD } NL
 *	ROW    := SECONDS TAB PID { TAB VALUE } NL      as many values as fields
 *
 * FIELD is a name of /proc/PID/status without its colon: VmPeak, VmSize, VmHWM,
 * VmRSS, then any others. SECONDS is decimal, since the start of the profile
 * ("12.300"). VALUE is in KiB (Threads: a number); "-" if the kernel gave none. Rows of several
 * processes may alternate. A last line without a line end is incomplete, since the sampler was
 * killed, and is dropped.
 */
#ifndef PTMEM_REPORT_SAMPLES_FILE_H
#define PTMEM_REPORT_SAMPLES_FILE_H

#include "base/types.h"

#define SAMPLES_NONE UINT64_MAX /* a value that was "-" */

struct samples_file {
	char *data;
	char **field;          /* names after "time" and "pid"; point into data */
	size_t field_count;
	double *time;          /* seconds, one per row */
	uint32_t *pid;         /* one per row */
	uint64_t *value;       /* row_count * field_count, as written, or SAMPLES_NONE */
	size_t row_count;
	size_t time_capacity, pid_capacity, value_capacity, field_capacity;
};

/*
 * Takes ownership of @data (malloc'ed), also on failure. -EINVAL with *@why_out "Line N: ...",
 * which the caller frees.
 */
int samples_file_parse(char *data, size_t size, struct samples_file **file_out, char **why_out);
void samples_file_free(struct samples_file *file); /* may be NULL */

/* The index of the field @name, or SIZE_MAX. */
size_t samples_file_field(const struct samples_file *file, const char *name);

/* Bytes of field @field in row @row; SAMPLES_NONE if there is no value. */
uint64_t samples_file_bytes(const struct samples_file *file, size_t row, size_t field);

#endif
