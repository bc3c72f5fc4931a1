/*
 * sizes [exec|wait]: 64 MiB mapped and gone, calls of malloc that are hot, then 32 MiB mapped; in a child 48 more.
 * exec: executes itself without an argument at the end. wait: says so before the calls, and waits for a byte.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void *mapped(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int main(int argc, char **argv)
{
	void *p = mapped(64 << 20);

	if (!p || munmap(p, 64 << 20) != 0)
		return 1;
	char byte;
	if (argc > 1 && !strcmp(argv[1], "wait") && (write(1, "\n", 1) != 1 || read(0, &byte, 1) != 1))
		return 1;
	for (int i = 0; i < 4000; i++)
		free(malloc(100));
	if (!mapped(32 << 20))
		return 1;
	usleep(50000);
	pid_t pid = fork();
	if (pid == 0) {
		free(malloc(100));
		usleep(50000);
		_exit(mapped(48 << 20) ? 0 : 1);
	}
	int status;
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return 1;
	if (argc > 1 && !strcmp(argv[1], "exec"))
		execl(argv[0], argv[0], (char *)NULL);
	return 0;
}
