/*
 * forked_leaks [wait]: loses 1,000 blocks twice (function lost), then forks a child that loses one more
 * (lost_in_child). With wait: before the fork, the program waits for a byte from standard input and
 * prints a line; the child prints its pid, and waits for a byte before it exits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "noinline.h"

#define LOSE(name, count) NOINLINE static void name(void) \
	{ for (int i = 0; i < (count); i++) { void *volatile p = malloc(100 + (size_t)i % 7); p = NULL; (void)p; } }

LOSE(lost, 1000)
LOSE(lost_in_child, 1)

/*
 * Overwrites what the calls left on the stack; so does a lazily bound call, which saves the registers
 * that it finds.
 */
NOINLINE static void wipe_stack(void)
{
	volatile char scratch[16384];
	memset((char *)scratch, 0, sizeof(scratch));
}

static void wait_for_byte(void)
{
	char byte;
	if (read(0, &byte, 1) != 1)
		_exit(90);
}

static void say(const char *line)
{
	if (write(1, line, strlen(line)) != (ssize_t)strlen(line))
		_exit(91);
}

int main(int argc, char **argv)
{
	int is_waiting = argc > 1 && strcmp(argv[1], "wait") == 0;
	lost();
	wipe_stack();
	if (is_waiting) {
		say("begun\n");
		wait_for_byte();
	}
	lost(); /* under ptmem, if it attached meanwhile */
	wipe_stack();
	pid_t child = fork();
	if (child == 0) {
		char line[32];
		lost_in_child();
		wipe_stack();
		snprintf(line, sizeof(line), "%d\n", (int)getpid());
		if (is_waiting) {
			say(line);
			wait_for_byte();
		}
		exit(0);
	}
	int status, is_child;
	wipe_stack();
	is_child = waitpid(child, &status, 0) == child;
	wipe_stack();
	return is_child ? status : 92;
}
