/*
 * Finds the process in a file of samples that belongs to a profile. Neither file identifies its
 * run, so this compares the pid in the profile's name, and both durations.
 */
#ifndef PTMEM_REPORT_RSS_H
#define PTMEM_REPORT_RSS_H

#include "report/massif_file.h"
#include "report/samples_file.h"

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

#endif
