/*
 * See option_suggest.h. The distance between two names is the number of typing errors: characters
 * omitted, added, changed, or swapped with the next one.
 */
#include "cli/option_suggest.h"

#include <string.h>

#include "cli/option_table.h"

#define NAME_MAX_SIZE 64
#define BEGINNING_MIN 3 /* significant characters */
#define SLIPS_MAX 2

/*
 * The number of errors that turn the @n characters at @a into @b; only the last three rows of the
 * usual table are kept.
 */
static size_t distance(const char *a, size_t n, const char *b)
{
	size_t lines[3][NAME_MAX_SIZE], m = strlen(b);
	size_t *before = lines[0], *last = lines[1], *line = lines[2];
	if (n >= NAME_MAX_SIZE || m >= NAME_MAX_SIZE)
		return SIZE_MAX;
	for (size_t j = 0; j <= m; j++)
		line[j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *old = before;
		before = last;
		last = line;
		line = old;
		line[0] = i;
		for (size_t j = 1; j <= m; j++) {
			line[j] = MIN(last[j - 1] + (a[i - 1] != b[j - 1]),
				      MIN(line[j - 1], last[j]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				line[j] = MIN(line[j], before[j - 2] + 1);
		}
	}
	return line[m];
}

/* The shortest name with this prefix; NULL = none. */
static const char *find_beginning(const char *name, size_t length)
{
	const char *found = NULL;
	for (size_t i = 0; i < option_row_count; i++) {
		const char *known = option_rows[i].name;
		if (known && strncmp(known, name, length) == 0 &&
		    (!found || strlen(known) < strlen(found)))
			found = known;
	}
	return found;
}

const char *option_suggest(const char *name, size_t length)
{
	const char *nearest = length >= BEGINNING_MIN ? find_beginning(name, length) : NULL;
	size_t best = MIN(length / 2, SLIPS_MAX + 1); /* with more errors it is another word */
	if (nearest)
		return nearest;
	for (size_t i = 0; i < option_row_count; i++) {
		const char *known = option_rows[i].name;
		size_t slips = known ? distance(name, length, known) : SIZE_MAX;
		if (slips < best) {
			best = slips;
			nearest = known;
		}
	}
	return nearest;
}
