/*
 * whose_code [TIMES]: the user's functions, of a lambda, a callback and a template, that the
 * compiler inlines into the standard library. Prints, for each: "site FILE:LINE live BYTES", or
 * "temporary COUNT". Sizes are multiplied by TIMES.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <malloc.h>
#include <thread>
#include <unistd.h>
#include <vector>

static void *volatile kept[8];
static size_t times = 1;

/* Without memory of the heap. */
static void say(const char *file, int line, const char *what, size_t n)
{
	char text[100];
	int size = snprintf(text, sizeof(text), "site %s:%d %s %zu\n", file, line, what, n);

	if (write(1, text, (size_t)size) != size)
		_exit(91);
}

#define NAME(path) (strrchr("/" path, '/') + 1)
#define WHERE(p) say(NAME(__FILE__), __LINE__, "live", asked)

#include <cstring>

static thread_local size_t asked;

#include "whose_code.h"

static size_t ask(size_t n)
{
	return asked = n * times;
}

int main(int argc, char **argv)
{
	int order[] = {2, 1};

	times = argc > 1 ? (size_t)atoi(argv[1]) : 1;
	std::thread t([&] {
		kept[0] = malloc(ask(1000000)); WHERE(kept[0]);
	});
	t.join();
	kept[1] = std::async(std::launch::async, [] {
		void *p = malloc(ask(700000)); WHERE(p);
		return p;
	}).get();
	kept[2] = with_room([] { return ask(500000); });
	std::for_each(order, order + 2, [](int) {
		for (int i = 0; i < 50; i++) {
			kept[3] = malloc(ask(64)); free(kept[3]);
		}
	});
	say(NAME(__FILE__), __LINE__ - 3, "temporary", 100);
	return 0;
}
