/*
 * dl DIR: opens libdl_a.so and libdl_b.so by turns, many times; each allocates in a function of the
 * same name, and the second is mapped where the first one was. With `own` as second argument
 * libdl_own.so, which contains its own malloc.
 */
#include "truth.h"

#include <dlfcn.h>
#include <stdio.h>

static uintptr_t place(const void *symbol)
{
	return (uintptr_t)symbol & ~(uintptr_t)0xfff;
}

/* One of eight blocks stays, except in a library with its own memory. */
static void use(const char *dir, const char *name, uint64_t size, uintptr_t *place_out)
{
	int kept = strstr(name, "own") ? 8 : 7;
	char path[4096];
	void *lib, *(*make)(uint64_t), *blocks[8];
	void (*drop)(void *);

	strcpy(path, dir);
	strcat(path, name);
	lib = dlopen(path, RTLD_NOW);
	CHECK(lib);
	make = (void *(*)(uint64_t))dlsym(lib, "library_make");
	drop = (void (*)(void *))dlsym(lib, "library_drop");
	CHECK(make && drop);
	*place_out = place((void *)make);
	for (int i = 0; i < 8; i++) {
		blocks[i] = truth_made(make(size + (uint64_t)i), size + (uint64_t)i);
		CHECK(blocks[i]);
	}
	for (int i = 0; i < kept; i++) {
		truth_gone(size + (uint64_t)i);
		drop(blocks[i]);
	}
	CHECK(!dlclose(lib));
}

int main(int argc, char **argv)
{
	uintptr_t a = 0, b = 0;
	int same = 0;

	CHECK(argc > 1);
	for (int i = 0; i < 30; i++) {
		use(argv[1], "/libdl_a.so", 100, &a);
		use(argv[1], argc > 2 ? "/libdl_own.so" : "/libdl_b.so", 1000, &b);
		same += a == b;
	}
	if (argc == 2)
		CHECK(same > 0);
	truth_report();
	print_ok();
	return 0;
}
