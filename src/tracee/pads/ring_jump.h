/*
 * A ring that continues around its deferred records (the picture is in ring.h).
 */
#ifndef PTMEM_TRACEE_PADS_RING_JUMP_H
#define PTMEM_TRACEE_PADS_RING_JUMP_H

#include "tracee/pads/ring.h"

/*
 * All that was committed is read, and all uncommitted records up to the limit are deferred: threads
 * that wait for room get some although deferred records hold the tail. Threads may run. False:
 * there is none to give, or the limit was not reached.
 */
bool ring_jump(struct ring *r);

#endif
