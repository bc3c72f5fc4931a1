/*
 * wanderer WORD...: allocates 1,000 bytes before each word and executes it: chdir to /, close all
 * descriptors, fork (and continue in both), kill itself, abort, exec itself with the rest of the
 * words.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

static void close_all(void)
{
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		void *p = malloc(1000);

		CHECK(p);
		if (!strcmp(argv[i], "chdir"))
			CHECK(chdir("/") == 0);
		else if (!strcmp(argv[i], "close"))
			close_all();
		else if (!strcmp(argv[i], "fork") && fork() != 0)
			wait(NULL);
		else if (!strcmp(argv[i], "kill"))
			kill(getpid(), SIGKILL);
		else if (!strcmp(argv[i], "abort"))
			abort();
		else if (!strcmp(argv[i], "exec")) {
			argv[i] = argv[0];
			execv("/proc/self/exe", argv + i);
			return 1;
		}
	}
	return 6;
}
