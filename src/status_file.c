/*
 * The parser of /proc/PID/status. A line counts when its key stands at its start
 * and ends with the colon: a program may call itself "VmRSS:" but not with a line
 * feed in front, which the kernel escapes. Digits go up to the end of the text.
 */
#include "status_file.h"

#include <string.h>

const char *const status_field_names[STATUS_FIELDS] = {
	"VmPeak", "VmSize", "VmHWM", "VmRSS",  "VmLck",	  "VmPin",   "VmData",	 "VmStk",
	"VmExe",  "VmLib",  "VmPTE", "VmSwap", "RssAnon", "RssFile", "RssShmem", "Threads",
};

enum status_field status_field_find(const char *name, size_t size)
{
	if (size < 3)
		return STATUS_FIELDS;
	for (enum status_field i = 0; i < STATUS_FIELDS; i++) {
		const char *field = status_field_names[i];
		/* the third letter tells most of them apart, without a call: this runs at each sample */
		if (field[2] == name[2] && strncmp(field, name, size) == 0 && field[size] == '\0')
			return i;
	}
	return STATUS_FIELDS;
}

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

static uint64_t parse_digits(const char *p, const char *end)
{
	uint64_t value = 0;
	const char *start = p;
	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return STATUS_NONE;
	}
	return p > start ? value : STATUS_NONE;
}

/* The field whose line this is, *out having its value; STATUS_FIELDS: none. */
static enum status_field parse_line(const char *line, const char *end, struct status_values *out)
{
	const char *colon = memchr(line, ':', (size_t)(end - line));
	if (!colon)
		return STATUS_FIELDS;
	size_t size = (size_t)(colon - line);
	const char *value = skip_blanks(colon + 1, end);
	if (size == 5 && memcmp(line, "State", 5) == 0) {
		out->state = value < end ? *value : 0;
		return STATUS_FIELDS;
	}
	enum status_field field = status_field_find(line, size);
	if (field != STATUS_FIELDS)
		out->value[field] = parse_digits(value, end);
	return field;
}

void status_parse(const char *text, size_t size, uint32_t wanted, struct status_values *out)
{
	const char *end = text + size;
	memset(out->value, 0xff, sizeof(out->value));
	out->state = 0;
	while (text < end && wanted) {
		const char *feed = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = feed ? feed : end;
		char c = *text;
		if (c == 'V' || c == 'R' || c == 'T' ||
		    c == 'S') { /* most lines are none of ours */
			enum status_field field = parse_line(text, line_end, out);
			wanted &= field == STATUS_FIELDS ? STATUS_ALL : ~STATUS_BIT(field);
		}
		text = line_end + 1;
	}
}
