/*
 * threads [THREADS [OPERATIONS]]: blocks travel through one shared array and are freed or
 * resized by whichever thread takes them; contents are checked.
 */
#include "truth.h"

#include <pthread.h>

#define SLOTS 64

struct block {
	uint64_t size;
	unsigned char data[];
};

static struct block *shared[SLOTS];
static uint64_t operations;

static unsigned char mark(const struct block *b)
{
	return (unsigned char)(b->size * 7);
}

static void verify(const struct block *b, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		CHECK(b->data[i] == (unsigned char)(size * 7));
}

static struct block *filled(struct block *b, uint64_t size)
{
	CHECK(b);
	b->size = size;
	memset(b->data, mark(b), size);
	return b;
}

static struct block *resized(struct block *b, uint64_t size)
{
	uint64_t old = b->size;

	b = t_realloc(b, sizeof(*b) + old, sizeof(*b) + size);
	CHECK(b);
	for (uint64_t i = 0; i < (size < old ? size : old); i++)
		CHECK(b->data[i] == (unsigned char)(old * 7));
	return filled(b, size);
}

NOINLINE static void step(uint64_t *seed)
{
	unsigned i = random_next(seed) % SLOTS;
	uint64_t size = random_next(seed) % 400;
	struct block *b = NULL;

	if (random_next(seed) % 2)
		b = filled(t_malloc(sizeof(*b) + size), size);
	b = __atomic_exchange_n(&shared[i], b, __ATOMIC_ACQ_REL);
	if (!b)
		return;
	verify(b, b->size);
	if (random_next(seed) % 4 == 0)
		b = resized(b, size * 2);
	t_free(b, sizeof(*b) + b->size);
}

static void *run(void *arg)
{
	uint64_t seed = (uintptr_t)arg * 0x9e3779b97f4a7c15ull + 12345;

	for (uint64_t i = 0; i < operations; i++)
		step(&seed);
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t i, n = argument(argc, argv, 1, 8);
	pthread_t threads[64];

	truth.has_threads = 1;
	operations = argument(argc, argv, 2, 1000);
	CHECK(n <= 64);
	for (i = 0; i < n; i++)
		CHECK(!pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)(i + 1)));
	for (i = 0; i < n; i++)
		CHECK(!pthread_join(threads[i], NULL));
	truth_report();
	return 0;
}
