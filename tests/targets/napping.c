/* Two threads that allocate, and sleep in between, until standard input ends. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void *work(void *arg)
{
	const struct timespec pause = { 0, 500000 };

	(void)arg;
	for (;;) {
		for (int i = 0; i < 20; i++) {
			void *volatile p = malloc((size_t)(i + 1));

			free(p);
		}
		nanosleep(&pause, NULL);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[2];
	char letter;

	for (int i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, work, NULL) != 0)
			return 2;
	return read(STDIN_FILENO, &letter, 1) != 0;
}
