/*
 * stacks: frames that are hard to unwind: alloca, realigned for vectors, variable arrays, 5,000
 * deep, a signal handler on its own stack, a callback from the C library (qsort).
 * Prints the `path:` of each (see paths.c); nothing is freed.
 */
#include "truth.h"

#include <alloca.h>
#include <signal.h>

typedef float vector __attribute__((vector_size(32)));

static char alternate[64 * 1024];

NOINLINE static void leaf(size_t size)
{
	t_malloc(size);
	NO_TAIL_CALL();
}

NOINLINE static void with_alloca(size_t n)
{
	char *p = alloca(n);

	memset(p, 1, n);
	__asm__ volatile("" : : "r"(p) : "memory");
	leaf(1000);
	NO_TAIL_CALL();
}

NOINLINE static void with_vla(size_t n)
{
	uint64_t array[n];

	memset(array, 2, sizeof(array));
	__asm__ volatile("" : : "r"(array) : "memory");
	leaf(2000);
	NO_TAIL_CALL();
}

NOINLINE static void realigned(int x)
{
	vector v[3] __attribute__((aligned(64)));

	memset(v, x, sizeof(v));
	__asm__ volatile("" : : "r"(v) : "memory");
	CHECK(((uintptr_t)v & 63) == 0);
	leaf(3000);
	__asm__ volatile("" : : "r"(v) : "memory");
	NO_TAIL_CALL();
}

/* Realigned and of unknown size: the frame hangs on a register of its own. */
NOINLINE static void realigned_alloca(size_t n)
{
	vector v[2] __attribute__((aligned(64)));
	char *p = alloca(n);

	memset(v, 0, sizeof(v));
	__asm__ volatile("" : : "r"(v), "r"(p) : "memory");
	leaf(4000);
	__asm__ volatile("" : : "r"(v), "r"(p) : "memory");
	NO_TAIL_CALL();
}

NOINLINE static void deep(unsigned n)
{
	if (n)
		deep(n - 1);
	else
		leaf(5000);
	NO_TAIL_CALL();
}

NOINLINE static void on_signal(int number)
{
	(void)number;
	leaf(6000);
	NO_TAIL_CALL();
}

NOINLINE static int compare(const void *a, const void *b)
{
	static int once;

	if (!once++)
		leaf(7000);
	return *(const int *)a - *(const int *)b;
}

NOINLINE static void many_arguments(long a, long b, long c, long d, long e, long f, long g, long h)
{
	__asm__ volatile("" : : "r"(a + b + c + d + e + f + g + h) : "memory");
	leaf(8000);
	NO_TAIL_CALL();
}

int main(void)
{
	int numbers[] = { 3, 1, 2 };
	struct sigaction sa;
	stack_t stack;

	memset(&stack, 0, sizeof(stack));
	stack.ss_sp = alternate;
	stack.ss_size = sizeof(alternate);
	CHECK(!sigaltstack(&stack, NULL));
	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_signal;
	sa.sa_flags = SA_ONSTACK;
	CHECK(!sigaction(SIGUSR1, &sa, NULL));

	for (size_t i = 0; i < 5; i++) {
		with_alloca(100 * i + 1);
		with_vla(10 * i + 1);
		realigned((int)i);
		realigned_alloca(100 * i + 1);
	}
	deep(5000);
	kill(getpid(), SIGUSR1);
	qsort(numbers, 3, sizeof(int), compare);
	many_arguments(1, 2, 3, 4, 5, 6, 7, 8);
	truth_path("main>with_alloca>leaf", 5000);
	truth_path("main>with_vla>leaf", 10000);
	truth_path("main>realigned>leaf", 15000);
	truth_path("main>realigned_alloca>leaf", 20000);
	truth_path("...>deep>deep>deep>deep>leaf", 5000); /* deeper than --depth=200 */
	truth_path("main>...>on_signal>leaf", 6000);
	truth_path("main>...>compare>leaf", 7000);
	truth_path("main>many_arguments>leaf", 8000);
	truth_report();
	return 0;
}
