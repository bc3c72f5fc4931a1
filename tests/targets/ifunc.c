/*
 * ifunc: waits for a byte of input while the dynamic linker relocates it, inside of libc, before the linker announces
 * libc to debuggers. It says "." before, and "OK" afterwards.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int chosen_one(void)
{
	return 0;
}

static void *choose(void)
{
	char c = '.';

	if (write(STDOUT_FILENO, &c, 1) != 1 || read(STDIN_FILENO, &c, 1) != 1)
		_exit(9);
	return chosen_one;
}

int chosen(void) __attribute__((ifunc("choose")));

int main(void)
{
	free(malloc(10));
	puts("OK");
	return chosen();
}
