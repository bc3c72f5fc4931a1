/*
 * Reads sampler files: the grammar is in samples_file.h. Lines and words are split in place; an
 * invalid number is an error with its line number.
 */
#include "report/samples_file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Splits off the word that ends at a tab from *@rest, which becomes NULL after the last one. */
static char *next_word(char **rest)
{
	return strsep(rest, "\t");
}

static bool parse_u64(const char *word, uint64_t *out)
{
	char *end;

	errno = 0;
	unsigned long long value = strtoull(word, &end, 10);

	if (*word < '0' || *word > '9' || *end || errno)
		return false;
	*out = value;
	return true;
}

static bool parse_seconds(const char *word, double *out)
{
	if (!*word || word[strspn(word, "0123456789.")])
		return false;
	char *end;
	double value = strtod(word, &end);

	if (*end || end == word || !isfinite(value))
		return false;
	*out = value;
	return true;
}

static char *parse_header(struct samples_file *f, char *line)
{
	const char *time = next_word(&line), *pid = line ? next_word(&line) : "";

	if (strcmp(time, "time") != 0 || strcmp(pid, "pid") != 0)
		return xstrdup("expected \"time\" and \"pid\" as the first columns");
	while (line) {
		f->field =
			xgrow(f->field, &f->field_capacity, f->field_count + 1, sizeof(*f->field));
		f->field[f->field_count++] = next_word(&line);
	}
	return f->field_count ? NULL : xstrdup("no fields after \"time\" and \"pid\"");
}

static char *parse_values(struct samples_file *f, char *rest)
{
	f->value = xgrow(f->value, &f->value_capacity, (f->row_count + 1) * f->field_count,
			 sizeof(*f->value));
	for (size_t i = 0; i < f->field_count; i++) {
		const char *word = rest ? next_word(&rest) : NULL;
		uint64_t *value = &f->value[f->row_count * f->field_count + i];

		if (!word)
			return xasprintf("no value for %s", f->field[i]);
		*value = SAMPLES_NONE;
		if (strcmp(word, "-") != 0 && !parse_u64(word, value))
			return xasprintf("%s is not a number: '%s'", f->field[i], word);
	}
	return rest ? xstrdup("more values than columns") : NULL;
}

static char *parse_row(struct samples_file *f, char *line)
{
	const char *time = next_word(&line), *pid = line ? next_word(&line) : "";
	double seconds;
	uint64_t number;

	if (!parse_seconds(time, &seconds))
		return xasprintf("no time in seconds: '%s'", time);
	if (!parse_u64(pid, &number) || number > UINT32_MAX)
		return xasprintf("no process: '%s'", pid);
	char *why = parse_values(f, line);

	if (why)
		return why;
	f->time = xgrow(f->time, &f->time_capacity, f->row_count + 1, sizeof(*f->time));
	f->pid = xgrow(f->pid, &f->pid_capacity, f->row_count + 1, sizeof(*f->pid));
	f->time[f->row_count] = seconds;
	f->pid[f->row_count++] = (uint32_t)number;
	return NULL;
}

/* The error in the first invalid line; NULL if there is none. */
static char *parse_lines(struct samples_file *f, char *end)
{
	size_t number = 0;

	for (char *line = f->data, *stop; (stop = memchr(line, '\n', (size_t)(end - line)));
	     line = stop + 1) {
		*stop = '\0';
		char *why = number++ ? parse_row(f, line) : parse_header(f, line);

		if (why) {
			char *out = xasprintf("Line %zu: %s", number, why);

			free(why);
			return out;
		}
	}
	return number ? NULL : xstrdup("Line 1: expected a header line");
}

int samples_file_parse(char *data, size_t size, struct samples_file **file_out, char **why_out)
{
	struct samples_file *f = xcalloc(1, sizeof(*f));

	f->data = data;
	char *why = parse_lines(f, data + size);

	if (why) {
		samples_file_free(f);
		*why_out = why;
		return -EINVAL;
	}
	*file_out = f;
	return 0;
}

void samples_file_free(struct samples_file *file)
{
	if (!file)
		return;
	free(file->data);
	free(file->field);
	free(file->time);
	free(file->pid);
	free(file->value);
	free(file);
}

size_t samples_file_field(const struct samples_file *file, const char *name)
{
	for (size_t i = 0; i < file->field_count; i++)
		if (!strcmp(file->field[i], name))
			return i;
	return SIZE_MAX;
}

uint64_t samples_file_bytes(const struct samples_file *file, size_t row, size_t field)
{
	uint64_t kib = file->value[row * file->field_count + field], bytes;

	return kib == SAMPLES_NONE || __builtin_mul_overflow(kib, 1024, &bytes) ? SAMPLES_NONE :
										  bytes;
}
