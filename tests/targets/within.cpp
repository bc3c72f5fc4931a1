/*
 * Functions whose calls need known amounts of memory, for --within: what each needs at most is in
 * tests/e2e/test_within.py. All leave or return in another way. With "serve": requests until
 * standard input ends.
 */
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

#include "noinline.h"

static void *volatile kept[1000];
static int count;
static std::jmp_buf out;

static void keep(std::size_t size)
{
	kept[__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED)] = malloc(size);
}

/* Two blocks are released, the last one by a jump to free; one stays. */
NOINLINE static void handle(int size)
{
	void *volatile a = malloc(100);

	free(a);
	a = malloc(200);
	keep(static_cast<std::size_t>(size));
	free(a);
}

NOINLINE static void recurse(int depth)
{
	keep(10);
	if (depth)
		recurse(depth - 1);
	NO_TAIL_CALL();
}

NOINLINE static void leave()
{
	keep(50);
	std::longjmp(out, 1);
}

NOINLINE static void grow()
{
	kept[0] = realloc(kept[0], 5000); /* it had 1000 */
}

struct big {
	long x[9];
};

/* Arguments on the stack. */
NOINLINE static long many(long a, long b, long c, long d, long e, long f, long g, struct big h)
{
	keep(static_cast<std::size_t>(a + b + c + d + e + f + g + h.x[8]));
	return a + g + h.x[0] + h.x[8];
}

namespace ns {
/* Without the exception 300 bytes. */
NOINLINE static int thrower(int i)
{
	keep(300);
	if (i % 2)
		throw i;
	return i;
}
}

NOINLINE static double number(double x)
{
	keep(8);
	return x * 2;
}

NOINLINE static void last(int i)
{
	keep(1);
	if (i > 0)
		keep(2);
}

/* Continues as the other function, by a jump where the compiler optimizes. */
NOINLINE static void jumps(int i)
{
	keep(5);
	last(i);
}

/* Its child has allocated 32 bytes when it ends, and the call is not its own. */
NOINLINE static void forks()
{
	keep(64);
	pid_t child = fork();

	keep(32);
	if (!child)
		_exit(0);
	waitpid(child, nullptr, 0);
}

NOINLINE static void ends()
{
	keep(99);
	std::exit(0);
}

static void *thread(void *arg)
{
	for (int i = 0; i < 30; i++)
		handle(500);
	return arg;
}

static void serve()
{
	char c;

	while (read(0, &c, 1) == 1) {
		handle(1000);
		free(kept[--count]);
		if (write(1, &c, 1) != 1)
			abort();
	}
}

int main(int argc, char **)
{
	struct big b = {{1, 2, 3, 4, 5, 6, 7, 8, 9}};
	volatile long sum = 0;
	volatile double all = 0;
	pthread_t other[2];

	if (argc > 1) {
		serve();
		return 0;
	}
	for (int i = 0; i < 20; i++)
		handle(1000 + i);
	recurse(9);
	recurse(3);
	for (volatile int i = 0; i < 3; i++)
		if (!setjmp(out))
			leave();
	keep(777);
	grow();
	for (int i = 0; i < 100; i++)
		sum += many(1, 2, 3, 4, 5, 6, 7, b);
	for (int i = 0; i < 100; i++) {
		try {
			sum += ns::thrower(i);
		} catch (int n) {
			sum += n;
		}
	}
	for (int i = 0; i < 20; i++)
		all += number(i);
	jumps(1);
	last(0);
	forks();
	for (auto &t : other)
		pthread_create(&t, nullptr, thread, nullptr);
	for (auto &t : other)
		pthread_join(t, nullptr);
	std::printf("%ld %g %d\n", sum, all, count);
	std::fflush(stdout);
	ends();
}
