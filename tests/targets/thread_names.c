/*
 * thread_names THREADS: each thread gives itself the name "short-N", allocates 1000 * (N + 1) bytes
 * and ends, one after the other; the first thread ends with the name "renamed".
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

static void *volatile kept;

static void *run(void *number)
{
	char name[16];

	snprintf(name, sizeof(name), "short-%d", (int)(intptr_t)number);
	prctl(PR_SET_NAME, name);
	kept = malloc(1000 * ((size_t)(intptr_t)number + 1));
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 10;

	for (int i = 0; i < threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, run, (void *)(intptr_t)i) != 0)
			return 1;
		pthread_join(thread, NULL);
	}
	prctl(PR_SET_NAME, "renamed");
	kept = malloc(7);
	return 0;
}
