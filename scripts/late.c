/*
 * How late a thread of a program wakes up, measured inside it: what stops the program stops the thread. Preloaded into
 * a program, it sleeps for a millisecond over and over, and counts each delay in the file that LATE_FILE names: 64
 * numbers of 8 bytes, by the logarithm of the delay in microseconds, then the longest delay since the file was cleared.
 * It has real-time priority if that is permitted, so that it need not wait for a CPU.
 *
 *	cc -shared -fPIC -O2 -pthread -o late.so scripts/late.c
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 64 };

struct delays {
	uint64_t count[BUCKETS], longest;
};

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void *measure(void *file)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct delays *d = file;

	for (;;) {
		uint64_t start = now_us(), late, bucket = 0;

		nanosleep(&pause, NULL);
		late = now_us() - start - 1000;
		while (bucket + 1 < BUCKETS && late >> bucket)
			bucket++;
		d->count[bucket]++;
		if (late > d->longest)
			d->longest = late;
	}
	return NULL;
}

__attribute__((constructor)) static void start(void)
{
	const char *name = getenv("LATE_FILE");
	int fd = name ? open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	const struct sched_param priority = {.sched_priority = 1};
	pthread_t thread;

	if (fd < 0 || ftruncate(fd, sizeof(struct delays)) != 0)
		return;
	void *file = mmap(NULL, sizeof(struct delays), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	if (file == MAP_FAILED || pthread_create(&thread, NULL, measure, file) != 0)
		return;
	pthread_setschedparam(thread, SCHED_FIFO, &priority);
	pthread_detach(thread);
}
