/*
 * Allocates and frees in a steady state, without signals, new threads or system calls that
 * allocate, until standard input ends, and measures the longest time without progress, less that in
 * which a thread was ready to run but other programs had the CPUs.
 *
 *	steady THREADS
 *
 * Prints "ready" when all threads run, and "signal" some time after each SIGUSR1. Its truth has what the threads
 * allocate and free, without what the C library allocates for a thread, and pause_ms.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "truth.h"

enum { LOOK_NS = 10000000, BLOCKS = 64, SIZE = 100, THREADS_MAX = 64, ROUNDS_PER_POLL = 64, POLLS_PER_ANSWER = 32 };

static int is_ended;
static volatile sig_atomic_t polls_until_answer;
static pthread_barrier_t start;

static struct worker {
	pthread_t thread;
	uint64_t rounds, longest_ns;
	char gap[128]; /* no line is shared */
} worker[THREADS_MAX];

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void on_signal(int sig)
{
	(void)sig;
	polls_until_answer = POLLS_PER_ANSWER;
}

/* How long this thread was ready to run without a CPU; 0 if the kernel does not say. */
static uint64_t unserved_ns(int schedstat)
{
	char text[128] = { 0 };
	unsigned long long run, wait;

	return pread(schedstat, text, sizeof(text) - 1, 0) > 0 && sscanf(text, "%llu %llu", &run, &wait) == 2 ? wait : 0;
}

static NOINLINE void turn(void)
{
	void *block[BLOCKS];

	for (int i = 0; i < BLOCKS; i++) {
		block[i] = malloc(SIZE);
		__asm__ volatile("" : "+r"(block[i]) : : "memory");
	}
	for (int i = 0; i < BLOCKS; i++)
		free(block[i]);
}

static void poll_end(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	if (poll(&input, 1, 0) > 0)
		__atomic_store_n(&is_ended, 1, __ATOMIC_RELAXED);
	if (polls_until_answer && --polls_until_answer == 0)
		CHECK(write(STDOUT_FILENO, "signal\n", 7) == 7);
}

static void *run(void *arg)
{
	struct worker *w = arg;
	uint64_t last, now, seen, unserved, before;
	int schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);

	pthread_barrier_wait(&start);
	if (w == worker)
		CHECK(write(STDOUT_FILENO, "ready\n", 6) == 6);
	last = seen = now_ns();
	before = unserved_ns(schedstat);
	while (!__atomic_load_n(&is_ended, __ATOMIC_RELAXED)) {
		turn();
		now = now_ns();
		if (now - seen > LOOK_NS) {
			unserved = unserved_ns(schedstat);
			if (now - last > w->longest_ns + unserved - before)
				w->longest_ns = now - last - (unserved - before);
			seen = now = now_ns();
			before = unserved;
		}
		last = now;
		if (w == worker && w->rounds % ROUNDS_PER_POLL == 0)
			poll_end();
		w->rounds++;
	}
	return NULL;
}

static void report(int threads)
{
	uint64_t rounds = 0, longest = 0;
	struct text t = { { 0 }, 0 };

	for (int i = 0; i < threads; i++) {
		rounds += worker[i].rounds;
		if (worker[i].longest_ns > longest)
			longest = worker[i].longest_ns;
	}
	text_number(&t, "expect: allocations=", rounds * BLOCKS);
	text_number(&t, " frees=", rounds * BLOCKS);
	text_number(&t, " bytes=", rounds * BLOCKS * SIZE);
	text_number(&t, " pause_ms=", longest / 1000000);
	truth_write(&t);
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;

	CHECK(threads >= 1 && threads <= THREADS_MAX);
	signal(SIGUSR1, on_signal);
	CHECK(!pthread_barrier_init(&start, NULL, (unsigned)threads));
	for (int i = 1; i < threads; i++)
		CHECK(!pthread_create(&worker[i].thread, NULL, run, &worker[i]));
	run(&worker[0]);
	for (int i = 1; i < threads; i++)
		pthread_join(worker[i].thread, NULL);
	report(threads);
	return 0;
}
