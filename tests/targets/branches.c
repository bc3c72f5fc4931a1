/*
 * branches [LEVELS]: allocates by 2^LEVELS call paths (14), which are all ways through left() and right(). At each
 * byte of its input it does one round, writes "done", and waits for the next: each path replaces
 * its block. At an f it forks instead: the child goes on in its place until a q, at which it ends. Ends with its
 * input, and reports its truth.
 */
#include <sys/wait.h>

#include "truth.h"

#define MAX_LEVELS 14
#define MAX_PATHS (1u << MAX_LEVELS)

static unsigned levels = MAX_LEVELS;

static struct {
	void *p;
	size_t size;
} held[MAX_PATHS];

NOINLINE static void left(unsigned path, unsigned level, unsigned round);
NOINLINE static void right(unsigned path, unsigned level, unsigned round);

INLINE void go_on(unsigned path, unsigned level, unsigned round)
{
	if (level == levels) {
		size_t size = 16 + (path * 2654435761u + round * 40503u) / 128 % 9777;

		if (held[path].p)
			t_free(held[path].p, held[path].size);
		held[path].p = t_malloc(size);
		held[path].size = size;
	} else if (path >> level & 1) {
		left(path, level + 1, round);
	} else {
		right(path, level + 1, round);
	}
}

NOINLINE static void left(unsigned path, unsigned level, unsigned round)
{
	go_on(path, level, round);
	NO_TAIL_CALL();
}

NOINLINE static void right(unsigned path, unsigned level, unsigned round)
{
	go_on(path, level, round);
	NO_TAIL_CALL();
}

/* Returns in the child, and in the parent when that has ended. */
static void let_child_go_on(void)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child > 0)
		CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
	unsigned round = 0;
	char c;

	if (argc > 1 && atoi(argv[1]) < MAX_LEVELS)
		levels = (unsigned)atoi(argv[1]);
	if (write(1, "ready\n", 6) != 6)
		return 1;
	while (read(0, &c, 1) == 1 && c != 'q') {
		if (c == 'f')
			let_child_go_on();
		for (unsigned path = 0; path < 1u << levels && c != 'f'; path++)
			right(path, 0, round);
		round += c != 'f';
		if (write(1, "done\n", 5) != 5)
			return 1;
	}
	truth_report();
	return 0;
}
