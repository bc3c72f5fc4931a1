/*
 * threads_many alive N: N threads alive at once, each allocates, all are released together.
 * threads_many quick N: N threads, one after the other in waves of 4, each lives for a few calls;
 *	their exits free what the thread cache holds.
 */
#include "truth.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint64_t arrived, wanted;

static void wait_for_all(void)
{
	pthread_mutex_lock(&mutex);
	if (++arrived == wanted)
		pthread_cond_broadcast(&changed);
	while (arrived < wanted)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
}

NOINLINE static void use(uint64_t i)
{
	void *blocks[12];

	for (int k = 0; k < 12; k++)
		blocks[k] = t_malloc(24 + i % 100);
	for (int k = 0; k < 12; k++)
		t_free(blocks[k], 24 + i % 100);
}

static void *live(void *arg)
{
	uint64_t size = 100 + (uintptr_t)arg;
	void *p = t_malloc(size);

	wait_for_all();
	p = t_realloc(p, size, size * 2);
	use((uintptr_t)arg);
	t_free(p, size * 2);
	return NULL;
}

static void *quick(void *arg)
{
	use((uintptr_t)arg);
	if ((uintptr_t)arg % 10 == 0)
		t_malloc(77); /* left behind */
	return NULL;
}

static void run(void *(*fn)(void *), uint64_t n, uint64_t wave)
{
	static pthread_t threads[4096];
	pthread_attr_t attr;
	uint64_t i, k;

	CHECK(n <= 4096);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 * 1024);
	for (i = 0; i < n; i += wave) {
		for (k = i; k < i + wave && k < n; k++)
			CHECK(!pthread_create(&threads[k], &attr, fn, (void *)(uintptr_t)k));
		for (k = i; k < i + wave && k < n; k++)
			CHECK(!pthread_join(threads[k], NULL));
	}
	pthread_attr_destroy(&attr);
}

int main(int argc, char **argv)
{
	uint64_t n = argument(argc, argv, 2, 1000);

	CHECK(argc > 1);
	truth.has_threads = 1;
	wanted = n;
	if (!strcmp(argv[1], "alive"))
		run(live, n, n);
	else
		run(quick, n, 4);
	truth_report();
	return 0;
}
