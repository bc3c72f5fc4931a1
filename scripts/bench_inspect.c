/*
 * Programs for scripts/bench_inspect.
 *
 *	bench_inspect hold THREADS SMALLEST LARGEST MIB
 *		So many threads, each with an arena of its own, allocate blocks of SMALLEST to LARGEST bytes, MIB
 *		in all, and free one in four. Prints the number of blocks in use. Another thread reads the clock over and
 *		over. Each line of standard input is answered by the longest time in nanoseconds between two
 *		of these readings since the last answer, which is how long the program was stopped.
 *	bench_inspect run FILE COMMAND...
 *		Runs the command; its time in nanoseconds and its peak of memory in bytes go to FILE.
 *
 *	cc -O2 -pthread -o bench_inspect scripts/bench_inspect.c
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_uint_fast64_t longest, readings, blocks;
static unsigned long smallest, largest, bytes;
static pthread_barrier_t is_ready;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *watch(void *unused)
{
	for (uint64_t last = now_ns(), now;; last = now) {
		now = now_ns();
		if (now - last > atomic_load(&longest))
			atomic_store(&longest, now - last);
		atomic_fetch_add(&readings, 1);
	}
	return unused;
}

static uint64_t random_of(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return *state >> 33;
}

/* Zeros, text, pointers, numbers. */
static void fill(char *block, unsigned long size, void *other, uint64_t number)
{
	static const char text[] = "/usr/share/some/directory/with/a/file/of/a/long/name";

	memset(block, number % 4 == 3 ? (int)number : 0, size);
	if (number % 4 == 1)
		memcpy(block, text, size < sizeof(text) ? size : sizeof(text));
	if (number % 4 == 2)
		for (unsigned long i = 0; i + sizeof(other) <= size && i < 64; i += sizeof(other))
			memcpy(block + i, &other, sizeof(other));
}

static void *allocate(void *seed)
{
	uint64_t state = (uintptr_t)seed, count = 0;
	void *other = NULL, *last = NULL;

	for (unsigned long sum = 0; sum < bytes; count++) {
		/* small ones are more frequent */
		unsigned long range = largest - smallest + 1, shift = random_of(&state) % 4;
		unsigned long size = smallest + random_of(&state) % (range >> shift ? range >> shift : 1);
		char *block = malloc(size);

		if (!block)
			abort();
		fill(block, size, other, count);
		sum += size;
		if (count % 4 == 3)
			free(last);
		else
			other = block;
		last = block;
	}
	atomic_fetch_add(&blocks, count - count / 4);
	pthread_barrier_wait(&is_ready);
	while (seed)
		pause();
	return NULL;
}

/* After a stop the other thread may not have run yet. */
static uint64_t take_longest(void)
{
	uint64_t before = atomic_load(&readings);

	while (atomic_load(&readings) < before + 2)
		;
	return atomic_exchange(&longest, 0);
}

static int hold(char **arg)
{
	unsigned long threads = strtoul(arg[0], NULL, 10);
	char line[64];
	pthread_t t;

	smallest = strtoul(arg[1], NULL, 10);
	largest = strtoul(arg[2], NULL, 10);
	bytes = (strtoul(arg[3], NULL, 10) << 20) / threads;
	pthread_barrier_init(&is_ready, NULL, (unsigned)threads);
	for (uintptr_t i = 1; i < threads; i++)
		pthread_create(&t, NULL, allocate, (void *)i);
	allocate(NULL);
	pthread_create(&t, NULL, watch, NULL);
	printf("%llu\n", (unsigned long long)blocks);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		printf("%llu\n", (unsigned long long)take_longest());
		fflush(stdout);
	}
	return 0;
}

static int run(char **arg)
{
	uint64_t begin = now_ns();
	struct rusage used;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execvp(arg[1], arg + 1);
		_exit(127);
	}
	if (wait4(pid, &status, 0, &used) != pid || status != 0)
		return 1;
	uint64_t end = now_ns();
	FILE *file = fopen(arg[0], "w");

	if (!file)
		return 1;
	fprintf(file, "%llu %llu\n", (unsigned long long)(end - begin), (unsigned long long)used.ru_maxrss * 1024);
	return fclose(file) != 0;
}

int main(int argc, char **argv)
{
	if (argc == 6 && strcmp(argv[1], "hold") == 0)
		return hold(argv + 2);
	if (argc > 3 && strcmp(argv[1], "run") == 0)
		return run(argv + 2);
	return 2;
}
