/*
 * server [THREADS]: runs until told to stop: threads allocate, resize and free each other's blocks
 * and check every byte, a 1 kHz timer ticks, one thread waits in epoll_wait forever and one in
 * sigwaitinfo. The returns of these are counted: SIGCONT causes EINTR without a signal, an
 * attaching tracer must not. The threads that allocate leave the CPUs to the test, to ptmem and to
 * the thread that answers. Commands, one letter each, on standard input; each answered by one line:
 *	r  the truth so far, while running (not exact: threads continue)
 *	p  all threads park, and the truth is exact until
 *	c  they continue
 *	s  parked ones make TURN steps each, and park again
 *	l  leak one block of 1,000 bytes (by function server_leak)
 *	t  a thread is created, allocates and exits
 *	i  how often the waits returned: interrupted=N
 *	k  queue 10 signals to itself: answers how many came so far
 *	q  stop: everything is freed, the truth is printed, status 0
 * End of input is q. A failed check ends with status 90.
 */
#include "truth.h"
#include "park.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

#define SLOTS 128
#define MAX_THREADS 64
#define TURN 500

struct block {
	uint64_t size;
	unsigned char data[];
};

static struct block *shared[SLOTS];
static uint64_t thread_count;
static int must_stop;
static volatile uint64_t ticks, queued, interrupted;

static struct block *filled(struct block *b, uint64_t size)
{
	CHECK(b);
	b->size = size;
	memset(b->data, (unsigned char)(size * 7), size);
	return b;
}

static void verify(const struct block *b)
{
	for (uint64_t i = 0; i < b->size; i++)
		CHECK(b->data[i] == (unsigned char)(b->size * 7));
}

NOINLINE static void server_step(uint64_t *seed)
{
	uint64_t size = random_next(seed) % 300;
	struct block *b = NULL;

	if (random_next(seed) % 2)
		b = filled(t_malloc(sizeof(*b) + size), size);
	b = __atomic_exchange_n(&shared[random_next(seed) % SLOTS], b, __ATOMIC_ACQ_REL);
	if (!b)
		return;
	verify(b);
	if (random_next(seed) % 4 == 0) {
		b = t_realloc(b, sizeof(*b) + b->size, sizeof(*b) + size);
		b = filled(b, size);
	}
	t_free(b, sizeof(*b) + b->size);
}

static void *work(void *arg)
{
	uint64_t seed = (uintptr_t)arg * 0x9e3779b97f4a7c15ull + 99, left = 0;

	CHECK(!setpriority(PRIO_PROCESS, 0, 10)); /* of this thread */
	while (!__atomic_load_n(&must_stop, __ATOMIC_RELAXED)) {
		if (left)
			left--;
		else if (park_if_asked())
			left = TURN - 1;
		server_step(&seed);
	}
	return NULL;
}

static void *wait_in_epoll(void *arg)
{
	struct epoll_event event;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	for (;;) {
		CHECK(epoll_wait(epoll, &event, 1, -1) == -1 && errno == EINTR);
		__atomic_add_fetch(&interrupted, 1, __ATOMIC_RELAXED);
	}
	return arg;
}

static void *wait_for_signal(void *arg)
{
	sigset_t set;
	siginfo_t info;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMAX);
	for (;;) {
		CHECK(sigwaitinfo(&set, &info) == -1 && errno == EINTR);
		__atomic_add_fetch(&interrupted, 1, __ATOMIC_RELAXED);
	}
	return arg;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)info, (void)context;
	if (number == SIGALRM)
		__atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
	else
		__atomic_add_fetch(&queued, 1, __ATOMIC_RELAXED);
}

static void catch(int number)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = on_signal;
	sa.sa_flags = SA_SIGINFO | SA_RESTART;
	CHECK(!sigaction(number, &sa, NULL));
}

NOINLINE static void server_leak(void)
{
	t_malloc(1000);
	NO_TAIL_CALL();
}

static void *short_life(void *arg)
{
	for (int i = 0; i < 20; i++)
		t_free(t_malloc(40), 40);
	return arg;
}

static void answer_number(const char *label, uint64_t n)
{
	struct text t = { { 0 }, 0 };

	text_number(&t, label, n);
	text_add(&t, "\n");
	CHECK(write(STDOUT_FILENO, t.s, t.n) == (ssize_t)t.n);
}

static void queue_signals(void)
{
	static uint64_t sent;
	union sigval value = { .sival_int = 1 };

	for (int i = 0; i < 10; i++, sent++)
		CHECK(!sigqueue(getpid(), SIGRTMIN + 1, value));
	for (int i = 0; i < 100000 && queued != sent; i++) { /* any thread may get them, later */
		struct timespec t = { 0, 1000000 };

		nanosleep(&t, NULL);
	}
	answer_number("signals=", queued);
}

static void command(char c)
{
	pthread_t thread;

	if (c == 'p' || c == 'c')
		park_set(c == 'p', thread_count);
	else if (c == 's')
		park_turn(thread_count);
	else if (c == 'l')
		server_leak();
	else if (c == 't')
		CHECK(!pthread_create(&thread, NULL, short_life, NULL) && !pthread_join(thread, NULL));
	if (c == 'k')
		queue_signals();
	else if (c == 'i')
		answer_number("interrupted=", interrupted);
	else if (c != '\n')
		truth_report();
}

int main(int argc, char **argv)
{
	struct itimerval every = { { 0, 1000 }, { 0, 1000 } };
	pthread_t threads[MAX_THREADS], waiting;
	sigset_t set;
	char c;

	truth.has_threads = 1;
	thread_count = argument(argc, argv, 1, 8);
	CHECK(thread_count <= MAX_THREADS);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMAX);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	sigaddset(&set, SIGALRM);
	sigaddset(&set, SIGRTMIN + 1);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL)); /* the waiting ones are never interrupted */
	CHECK(!pthread_create(&waiting, NULL, wait_in_epoll, NULL));
	CHECK(!pthread_create(&waiting, NULL, wait_for_signal, NULL));
	sigdelset(&set, SIGRTMAX);
	CHECK(!pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	catch(SIGALRM);
	catch(SIGRTMIN + 1);
	CHECK(!setitimer(ITIMER_REAL, &every, NULL));
	for (uint64_t i = 0; i < thread_count; i++)
		CHECK(!pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1)));
	truth_report();
	while (read(STDIN_FILENO, &c, 1) == 1 && c != 'q')
		command(c);
	__atomic_store_n(&must_stop, 1, __ATOMIC_RELAXED);
	park_set(0, thread_count);
	for (uint64_t i = 0; i < thread_count; i++)
		CHECK(!pthread_join(threads[i], NULL));
	for (int i = 0; i < SLOTS; i++)
		if (shared[i])
			t_free(shared[i], sizeof(*shared[i]) + shared[i]->size);
	CHECK(ticks > 0);
	truth_report();
	return 0;
}
