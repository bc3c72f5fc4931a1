/*
 * sampled_custom COUNT: as sampled_cxx, with its own operator new, which keeps deleted objects in a
 * list, and gets memory from malloc in large pieces.
 */
#include <cstdlib>
#include <new>

#include "noinline.h"

#define PIECE 64

union cell {
	cell *next;
	char bytes[112];
};

static cell *list;

NOINLINE void *operator new(std::size_t size)
{
	if (size > sizeof(cell))
		return malloc(size);
	if (!list) {
		cell *cells = static_cast<cell *>(malloc(PIECE * sizeof(cell)));
		for (int i = 0; i < PIECE; i++) {
			cells[i].next = list;
			list = &cells[i];
		}
	}
	cell *c = list;
	list = c->next;
	return c;
}

/* Inlined: a mere jump to another operator delete would have no room for one to a pad. */
static inline void release(void *p)
{
	cell *c = static_cast<cell *>(p);
	if (!c)
		return;
	c->next = list;
	list = c;
}

NOINLINE void operator delete(void *p) noexcept
{
	release(p);
}

NOINLINE void operator delete(void *p, std::size_t) noexcept
{
	release(p);
}

#include "sampled_cxx.cpp"
