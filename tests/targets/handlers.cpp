/*
 * handlers [SIGNALS]: signal handlers that allocate, in eight threads that allocate, too, interrupted by further ones: each thread may be
 * anywhere in operator new[] or delete[], or in a pad of theirs. The heap is this program's own, for which that is safe.
 *
 * Prints "allocations=N frees=N": what it counted in malloc, calloc and free. No stdio: that would allocate.
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define THREADS 8
#define MAX_DEPTH 3
#define HEAP_SIZE (64ul << 20)

#define PLACES 64
#define PLACE_SIZE 512
#define LEAKED 50

/* Each thread reuses its own places. What is never freed, or not its own, comes from the heap, which has room for all of it. */
alignas(16) static char heap[HEAP_SIZE], place[THREADS][PLACES][PLACE_SIZE];
static unsigned long used, allocations, frees, taken[THREADS];
static int is_over;
static __thread int depth, number; /* 0: the first thread */

static void *take(size_t size)
{
	__atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
	while (number > 0 && size <= PLACE_SIZE && size != LEAKED) {
		unsigned long *t = &taken[number - 1];
		int i = __builtin_ctzl(~*(volatile unsigned long *)t);
		if (!(__atomic_fetch_or(t, 1ul << i, __ATOMIC_RELAXED) >> i & 1))
			return place[number - 1][i];
	}
	unsigned long at = __atomic_fetch_add(&used, (size + 15) & ~15ul, __ATOMIC_RELAXED);
	if (at + size > HEAP_SIZE)
		abort();
	return heap + at;
}

extern "C" void *malloc(size_t size) { return take(size); }

extern "C" void *calloc(size_t count, size_t size) { return memset(take(count * size), 0, count * size); }

extern "C" void *realloc(void *, size_t) { abort(); }

extern "C" void free(void *block)
{
	size_t i = ((char *)block - &place[0][0][0]) / PLACE_SIZE;

	if (block)
		__atomic_add_fetch(&frees, 1, __ATOMIC_RELAXED);
	if ((char *)block >= &place[0][0][0] && i < THREADS * PLACES)
		__atomic_fetch_and(&taken[i / PLACES], ~(1ul << i % PLACES), __ATOMIC_RELAXED);
}

/* The compiler does not know what becomes of @block. */
static void *keep(void *block)
{
	__asm__ volatile("" : "+r"(block) : : "memory");
	return block;
}

static void allocate(size_t size)
{
	operator delete[](keep(operator new[](size)));
}

static void handle(int)
{
	if (depth++ < MAX_DEPTH) {
		allocate(100);
		keep(operator new[](LEAKED)); /* the last one is no delete: the kind of the interrupted call differs */
	}
	depth--;
}

static void *run(void *own_number)
{
	number = *(int *)own_number;
	for (size_t i = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); i++)
		allocate(51 + i % 300);
	return nullptr;
}

int main(int argc, char **argv)
{
	int signals = argc > 1 ? atoi(argv[1]) : 6000;
	pthread_t thread[THREADS];
	int numbers[THREADS];
	struct sigaction action = {};
	char text[100];

	action.sa_handler = handle;
	action.sa_flags = SA_NODEFER;
	sigaction(SIGUSR1, &action, nullptr);
	sigaction(SIGUSR2, &action, nullptr);
	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i + 1;
		pthread_create(&thread[i], nullptr, run, &numbers[i]);
	}
	for (int i = 0; i < signals; i++) {
		pthread_kill(thread[i % THREADS], i % 3 ? SIGUSR1 : SIGUSR2);
		if (i % 4 == 3)
			usleep(50);
	}
	__atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
	for (pthread_t t : thread)
		pthread_join(t, nullptr);
	int size = snprintf(text, sizeof(text), "allocations=%lu frees=%lu\n", allocations, frees);
	_exit(write(STDOUT_FILENO, text, size) == size ? 0 : 1);
}
