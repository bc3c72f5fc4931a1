/*
 * unmapper: removes all shared mappings from its address space, none of which are its own, as
 * sandboxes and checkpointers do, and continues allocating.
 *
 *	unmapper munmap|mprotect [THREADS]
 */
#include "truth.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

#define ROUNDS 5
#define BLOCKS 3000

static const char *way;

static void take_away(char *line)
{
	unsigned long start, stop;
	char rights[8];
	if (sscanf(line, "%lx-%lx %7s", &start, &stop, rights) != 3 || rights[3] != 's')
		return;
	if (!strcmp(way, "munmap"))
		CHECK(munmap((void *)start, stop - start) == 0);
	else
		CHECK(mprotect((void *)start, stop - start, PROT_NONE) == 0);
}

/* Without a call of malloc. */
static void take_all_away(void)
{
	static char text[1 << 20];
	size_t used = 0;
	ssize_t n;
	int fd = open("/proc/self/maps", O_RDONLY);
	CHECK(fd >= 0);
	while ((n = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	CHECK(n == 0 && close(fd) == 0);
	text[used] = '\0';
	for (char *line = text, *next; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		take_away(line);
	}
}

static void allocate(void)
{
	void *p[10] = {0};
	for (unsigned i = 0; i < BLOCKS; i++) {
		t_free(p[i % 10], p[i % 10] ? 100 : 0);
		p[i % 10] = t_malloc(100);
	}
	for (unsigned i = 0; i < 10; i++)
		t_free(p[i], 100);
}

static void *work(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++)
		allocate();
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t threads = argument(argc, argv, 2, 0);
	pthread_t thread[8];
	CHECK(argc > 1 && threads <= 8);
	way = argv[1];
	truth.has_threads = threads > 0;
	allocate();
	for (uint64_t i = 0; i < threads; i++)
		CHECK(pthread_create(&thread[i], NULL, work, NULL) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		take_all_away();
		allocate();
	}
	for (uint64_t i = 0; i < threads; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	truth_report();
	return 0;
}
