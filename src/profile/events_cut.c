/* See events_cut.h. */
#include "profile/events_cut.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/stream.h"

/* Letters of the lines that are events (events.c). */
static const char events[] = "afbrmusctpkdoqzjR";

#define CUT_TAIL (1 << 20) /* bytes in which an event is looked for: the names of a file are last */

bool events_cut(const char *path, uint64_t *time_ns_out)
{
	off_t end = stream_cut_line(path);
	_cleanup_fclose_ FILE *file = end > 0 ? fopen(path, "re") : NULL;
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0;
	bool found = false;

	if (!file || fseeko(file, MAX(end - CUT_TAIL, 0), SEEK_SET) != 0)
		return false;
	while (getline(&line, &capacity, file) > 2) {
		bool is_event = line[1] == ' ' && strchr(events, line[0]);

		if (is_event)
			*time_ns_out = strtoull(line + 2, NULL, 10);
		found |= is_event;
	}
	return found;
}
