/* sampled_cxx COUNT: makes and deletes COUNT objects of 100 bytes by the library's operator new. */
#include <cstdlib>

#include "noinline.h"

struct object {
	char bytes[100];
};

static object *volatile kept[64];

static NOINLINE void make(long count)
{
	for (long i = 0; i < count; i++) {
		delete kept[i % 64];
		kept[i % 64] = new object;
	}
}

int main(int argc, char **argv)
{
	make(argc > 1 ? atol(argv[1]) : 0);
	return 0;
}
