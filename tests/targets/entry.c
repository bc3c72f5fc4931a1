/*
 * A program without start-up code: its _start is a C function, whose unwind information says that it has a caller.
 * argc is where the return address would be.
 */
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline, noipa)) static void work(void)
{
	for (size_t i = 1; i < 40; i++)
		free(malloc(32 * i));
}

__attribute__((force_align_arg_pointer, used)) void _start(void)
{
	work();
	_exit(0);
}
