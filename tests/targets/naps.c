/*
 * naps MS [PID]: wakes up every MS milliseconds, until it is killed; with PID it reads that
 * process's status each time. The minimum cost of a sampler.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

int main(int argc, char **argv)
{
	static char text[8192];
	char name[64];
	int fd = -1;
	long long period = (argc > 1 ? atoll(argv[1]) : 1) * 1000000, next = now_ns();
	if (argc > 2) {
		snprintf(name, sizeof(name), "/proc/%s/status", argv[2]);
		fd = open(name, O_RDONLY | O_CLOEXEC);
	}
	while (fd < 0 || pread(fd, text, sizeof(text), 0) > 0) {
		next += period;
		long long wait = next - now_ns();
		wait = wait > 0 ? wait : 0;
		const struct timespec ts = {wait / 1000000000, wait % 1000000000};
		ppoll(NULL, 0, &ts, NULL);
	}
	return 1;
}
