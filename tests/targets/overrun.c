/*
 * Writes past blocks, as the first argument says, then "ready"; ends at the end of its input:
 *
 *	none            not at all
 *	memset          over 120 bytes of its last block of 100: also the header behind it
 *	top SIZE        the header of the top chunk is SIZE
 *	thread SIZE     the same in a thread's arena
 *	apart SIZE      the same in memory from mmap, since the program break cannot be moved
 *	block SIZE      the header of a block in the middle is SIZE
 *	nodes           5000 blocks that begin with an address whose bytes are "AAAAAA"
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCKS 1000

static char *held[BLOCKS];
static void *nodes[5000];
static pthread_barrier_t is_ready;

static void make_blocks(void)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		held[i] = malloc(100);
		memset(held[i], 1, 100);
	}
}

static void *work(void *arg)
{
	make_blocks();
	*(size_t *)(held[BLOCKS - 1] + malloc_usable_size(held[BLOCKS - 1])) =
		*(const size_t *)arg;
	pthread_barrier_wait(&is_ready);
	for (;;)
		pause();
	return NULL;
}

/* Takes the pages where the heap would grow, and the rest of the heap. */
static void end_brk(void)
{
	char *p = malloc(1000), *end = sbrk(0);

	if (mmap(end, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		 0) != end)
		_exit(2);
	while (p < end && p > end - (1 << 20))
		p = malloc(1000);
}

static void make_nodes(void)
{
	char *page = (char *)0x414141414000;

	if (mmap(page, 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != page)
		_exit(2);
	*page = 1;
	for (size_t i = 0; i < 5000; i++) {
		uintptr_t *node = malloc(24);

		node[0] = (uintptr_t)page + 0x141;
		node[1] = node[2] = 7;
		nodes[i] = node;
	}
}

int main(int argc, char **argv)
{
	const char *what = argv[1];
	size_t size = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
	pthread_t thread;
	char letter;

	pthread_barrier_init(&is_ready, NULL, 2);
	if (strcmp(what, "thread") == 0) {
		pthread_create(&thread, NULL, work, &size);
		pthread_barrier_wait(&is_ready);
	} else {
		if (strcmp(what, "apart") == 0)
			end_brk();
		make_blocks();
	}
	if (strcmp(what, "nodes") == 0)
		make_nodes();
	else if (strcmp(what, "memset") == 0)
		for (volatile char *p = held[BLOCKS - 1]; p < held[BLOCKS - 1] + 120; p++)
			*p = 'A';
	else if (size > 0 && (strcmp(what, "top") == 0 || strcmp(what, "apart") == 0))
		*(size_t *)(held[BLOCKS - 1] + malloc_usable_size(held[BLOCKS - 1])) = size;
	else if (strcmp(what, "block") == 0)
		((size_t *)held[BLOCKS / 2])[-1] = size;
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		_exit(1);
	_exit(read(STDIN_FILENO, &letter, 1) != 0);
}
