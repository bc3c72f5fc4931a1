/*
 * Signal handlers that allocate, in eight threads that allocate, too, interrupted by further ones: each thread may be
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
#define SIGNALS 6000
#define MAX_DEPTH 3
#define HEAP_SIZE (64ul << 20)

/* Blocks of threads live shortly: long before the heap begins again at its start. */
alignas(16) static char heap[HEAP_SIZE + (1 << 20)];
static unsigned long used, allocations, frees;
static int is_over;
static __thread int depth;

static void *take(size_t size)
{
	unsigned long at = __atomic_fetch_add(&used, (size + 15) & ~15ul, __ATOMIC_RELAXED);

	__atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
	return heap + at % HEAP_SIZE;
}

extern "C" void *malloc(size_t size) { return take(size); }

extern "C" void *calloc(size_t count, size_t size) { return memset(take(count * size), 0, count * size); }

extern "C" void *realloc(void *, size_t) { abort(); }

extern "C" void free(void *block)
{
	if (block)
		__atomic_add_fetch(&frees, 1, __ATOMIC_RELAXED);
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
		keep(operator new[](50)); /* the last one is no delete: the kind of the interrupted call differs */
	}
	depth--;
}

static void *run(void *)
{
	for (size_t i = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); i++)
		allocate(1 + i % 300);
	return nullptr;
}

int main()
{
	pthread_t thread[THREADS];
	struct sigaction action = {};
	char text[100];

	action.sa_handler = handle;
	action.sa_flags = SA_NODEFER;
	sigaction(SIGUSR1, &action, nullptr);
	sigaction(SIGUSR2, &action, nullptr);
	for (pthread_t &t : thread)
		pthread_create(&t, nullptr, run, nullptr);
	for (int i = 0; i < SIGNALS; i++) {
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
