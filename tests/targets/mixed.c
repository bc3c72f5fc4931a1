/*
 * mixed [SEED [OPERATIONS [DEPTH [no-valloc]]]]: every allocation function at random recursion
 * depths; contents are checked, so that a block that was touched is noticed. no-valloc: without
 * valloc and pvalloc, which jemalloc leaves to the C library.
 */
#include "descent.h"

#define SLOTS 256

struct slot {
	unsigned char *p;
	size_t size;
	unsigned char pattern;
};

static struct slot slots[SLOTS];
static uint64_t seed;
static int has_valloc;

static void fill(struct slot *s)
{
	s->pattern = (unsigned char)random_next(&seed);
	memset(s->p, s->pattern, s->size);
}

static void check(const struct slot *s, size_t size)
{
	for (size_t i = 0; i < size; i++)
		CHECK(s->p[i] == s->pattern);
}

static size_t random_size(void)
{
	uint32_t r = random_next(&seed);

	switch (r % 16) {
	case 0:
		return 0;
	case 1:
		return random_next(&seed) % 300000; /* over the mmap threshold at times */
	default:
		return r / 16 % 700;
	}
}

static void *allocate(size_t size)
{
	size_t align = (size_t)16 << random_next(&seed) % 6;

	switch (random_next(&seed) % (has_valloc ? 10 : 8)) {
	case 0:
		return t_calloc(size, 1);
	case 1:
		return t_realloc(NULL, 0, size);
	case 2:
		return t_posix_memalign(align, size);
	case 3:
		return t_aligned_alloc(align, size);
	case 4:
		return t_memalign(align, size);
	case 5:
		return t_reallocarray(NULL, 0, size, 1);
#ifndef NO_VALLOC /* musl has none */
	case 8:
		return truth_made(valloc(size), size);
	case 9:
		return truth_made(pvalloc(size), size);
#endif
	default:
		return t_malloc(size);
	}
}

static void resize(struct slot *s)
{
	size_t size = random_size(), keep = size < s->size ? size : s->size;
	void *p = t_realloc(s->p, s->size, size);

	s->p = p;
	s->size = size;
	if (!p)
		return;
	check(s, keep);
	fill(s);
}

NOINLINE static void step(void)
{
	struct slot *s = &slots[random_next(&seed) % SLOTS];

	if (!s->p) {
		s->size = random_size();
		s->p = allocate(s->size);
		CHECK(s->p);
		fill(s);
	} else if (random_next(&seed) % 3) {
		check(s, s->size);
		t_free(s->p, s->size);
		s->p = NULL;
	} else {
		resize(s);
	}
	if (random_next(&seed) % 50 == 0)
		t_free(NULL, 0);
}

int main(int argc, char **argv)
{
	uint64_t operations = argument(argc, argv, 2, 2000), depth = argument(argc, argv, 3, 40);

	has_valloc = argc <= 4;
	seed = argument(argc, argv, 1, 1) * 0x9e3779b97f4a7c15ull + 1;
	for (uint64_t i = 0; i < operations; i++)
		even((unsigned)(random_next(&seed) % (depth + 1)));
	truth_report();
	return 0;
}
