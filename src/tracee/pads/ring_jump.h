/* Continues the ring around its deferred records (see ring.h). */
#ifndef PTMEM_TRACEE_PADS_RING_JUMP_H
#define PTMEM_TRACEE_PADS_RING_JUMP_H

#include "tracee/pads/ring.h"

/*
 * Everything committed is read, and all uncommitted records up to the limit are deferred: gives
 * waiting threads room although deferred records hold the tail. Threads may run. False if there is
 * no room to give, or the limit was not reached.
 */
bool ring_jump(struct ring *r);

#endif
