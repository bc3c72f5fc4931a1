/*
 * Parses the sampled values of /proc/PID/status. This is done often, so only up to the last line
 * needed.
 */
#include "live/status_file.h"

#include <string.h>

#include "base/proc.h"

const char *const status_field_names[STATUS_FIELDS] = {
	"VmPeak", "VmSize", "VmHWM", "VmRSS",  "VmLck",	  "VmPin",   "VmData",	 "VmStk",
	"VmExe",  "VmLib",  "VmPTE", "VmSwap", "RssAnon", "RssFile", "RssShmem", "Threads",
	"Monotonic", "Realtime",
};

enum status_field status_field_find(const char *name, size_t size)
{
	if (size < 3)
		return STATUS_FIELDS;
	for (enum status_field i = 0; i < STATUS_FIELDS; i++) {
		const char *field = status_field_names[i];
		/*
		 * the third letter distinguishes most of them without a call: this runs at each
		 * sample
		 */
		if (field[2] == name[2] && strnlen(field, size + 1) == size &&
		    memcmp(field, name, size) == 0)
			return i;
	}
	return STATUS_FIELDS;
}

static uint64_t parse_value(const struct proc_line *line)
{
	uint64_t value;
	return proc_parse_number(line->value, line->end, 10, &value) ? value : STATUS_NONE;
}

void status_parse(const char *text, size_t size, uint32_t wanted, struct status_values *out)
{
	struct proc_line line;
	memset(out->value, 0xff, sizeof(out->value));
	out->state = 0;
	for (const char *end = text + size; wanted && proc_next_line(&text, end, &line);) {
		if (!strchr("VRTS", *line.key)) /* most lines are not needed */
			continue;
		enum status_field field = status_field_find(line.key, line.key_size);
		if (field < STATUS_MONOTONIC) {
			out->value[field] = parse_value(&line);
			wanted &= ~STATUS_BIT(field);
		} else if (line.key_size == 5 && memcmp(line.key, "State", 5) == 0) {
			out->state = line.value < line.end ? *line.value : 0;
		}
	}
}
