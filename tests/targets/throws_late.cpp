/*
 * throws_late WHERE: an operator new that throws after a while. Each byte of standard input lets it continue.
 *
 *	before   it waits, and then throws
 *	passing  it waits while the exception leaves it
 *	caught   it waits while the exception is in flight, catches it, and then allocates
 *
 * Prints "ready" at its start, "inside" where it waits in operator new, and "OK" at its end.
 */
#include <new>
#include <stdexcept>
#include <string>

#include "truth.h"

#define KEPT 6

static std::string where;
static bool is_armed;
static volatile long kept[KEPT] = {1, 22, 333, 4444, 55555, 666666};

NOINLINE static void pause_here(const char *line)
{
	char c;

	CHECK(write(STDOUT_FILENO, line, strlen(line)) > 0);
	CHECK(read(STDIN_FILENO, &c, 1) == 1);
}

struct waiter {
	~waiter()
	{
		pause_here("inside\n");
	}
};

NOINLINE static void wait_and_throw()
{
	is_armed = false;
	if (where == "before") {
		pause_here("inside\n");
		throw std::bad_alloc();
	}
	waiter w;
	throw std::bad_alloc();
}

/* Callee-saved registers are in use here, and so they are restored. */
NOINLINE void *operator new(size_t size)
{
	if (is_armed && where != "caught")
		wait_and_throw();
	if (is_armed) {
		try {
			wait_and_throw();
		} catch (const std::bad_alloc &) {
		}
	}
	void *p = malloc(size);
	if (!p)
		throw std::bad_alloc();
	return p;
}

NOINLINE void operator delete(void *p) noexcept
{
	free(p);
}

NOINLINE void operator delete(void *p, size_t) noexcept
{
	free(p);
}

NOINLINE static bool make(size_t size)
{
	volatile char *p = static_cast<char *>(operator new(size));

	for (size_t i = 0; i < size; i++)
		p[i] = 'x';
	bool is_whole = p[0] == 'x' && p[size - 1] == 'x';
	operator delete(const_cast<char *>(p));
	return is_whole;
}

/* Registers of the caller are unchanged. */
NOINLINE static bool check_make(size_t size)
{
	long a = kept[0], b = kept[1], c = kept[2], d = kept[3], e = kept[4], f = kept[5];
	bool is_whole = false;

	try {
		is_whole = make(size);
	} catch (const std::bad_alloc &) {
		is_whole = where != "caught";
	}
	return is_whole && a == 1 && b == 22 && c == 333 && d == 4444 && e == 55555 && f == 666666;
}

int main(int argc, char **argv)
{
	where = argc > 1 ? argv[1] : "before";
	pause_here("ready\n");
	for (int i = 0; i < 20; i++)
		CHECK(make(100));
	is_armed = true;
	CHECK(check_make(1000));
	CHECK(make(100));
	print_ok();
}
