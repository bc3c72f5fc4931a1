/*
 * A baseline, whatever it holds: it is refused with a reason, or what is written of it is read as the
 * same, and compared with itself it has no difference.
 */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "report/gates/baseline.h"

const struct fuzz_seed fuzz_seeds[] = {
	FUZZ_TEXT("# text\nptmem-baseline 1\nruns 1\nallocations 75\nallocations 70 f(int)\n"
		  "allocations 5 main::{lambda()#1}::operator()() const\npeak 1000\n"),
	FUZZ_TEXT("ptmem-baseline 1\nruns 3\npeak 10..20\npeak 0..7 core::f::h0123456789abcdef\n"
		  "rss 4096..8192\nallocated 999999999999999\nleaked 0\n"),
	{0},
};

static int read_all(const char *data, size_t size, struct baseline *out)
{
	char path[64], *why = NULL;
	int fd = memfd_create("baseline", 0);

	CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int rc = baseline_read(path, out, &why);

	CHECK(rc == 0 || why);
	free(why);
	close(fd);
	return rc;
}

static char *text_of(const struct baseline *b, size_t *size)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, size);

	baseline_write(f, b);
	CHECK(fclose(f) == 0);
	return text;
}

void fuzz_one(const uint8_t *data, size_t size)
{
	struct baseline b, again;
	size_t first_size, second_size;

	if (read_all((const char *)data, size, &b) != 0)
		return;
	char *first = text_of(&b, &first_size);

	CHECK(read_all(first, first_size, &again) == 0);
	char *second = text_of(&again, &second_size);

	CHECK(first_size == second_size && memcmp(first, second, first_size) == 0);
	for (enum limit_metric m = 0; m < LIMIT_METRICS; m++) {
		struct gate g = {0};

		baseline_add_growth(&b.metric[m], &b.metric[m], NULL, &g.site);
		baseline_add_changes(&b.metric[m], &b.metric[m], 10, &g.site);
		CHECK(g.site.count == 0);
		gate_deinit(&g);
	}
	free(first);
	free(second);
	baseline_deinit(&b);
	baseline_deinit(&again);
}
