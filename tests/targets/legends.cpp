/*
 * legends: each function allocates in its own way, through allocator wrappers and the standard
 * library, so that each source has call sites of known names, listed in tests/e2e/test_legends.py.
 * All pages that it touches are fewer than the page faults that the kernel keeps for ptmem (2,048):
 * none is lost where ptmem gets no CPU meanwhile.
 */
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <vector>

#include "noinline.h"

static void *volatile kept[1024];
static std::vector<std::string> strings;

NOINLINE static void *xmalloc(size_t size)
{
	void *p = malloc(size);
	if (!p)
		_exit(90);
	return p;
}

/* Small blocks: the heap grows by brk. */
NOINLINE static void fill()
{
	for (int i = 0; i < 300; i++)
		memset(kept[i] = xmalloc(4000), 1, 4000);
}

NOINLINE static void append()
{
	for (int i = 0; i < 6000; i++)
		strings.push_back(std::string(100, 'x'));
}

/* A large block: malloc maps it. */
NOINLINE static void load()
{
	void *p = xmalloc(6 << 20);
	memset(p, 2, 2 << 20);
	kept[1000] = p; /* after the call: a tail call would leave main as the caller */
}

NOINLINE static void map_file()
{
	void *p = mmap(nullptr, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		_exit(91);
	memset(p, 3, 3 << 19);
	kept[1001] = p;
}

int main()
{
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* a huge page is one fault */
	fill();
	append();
	load();
	map_file();
	return 0;
}
