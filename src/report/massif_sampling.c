/* See massif_sampling.h. */
#include "report/massif_sampling.h"

#include <string.h>

#include "profile/estimate.h"

#define OPTION "--heap-sample="

/* "512K" at @s, which ends at @end; 0 if it is not a number. */
static uint64_t parse_bytes(const char *s, const char *end)
{
	uint64_t bytes = 0;
	unsigned shift = 0;

	for (; s < end && *s >= '0' && *s <= '9' && bytes <= ESTIMATE_INTERVAL_MAX; s++)
		bytes = bytes * 10 + (uint64_t)(*s - '0');
	if (s < end && strchr("KMG", *s))
		shift = *s == 'K' ? 10 : *s == 'M' ? 20 : 30;
	return bytes <= ESTIMATE_INTERVAL_MAX >> shift ? bytes << shift : 0;
}

uint64_t massif_sampling_interval(const struct massif_file *file)
{
	const char *at = file->desc.at, *end = at + file->desc.size;
	uint64_t interval = 0;

	/* the last one wins, as on the command line */
	while (at && (at = memmem(at, (size_t)(end - at), OPTION, strlen(OPTION)))) {
		at += strlen(OPTION);
		interval = parse_bytes(at, end);
	}
	return interval > 1 ? interval : 0;
}
