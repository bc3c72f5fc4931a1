/* A header-only template of the user. */
#ifndef WHOSE_CODE_H
#define WHOSE_CODE_H

#include <cstdlib>

template <class F> void *with_room(F size)
{
	void *room = malloc(size()); WHERE(room);
	return room;
}

#endif
