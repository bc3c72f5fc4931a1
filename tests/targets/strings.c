/*
 * Copies strings with strdup and strndup, which some allocators have themselves: `strings [CALLS]`.
 * With CALLS it makes as many copies of 100 bytes, and releases all but 64 of them.
 */
#include "truth.h"

#define KEPT 64
#define LONGEST 5000u

static char *kept[KEPT];

NOINLINE static char *copy(const char *text)
{
	char *p = strdup(text);

	CHECK(p && strcmp(p, text) == 0);
	return truth_made(p, strlen(text) + 1);
}

NOINLINE static char *copy_start(const char *text, size_t n)
{
	char *p = strndup(text, n);

	CHECK(p && strlen(p) == strnlen(text, n) && strncmp(p, text, n) == 0);
	return truth_made(p, strnlen(text, n) + 1);
}

static void keep(char *p)
{
	static size_t next;
	char **place = &kept[next++ % KEPT];

	t_free(*place, *place ? strlen(*place) + 1 : 0);
	*place = p;
}

static void copy_many(size_t calls)
{
	char text[100];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	for (size_t i = 0; i < calls; i++)
		keep(i % 2 ? copy(text) : copy_start(text, 1000));
}

int main(int argc, char **argv)
{
	static char text[LONGEST + 1];

	if (argc > 1) {
		copy_many(strtoul(argv[1], NULL, 10));
		truth_report();
		return 0;
	}
	memset(text, 'y', LONGEST);
	for (unsigned i = 0; i <= LONGEST; i++) {
		keep(copy(text + LONGEST - i));
		keep(copy_start(text + i, i * 7 % 3000));
	}
	truth_report();
	return 0;
}
