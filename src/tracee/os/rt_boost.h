/*
 * While all threads are stopped for us, each thread that is resumed competes for the CPU: it would
 * take ours, and the others would wait for milliseconds longer than the work takes.
 */
#ifndef PTMEM_TRACEE_OS_RT_BOOST_H
#define PTMEM_TRACEE_OS_RT_BOOST_H

#include <stdbool.h>

struct rt_boost {
	bool is_on;
	int policy, priority; /* old policy and parameters */
};

/*
 * Until rt_boost_end no other thread preempts this one, if permitted (root). The work in between
 * must take milliseconds at most.
 */
void rt_boost_begin(struct rt_boost *b);
void rt_boost_end(struct rt_boost *b);

#endif
