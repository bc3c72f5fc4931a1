/*
 * contention THREADS [PAIRS [SLEEPERS [wait]]]: all threads become ready to run at the same time; each makes PAIRS
 * blocks in turn and resizes and frees them. Far more of them are ready than there are CPUs, so
 * many are preempted for a long time while writing a record. Meanwhile SLEEPERS threads sleep in a
 * signal handler, which interrupted them anywhere.
 *
 * wait: "ready" is written once all threads exist, and they start when standard input ends.
 */
#include "truth.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

#define MOST 4096

static pthread_barrier_t start;
static pthread_t threads[MOST], sleepers[MOST];
static uint64_t pairs;
static sem_t asleep;
static volatile int is_over;

NOINLINE static void make_block(uint64_t size)
{
	void *p = t_malloc(size);

	if (size % 8 == 0) {
		p = t_realloc(p, size, size * 2);
		size *= 2;
	}
	t_free(p, size);
}

static void *run(void *arg)
{
	pthread_barrier_wait(&start);
	for (uint64_t i = 0; i < pairs; i++)
		make_block(16 + ((uintptr_t)arg + i) % 200);
	return NULL;
}

static void on_sleep(int sig)
{
	sigset_t all;
	int saved = errno;

	(void)sig;
	sigfillset(&all);
	sigdelset(&all, SIGUSR2);
	sem_post(&asleep);
	while (!is_over)
		sigsuspend(&all);
	errno = saved;
}

static void on_wake(int sig)
{
	(void)sig;
}

static void *run_until_over(void *arg)
{
	for (uint64_t i = 0; !is_over; i++)
		make_block(16 + ((uintptr_t)arg + i) % 200);
	return NULL;
}

static void make_sleepers(uint64_t n)
{
	struct sigaction sleep = { .sa_handler = on_sleep }, wake = { .sa_handler = on_wake };

	sigfillset(&sleep.sa_mask);
	sigaction(SIGUSR1, &sleep, NULL);
	sigaction(SIGUSR2, &wake, NULL);
	sem_init(&asleep, 0, 0);
	for (uint64_t i = 0; i < n; i++)
		CHECK(!pthread_create(&sleepers[i], NULL, run_until_over, (void *)i));
	for (uint64_t i = 0; i < n; i++)
		pthread_kill(sleepers[i], SIGUSR1);
	for (uint64_t i = 0; i < n; i++)
		while (sem_wait(&asleep) != 0)
			;
}

static void wait_for_input(void)
{
	char c = 0;

	CHECK(write(STDOUT_FILENO, "ready\n", 6) == 6);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
}

int main(int argc, char **argv)
{
	uint64_t n = argument(argc, argv, 1, 1000), i, sleeping = argument(argc, argv, 3, 0);
	pthread_attr_t attr;

	CHECK(n <= MOST && sleeping <= MOST);
	pairs = argument(argc, argv, 2, 100);
	truth.has_threads = 1;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 * 1024);
	pthread_barrier_init(&start, NULL, (unsigned)n + 1);
	make_sleepers(sleeping);
	for (i = 0; i < n; i++)
		CHECK(!pthread_create(&threads[i], &attr, run, (void *)(uintptr_t)i));
	if (argc > 4)
		wait_for_input();
	pthread_barrier_wait(&start);
	for (i = 0; i < n; i++)
		CHECK(!pthread_join(threads[i], NULL));
	is_over = 1;
	for (i = 0; i < sleeping; i++)
		pthread_kill(sleepers[i], SIGUSR2);
	for (i = 0; i < sleeping; i++)
		CHECK(!pthread_join(sleepers[i], NULL));
	truth_report();
	return 0;
}
