/*
 * cxx_handler: a new-handler that releases a reserve, as in textbooks: the free inside operator new
 * releases a block of the program and counts.
 */
#include <new>

#include "truth.h"

static char *reserve;
static volatile size_t huge = (size_t)1 << 62;

static void handler(void)
{
	if (!reserve)
		throw std::bad_alloc();
	t_free(reserve, 100000);
	reserve = nullptr;
}

int main()
{
	std::set_new_handler(handler);
	for (int i = 0; i < 20; i++) {
		bool caught = false;

		reserve = static_cast<char *>(t_malloc(100000));
		try {
			void *p = operator new(huge);
			truth_made(p, huge);
		} catch (const std::bad_alloc &) {
			caught = true;
		}
		CHECK(caught && !reserve);
	}
	truth_report();
	print_ok();
}
