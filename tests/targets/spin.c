/* spin THREADS: threads that compute forever, and allocate once a second each. For make bench. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static void *volatile sink;

static void *spin(void *arg)
{
	time_t last = 0;

	for (;;) {
		time_t now = time(NULL);
		if (now == last)
			continue;
		last = now;
		sink = malloc(100);
		free(sink);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	for (long i = argc > 1 ? atol(argv[1]) : 1; i > 1; i--)
		pthread_create(&thread, NULL, spin, NULL);
	spin(NULL);
	return 0;
}
