/*
 * /proc/PID/status, whatever it holds: values or none, and no byte read beyond its end.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "live/rss_poll.h"

const struct fuzz_seed fuzz_seeds[] = {
	FUZZ_TEXT("Name:\tcat\nState:\tR (running)\nVmPeak:\t    6080 kB\nVmSize:\t    6076 kB\nVmRSS:\t    1800 kB\n"),
	FUZZ_TEXT("Name:\tVmRSS:\nState:\tZ (zombie)\nThreads:\t1\n"),
	{0},
};

void fuzz_one(const uint8_t *data, size_t size)
{
	struct status_values v;
	char *text = calloc(size ? size : 1, 1); /* exactly as large: a sanitizer sees reads beyond it */
	if (size)
		memcpy(text, data, size);
	status_parse(text, size, STATUS_ALL, &v);
	CHECK(size > 0 || v.value[STATUS_VMRSS] == STATUS_NONE);
	free(text);
}
