/*
 * Plain allocations and frees, which are nearly all events, in a compact form that is passed in
 * batches from the ring reader to the code that counts them.
 */
#ifndef PTMEM_BASE_QUICK_EVENT_H
#define PTMEM_BASE_QUICK_EVENT_H

#include "base/heap_function.h"
#include "base/types.h"

struct quick_event {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	taddr_t addr;
	uint64_t size;    /* bytes requested by an allocation without alignment */
	taddr_t sp;       /* stack pointer in the caller; 0 = not requested */
	/* node of an allocation's stack in the call tree; 0 if stacks are not recorded */
	uint32_t node;
	uint32_t thread;  /* set only with event_options.quick_threads, or together with sp */
	bool is_free;     /* not set for an inner free */
	uint8_t function; /* enum heap_function */
	uint16_t slot;    /* of its thread */
};

#endif
