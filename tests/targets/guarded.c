/*
 * guarded [DIR]: prints "ready" and runs until the end of its input, 1,000 blocks at a time; then prints
 * the truth and OK.
 * With DIR it opens and closes libdl_a.so and libdl_b.so meanwhile, which make blocks,
 * too; without, it has a handler of SIGTRAP and breakpoints of its own.
 */
#include "truth.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t own;
static int made;

static void on_trap(int number)
{
	(void)number;
	own++;
}

static void use_library(const char *dir, const char *name)
{
	void *lib, *(*make)(uint64_t), *block;
	void (*drop)(void *);
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	lib = dlopen(path, RTLD_NOW);
	CHECK(lib);
	make = (void *(*)(uint64_t))dlsym(lib, "library_make");
	drop = (void (*)(void *))dlsym(lib, "library_drop");
	CHECK(make && drop);
	block = make(100);
	CHECK(block);
	memset(block, 1, 100);
	drop(block);
	CHECK(!dlclose(lib));
}

static void work(void)
{
	void *blocks[1000];

	for (int i = 0; i < 1000; i++) {
		blocks[i] = t_malloc((uint64_t)(i + 1));
		CHECK(blocks[i]);
		memset(blocks[i], i, (size_t)(i + 1));
	}
	for (int i = 0; i < 1000; i++) {
		CHECK(*(unsigned char *)blocks[i] == (unsigned char)i);
		t_free(blocks[i], (uint64_t)(i + 1));
	}
}

int main(int argc, char **argv)
{
	struct pollfd input = { STDIN_FILENO, POLLIN, 0 };

	if (argc == 1)
		signal(SIGTRAP, on_trap);
	CHECK(write(STDOUT_FILENO, "ready\n", 6) == 6);
	for (; poll(&input, 1, 0) == 0; made++) {
		work();
		if (argc > 1)
			use_library(argv[1], made % 2 ? "libdl_a.so" : "libdl_b.so");
		else
			__asm__ volatile("int3");
	}
	if (argc == 1)
		CHECK(own == made);
	truth_report();
	print_ok();
	return 0;
}
