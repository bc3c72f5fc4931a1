/*
 * Which process of a file of samples belongs to a profile, and whether any does. Neither file names
 * the run that it is of, so this compares what they have: the pid in the profile's name, and how
 * long both last.
 */
#ifndef PTMEM_REPORT_RSS_H
#define PTMEM_REPORT_RSS_H

#include "report/massif_file.h"
#include "report/samples_file.h"

/* The process whose pid is in the base name of @path; else the first. @samples has rows. */
uint32_t rss_process(const struct samples_file *samples, const char *path);

/*
 * Why process @pid of @samples may not be that of @profile, which was read from @path; NULL = it
 * may. The caller frees it. @profile: in milliseconds.
 */
char *rss_doubt(const struct samples_file *samples, uint32_t pid,
		const struct massif_file *profile, const char *path);

#endif
