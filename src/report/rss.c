/* See rss.h. */
#include "report/rss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "report/axis.h"

#define SLACK 0.1         /* maximum difference, as a share of the longer one */
#define LEAST_SLACK 1000  /* ms */

static bool has_process(const struct samples_file *samples, uint64_t pid)
{
	for (size_t i = 0; i < samples->row_count; i++) {
		if (samples->pid[i] == pid)
			return true;
	}
	return false;
}

uint32_t rss_process(const struct samples_file *samples, const char *path)
{
	const char *at = text_base_name(path);

	while (*(at += strcspn(at, "0123456789"))) {
		char *end;
		unsigned long number = strtoul(at, &end, 10);

		if (has_process(samples, number))
			return (uint32_t)number;
		at = end;
	}
	return samples->pid[0];
}

/* The pid in a name like "massif.out.1234"; 0 = none. */
static unsigned long pid_of_name(const char *path)
{
	const char *out = strstr(text_base_name(path), ".out.");

	return out ? strtoul(out + strlen(".out."), NULL, 10) : 0;
}

/* When the last sample of @pid was taken and the mean time between two, in milliseconds. */
static double last_time(const struct samples_file *samples, uint32_t pid, double *interval_out)
{
	double last = 0;
	size_t count = 0;

	for (size_t i = 0; i < samples->row_count; i++) {
		if (samples->pid[i] != pid)
			continue;
		last = samples->time[i] * 1000;
		count++;
	}
	*interval_out = count ? last / (double)count : 0;
	return last;
}

char *rss_doubt(const struct samples_file *samples, uint32_t pid,
		const struct massif_file *profile, const char *path)
{
	unsigned long named = pid_of_name(path);
	char a[AXIS_TEXT_SIZE], b[AXIS_TEXT_SIZE];
	double interval, last = last_time(samples, pid, &interval), end = 0;

	if (named && named != pid)
		return xasprintf("the samples are of process %u, the profile of process %lu", pid,
				 named);
	for (size_t i = 0; i < profile->snapshot_count; i++)
		end = MAX(end, (double)profile->snapshot[i].time);
	if (fabs(last - end) <= MAX(MAX(LEAST_SLACK, 2 * interval), SLACK * MAX(last, end)))
		return NULL;
	axis_text(AXIS_MILLISECONDS, last, a);
	axis_text(AXIS_MILLISECONDS, end, b);
	return xasprintf("the samples of process %u end at %s, the profile at %s: "
			 "they may be of different runs", pid, a, b);
}
