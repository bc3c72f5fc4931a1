/*
 * Its operator delete says "d", waits for a byte of standard input, and frees. Two objects are
 * deleted so, and one is left. Then it says "e", and waits once more.
 */
#include <cstdlib>
#include <new>
#include <unistd.h>

#include "noinline.h"

static void wait_for_byte(const char *letter)
{
	char c;

	if (write(STDOUT_FILENO, letter, 1) != 1 || read(STDIN_FILENO, &c, 1) != 1)
		_exit(3);
}

NOINLINE void operator delete(void *p) noexcept
{
	wait_for_byte("d");
	free(p);
}

NOINLINE void operator delete(void *p, std::size_t) noexcept
{
	operator delete(p);
}

struct object {
	char bytes[27];
};

/* The place where the stack of the last delete was is not written to again. */
NOINLINE static void end()
{
	volatile char unused[4096];

	unused[0] = 0;
	wait_for_byte(unused[0] ? "?" : "e");
}

int main()
{
	object *o[3];

	for (object *&p : o)
		p = new object;
	for (int i = 0; i < 2; i++)
		delete o[i];
	end();
	return o[2] ? 0 : 1;
}
