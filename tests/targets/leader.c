/* leader: main leaves with pthread_exit; its threads continue, allocate and end the process. */
#include "truth.h"

#include <pthread.h>
#include <time.h>

static void *work(void *arg)
{
	struct timespec t = { 0, 50000000 };
	void *p = t_malloc(1000 + (uintptr_t)arg);

	nanosleep(&t, NULL); /* by now the leader is gone */
	for (int i = 0; i < 200; i++)
		t_free(t_malloc(10), 10);
	p = t_realloc(p, 1000 + (uintptr_t)arg, 5000);
	t_free(p, 5000);
	t_malloc(333);
	return NULL;
}

static void *last(void *arg)
{
	pthread_t *threads = arg;

	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	truth_report();
	exit(7);
}

int main(void)
{
	static pthread_t threads[5];

	truth.has_threads = 1;
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i));
	CHECK(!pthread_create(&threads[4], NULL, last, threads));
	pthread_exit(NULL);
}
