/*
 * Pictures of memory over time, from any file that has it, as PNG or SVG; and which process of a
 * file of samples belongs to the profile it is laid over.
 */
#ifndef PTMEM_REPORT_CHART_PICTURE_H
#define PTMEM_REPORT_CHART_PICTURE_H

#include "report/input.h"
#include "report/massif_file.h"

/*
 * Finds the process in a file of samples that belongs to a profile. Neither file identifies its
 * run, so this compares the pid in the profile's name, and both durations.
 */

/*
 * The process whose pid is in the base name of @path; otherwise the first. @samples must have
 * rows.
 */
uint32_t rss_process(const struct samples_file *samples, const char *path);

/*
 * Why process @pid of @samples may not be that of @profile, which was read from @path; NULL = no
 * reason. The caller frees it. @profile: duration in milliseconds.
 */
char *rss_doubt(const struct samples_file *samples, uint32_t pid,
		const struct massif_file *profile, const char *path);

/*
 * Pictures of memory over time, from any file that has it, as PNG or SVG.
 */

#define PICTURE_X_DEFAULT 800
#define PICTURE_Y_DEFAULT 600
#define PICTURE_SIZE_MAX 20000

struct picture_options {
	const char *title;       /* NULL: the file's */
	const char *png, *svg;   /* files to write ("-": standard output); NULL = none */
	unsigned width, height;  /* pixels */
	bool is_time_based;      /* memusage data: x is time, not calls */
	bool wants_total;        /* memusage data: also heap + stack, all on one scale */
	const struct samples_file *rss; /* over a massif picture; NULL = none */
	uint32_t rss_pid;        /* the process in it; 0 = it has none */
};

/*
 * 0; -EINVAL with *@why_out (the caller frees it) if there is nothing to draw; -errno of
 * writing.
 */
int picture_write(const struct input *input, const struct picture_options *options, char **why_out);

#endif
