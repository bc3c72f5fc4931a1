/*
 * paths: allocates by known call paths and frees nothing, so that the peak at exit is the
 * whole tree. Prints `path: main>outer>inner bytes=B` for each, outermost first.
 */
#include "truth.h"

NOINLINE static void leaf_one(size_t size)
{
	t_malloc(size);
	NO_TAIL_CALL();
}

NOINLINE static void leaf_two(size_t size)
{
	t_calloc(size, 3);
	NO_TAIL_CALL();
}

NOINLINE static void leaf_three(size_t size)
{
	t_realloc(t_posix_memalign(64, size), size, size + 1000);
	NO_TAIL_CALL();
}

NOINLINE static void middle(void (*leaf)(size_t), size_t size)
{
	leaf(size);
	NO_TAIL_CALL();
}

NOINLINE static void outer(void (*leaf)(size_t), size_t size)
{
	for (int i = 0; i < 5; i++)
		middle(leaf, size);
	NO_TAIL_CALL();
}

NOINLINE static void recurse(unsigned depth, void (*leaf)(size_t), size_t size)
{
	if (depth)
		recurse(depth - 1, leaf, size);
	else
		leaf(size);
	NO_TAIL_CALL();
}

int main(void)
{
	t_malloc(11);
	outer(leaf_one, 1000);
	outer(leaf_two, 700);
	middle(leaf_one, 30);
	for (int i = 0; i < 7; i++)
		outer(leaf_three, 64);
	recurse(3, leaf_two, 500);
	truth_path("main", 11);
	truth_path("main>outer>middle>leaf_one", 5000);
	truth_path("main>outer>middle>leaf_two", 10500);
	truth_path("main>middle>leaf_one", 30);
	truth_path("main>outer>middle>leaf_three", 35 * 1064);
	truth_path("main>recurse>recurse>recurse>recurse>leaf_two", 1500);
	truth_report();
	return 0;
}
