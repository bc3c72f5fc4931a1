/*
 * unmapper: removes mappings that are not its own from its address space, as sandboxes and
 * checkpointers do, and continues allocating.
 *
 *	unmapper munmap|mprotect|scrub|refill|deny|data|replace [THREADS [wait|go [BLOCKS]]]
 *
 *	munmap, mprotect  shared mappings: unmapped, or without rights
 *	scrub, deny       also code without a file: unmapped, or without rights; deny blocks all
 *	                  signals, and none may be unblocked in the end
 *	data              as deny, but they can be read and written
 *	refill            as scrub, and as much memory of the program's own wherever the kernel puts it
 *	replace           as scrub, and memory of the program's own takes its place
 *	wait              begins with the first byte of standard input, and ends with its end
 *	BLOCKS            that are allocated each time (3000)
 */
#include "truth.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>

#define ROUNDS 5
#define PAGE 4096u

static const char *way;
static uint64_t blocks;

struct range {
	uint8_t *start;
	size_t size;
};

/* What took the place of others' mappings: filled with its own address. */
static struct range own[64];
static unsigned own_count;

static void occupy(void *start, size_t size)
{
	CHECK(own_count < sizeof(own) / sizeof(own[0]));
	uint8_t *got = mmap(start, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | (start ? MAP_FIXED : 0), -1, 0);
	CHECK(got != MAP_FAILED && (!start || got == start));
	if (!start && size > PAGE)
		size = PAGE;
	own[own_count] = (struct range){ got, size };
	for (uint8_t *p = got; p < got + size; p += sizeof(p))
		*(uintptr_t *)p = (uintptr_t)p;
	own_count++;
}

static void check_own(void)
{
	for (unsigned i = 0; i < own_count; i++)
		for (uint8_t *p = own[i].start; p < own[i].start + own[i].size; p += sizeof(p))
			CHECK(*(uintptr_t *)p == (uintptr_t)p);
}

static bool is(const char *name)
{
	return !strcmp(way, name);
}

static bool is_foreign(const char *rights, const char *path)
{
	if (rights[3] == 's')
		return true;
	return !is("munmap") && !is("mprotect") && rights[2] == 'x' && !*path;
}

static void take_away(char *line)
{
	unsigned long start, stop;
	char rights[8], path[8] = "";

	if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %7s", &start, &stop, rights, path) < 3 ||
	    !is_foreign(rights, path))
		return;
	if (is("mprotect") || is("deny"))
		CHECK(mprotect((void *)start, stop - start, PROT_NONE) == 0);
	else if (is("data"))
		CHECK(mprotect((void *)start, stop - start, PROT_READ | PROT_WRITE) == 0);
	else
		CHECK(munmap((void *)start, stop - start) == 0);
	if (is("replace"))
		occupy((void *)start, stop - start);
	if (is("refill"))
		occupy(NULL, stop - start);
}

/* Without a call of malloc. */
static void take_all_away(void)
{
	static char text[1 << 20];
	size_t used = 0;
	ssize_t n;
	int fd = open("/proc/self/maps", O_RDONLY);
	CHECK(fd >= 0);
	while ((n = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	CHECK(n == 0 && close(fd) == 0);
	text[used] = '\0';
	for (char *line = text, *next; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		take_away(line);
	}
}

static void allocate(void)
{
	void *p[10] = {0};
	for (unsigned i = 0; i < blocks; i++) {
		t_free(p[i % 10], p[i % 10] ? 100 : 0);
		p[i % 10] = t_malloc(100);
	}
	for (unsigned i = 0; i < 10; i++)
		t_free(p[i], 100);
}

static void *work(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++)
		allocate();
	return NULL;
}

static void block_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
}

static void check_signals(void)
{
	sigset_t mask;

	CHECK(sigprocmask(SIG_BLOCK, NULL, &mask) == 0);
	CHECK(sigismember(&mask, SIGSEGV) == 1 && sigismember(&mask, SIGTRAP) == 1);
}

int main(int argc, char **argv)
{
	uint64_t threads = argument(argc, argv, 2, 0);
	bool waits = argc > 3 && !strcmp(argv[3], "wait");
	pthread_t thread[8];
	char byte;

	CHECK(argc > 1 && threads <= 8);
	way = argv[1];
	blocks = argument(argc, argv, 4, 3000);
	truth.has_threads = threads > 0;
	if (is("deny"))
		block_signals();
	CHECK(!waits || read(STDIN_FILENO, &byte, 1) == 1);
	allocate();
	for (uint64_t i = 0; i < threads; i++)
		CHECK(pthread_create(&thread[i], NULL, work, NULL) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		take_all_away();
		allocate();
	}
	for (uint64_t i = 0; i < threads; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	check_own();
	if (is("deny"))
		check_signals();
	truth_report();
	CHECK(!waits || read(STDIN_FILENO, &byte, 1) == 0);
	check_own();
	return 0;
}
