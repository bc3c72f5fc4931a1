/*
 * Makes heaps of mimalloc's; with an argument (mimalloc 3) another thread has blocks in the last
 * one, too. One of them is destroyed, with its blocks. Prints how many blocks there are before and after, and waits for input each time.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAPS 3
#define BLOCKS 150

static void *(*heap_new)(void), *(*heap_malloc)(void *heap, size_t size);
static void (*heap_destroy)(void *heap);
static void *heap[HEAPS];

static void fill(void *of)
{
	for (size_t i = 0; i < BLOCKS; i++)
		memset(heap_malloc(of, 10 + i * 97 % 3000), 1, 8);
}

static void *work(void *arg)
{
	fill(arg);
	return NULL;
}

static void answer(unsigned blocks)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%u\n", blocks);

	if (write(STDOUT_FILENO, text, (size_t)n) != n || read(STDIN_FILENO, text, 1) != 1)
		_exit(0);
}

static void run_thread(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	pthread_create(&thread, NULL, fn, arg);
	pthread_join(thread, NULL);
}

static void *nothing(void *arg)
{
	return arg;
}

int main(int argc, char **argv)
{
	(void)argv;
	*(void **)&heap_new = dlsym(RTLD_DEFAULT, "mi_heap_new");
	*(void **)&heap_malloc = dlsym(RTLD_DEFAULT, "mi_heap_malloc");
	*(void **)&heap_destroy = dlsym(RTLD_DEFAULT, "mi_heap_destroy");
	run_thread(nothing, NULL); /* libc keeps its stack, and what it needs for that */
	answer(0);
	for (size_t i = 0; i < HEAPS; i++)
		fill(heap[i] = heap_new());
	if (argc > 1)
		run_thread(work, heap[HEAPS - 1]);
	unsigned blocks = BLOCKS * (HEAPS + (argc > 1));

	answer(blocks);
	heap_destroy(heap[1]);
	answer(blocks - BLOCKS);
	return 0;
}
