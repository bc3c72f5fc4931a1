/*
 * leaderless: main ends by pthread_exit; a thread waits for that, and for the end of its input.
 *
 * expect: the first line is "ready THREAD BLOCKS": the id of the thread, and how many blocks of
 * BLOCK bytes are live.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCKS 1000
#define BLOCK 1000

char *held[BLOCKS];

static void *work(void *first)
{
	char text[64], letter;

	pthread_join(*(pthread_t *)first, NULL);
	int size = snprintf(text, sizeof(text), "ready %d %d\n", (int)gettid(), BLOCKS);

	if (write(STDOUT_FILENO, text, (size_t)size) != size)
		_exit(1);
	while (read(STDIN_FILENO, &letter, 1) == 1)
		;
	_exit(0);
}

int main(void)
{
	static pthread_t first, thread;

	first = pthread_self();
	for (int i = 0; i < BLOCKS; i++)
		held[i] = memset(malloc(BLOCK), 1, BLOCK);
	if (pthread_create(&thread, NULL, work, &first) != 0)
		return 90;
	pthread_exit(NULL);
}
