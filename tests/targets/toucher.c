/*
 * toucher MIB: holds that many MiB in small blocks, and a large one, and touches some of them again
 * and again, until its input ends: reads, and writes to some. For each byte of input it touches all
 * of these once more and prints "touched". First it prints a line "ADDRESS SIZE FIRST STEP" for each
 * block: it touches its bytes at FIRST, FIRST + STEP...; STEP 0: none of it. Then "ready". Blocks
 * come in GROUP neighbours: of a third of the groups none are touched, of others some, in turn or
 * at random. A quarter of the large block is left out of core files (MADV_DONTDUMP), another is
 * advised to be read at random.
 *
 * toucher MIB huge: the large block is in huge pages, of which it touches every second one; if not
 * all of them are there it prints "none" instead of "ready".
 * toucher MIB sparse: the large block has a mapping of its own, and only what is touched was ever
 * written to: two pages.
 * toucher MIB LEFT: first it makes so many other mappings that it may have LEFT more.
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
	HUGE_SIZE = 2 << 20,
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

/* Neighbours that the kernel does not join. */
static void use_mappings(long left)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "r");
	long most = 0, now = 0;
	char line[4096];

	if (!f || fscanf(f, "%ld", &most) != 1)
		exit(2);
	fclose(f);
	f = fopen("/proc/self/maps", "r");
	while (f && fgets(line, sizeof(line), f))
		now++;
	if (!f || most - left <= now)
		exit(2);
	fclose(f);
	size_t pages = (size_t)(most - left - now);
	char *at = mmap(NULL, pages * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 1; at != MAP_FAILED && i < pages; i += 2)
		if (mprotect(at + i * 4096, 4096, PROT_READ) != 0)
			exit(2);
}

/*
 * Whether the kernel gave all huge pages that [@at, @at + LARGE) has room for: where memory is in
 * pieces, there may be some.
 */
static int is_huge(uintptr_t at)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	uintptr_t from = (at + 4095) & ~(uintptr_t)4095, to = from + LARGE - 8192; /* as advised */
	unsigned long start, end, kib = 0, found = 0;
	char line[4096];
	int is_in = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			is_in = start < at + LARGE && end > at;
		else if (is_in && sscanf(line, "AnonHugePages: %lu", &kib) == 1)
			found += kib;
	}
	if (f)
		fclose(f);
	from = (from + HUGE_SIZE - 1) / HUGE_SIZE;
	return found >= (to / HUGE_SIZE - from) * (HUGE_SIZE / 1024);
}

static struct block make_large(int wants_huge)
{
	struct block b = {malloc(LARGE), LARGE, 4096, LARGE_STEP};
	uintptr_t start = ((uintptr_t)b.at + 4095) & ~(uintptr_t)4095;

	if (!b.at)
		exit(2);
	if (wants_huge) {
		uintptr_t first = ((uintptr_t)b.at + HUGE_SIZE - 1) & ~(uintptr_t)(HUGE_SIZE - 1);

		b.first = (uint32_t)(first - (uintptr_t)b.at) + 4096;
		b.step = 2 * HUGE_SIZE;
		madvise((void *)start, LARGE - 8192, MADV_HUGEPAGE);
	} else {
		madvise((void *)((uintptr_t)b.at & ~(uintptr_t)4095), LARGE, MADV_NOHUGEPAGE);
	}
	memset(b.at, 1, LARGE);
	if (!wants_huge) {
		madvise((void *)start, LARGE / 4, MADV_DONTDUMP);
		madvise((void *)(start + LARGE / 2), LARGE / 4, MADV_RANDOM);
	}
	return b;
}

/* Its header is on the first page. */
static struct block make_sparse(void)
{
	struct block b = {malloc(LARGE), LARGE, 16, LARGE / 2};

	if (!b.at || madvise((void *)((uintptr_t)b.at & ~(uintptr_t)4095), LARGE, MADV_DONTDUMP) != 0)
		exit(2);
	madvise((void *)((uintptr_t)b.at & ~(uintptr_t)4095), LARGE, MADV_NOHUGEPAGE);
	return b;
}

int main(int argc, char **argv)
{
	int is_sparse = argc == 3 && strcmp(argv[2], "sparse") == 0;
	int wants_huge = argc == 3 && strcmp(argv[2], "huge") == 0;
	size_t count = argc >= 2 ? ((size_t)atol(argv[1]) << 20) / ((FIRST + LAST) / 2) : 0;
	/* not among the blocks, whose pages are counted */
	struct block *block = mmap(NULL, (count + 1) * sizeof(*block), PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pollfd input = {.fd = 0, .events = POLLIN};

	if (!count || block == MAP_FAILED)
		return 2;
	for (size_t i = 0; i < count; i++)
		make(&block[i], i);
	block[count] = is_sparse ? make_sparse() : make_large(wants_huge);
	if (argc == 3 && !wants_huge && !is_sparse)
		use_mappings(atol(argv[2]));
	for (size_t i = 0; i <= count; i++)
		printf("%p %u %u %u\n", (void *)block[i].at, block[i].size, block[i].first, block[i].step);
	puts(wants_huge && !is_huge((uintptr_t)block[count].at) ? "none" : "ready");
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
