/* Waiting until another thread waits, too: without allocating, and without a time for that. */
#ifndef AWAIT_CALL_H
#define AWAIT_CALL_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_pause
#define PAUSE_CALL SYS_pause
#else
#define PAUSE_CALL SYS_ppoll
#endif

/*
 * Returns when thread @tid of this process waits in the system call @number: what it does not need
 * then is in no register.
 */
__attribute__((noinline, unused)) static void await_call(pid_t tid, long number)
{
	char path[64], text[32], *end = text;
	long found = -1;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
	while (end == text || found != number) { /* "running" is no number */
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

		if (n < 0)
			_exit(92);
		close(fd);
		text[n] = '\0';
		found = strtol(text, &end, 10);
		usleep(1000);
	}
	/* texts that look like addresses */
	memset(path, 0, sizeof(path));
	memset(text, 0, sizeof(text));
	__asm__ volatile("" : : "r"(path), "r"(text) : "memory");
}

#endif
