/*
 * peer [SEED [OPERATIONS]]: the same under every allocator. Sizes are multiples of 32 less at most
 * 15, so that a payload is a multiple of 32: Valgrind's allocator leaves a remainder below 32 with
 * the block (doc/massif.md 2.5), and so has none. No alignment, nothing fails.
 */
#include "descent.h"

#define SLOTS 200

static uint64_t seed;
static void *slots[SLOTS];

static size_t random_size(void)
{
	uint32_t r = random_next(&seed);

	return 32 * (1 + r / 16 % 90) - r % 16;
}

NOINLINE static void *leaf_one(size_t size)
{
	void *p = malloc(size);

	NO_TAIL_CALL();
	return p;
}

NOINLINE static void *leaf_two(size_t size)
{
	void *p = calloc(size, 1);

	NO_TAIL_CALL();
	return p;
}

NOINLINE static void step(void)
{
	unsigned i = random_next(&seed) % SLOTS;
	size_t size = random_size();

	if (!slots[i]) {
		slots[i] = random_next(&seed) % 2 ? leaf_one(size) : leaf_two(size);
	} else if (random_next(&seed) % 3 == 0) {
		slots[i] = realloc(slots[i], size);
	} else {
		free(slots[i]);
		slots[i] = NULL;
	}
	NO_TAIL_CALL();
}

int main(int argc, char **argv)
{
	uint64_t operations = argument(argc, argv, 2, 2000);

	seed = argument(argc, argv, 1, 1) * 0x9e3779b97f4a7c15ull + 1;
	for (uint64_t i = 0; i < operations; i++)
		even(random_next(&seed) % 12);
	for (int i = 0; i < SLOTS; i += 2) {
		free(slots[i]);
		slots[i] = NULL;
	}
	return 0;
}
