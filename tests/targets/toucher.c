/*
 * toucher MIB: holds that many MiB in small blocks, and a large one, and touches some of them again
 * and again, until its input ends: reads, and writes to some. For each byte of input it touches all
 * of these once more and prints "touched". First it prints a line "ADDRESS SIZE FIRST STEP" for each
 * block: it touches its bytes at FIRST, FIRST + STEP...; STEP 0: none of it. Then "ready". Blocks
 * come in GROUP neighbours: of a third of the groups none are touched, of others some, in turn or
 * at random.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	FIRST = 37,
	LAST = 1733,
	GROUP = 40,
	LARGE = 24 << 20,
	LARGE_STEP = 5 * 4096,
	MS = 5,
};

struct block {
	unsigned char *at;
	uint32_t size, first, step;
};

static uint32_t seed = 1;

static uint32_t pick(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

static void touch(const struct block *b, size_t i)
{
	for (uint32_t at = b->first; b->step && at < b->size; at += b->step) {
		volatile unsigned char *p = b->at + at;
		unsigned char c = *p;

		if (i % 4 == 0)
			*p = (unsigned char)(c + 1);
	}
}

static void make(struct block *b, size_t i)
{
	size_t group = i / GROUP;
	int is_touched = group % 3 == 2 ? i % 2 == 0 : group % 3 == 1 && pick(3) == 0;

	b->size = FIRST + pick(LAST - FIRST);
	b->at = malloc(b->size);
	if (!b->at)
		exit(2);
	memset(b->at, 1, b->size);
	b->step = is_touched ? 64 : 0;
}

int main(int argc, char **argv)
{
	size_t count = argc == 2 ? ((size_t)atol(argv[1]) << 20) / ((FIRST + LAST) / 2) : 0;
	/* not among the blocks, whose pages are counted */
	struct block *block = mmap(NULL, (count + 1) * sizeof(*block), PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pollfd input = {.fd = 0, .events = POLLIN};

	if (!count || block == MAP_FAILED)
		return 2;
	for (size_t i = 0; i < count; i++)
		make(&block[i], i);
	block[count] = (struct block){malloc(LARGE), LARGE, 4096, LARGE_STEP};
	if (!block[count].at)
		return 2;
	madvise((void *)((uintptr_t)block[count].at & ~(uintptr_t)4095), LARGE, MADV_NOHUGEPAGE);
	memset(block[count].at, 1, LARGE);
	for (size_t i = 0; i <= count; i++)
		printf("%p %u %u %u\n", (void *)block[i].at, block[i].size, block[i].first, block[i].step);
	puts("ready");
	fflush(stdout);
	for (;;) {
		int n = poll(&input, 1, MS);
		char byte;

		if (n < 0 || (n > 0 && read(0, &byte, 1) != 1))
			return n < 0 ? 2 : 0;
		for (size_t i = 0; i <= count; i++)
			touch(&block[i], i);
		if (n > 0) {
			puts("touched");
			fflush(stdout);
		}
	}
}
