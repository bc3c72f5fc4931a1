/*
 * The events that are nearly all of a profile, plain allocations and frees, in a form to be
 * handed on by the hundred: from the ring's reader to what counts them.
 */
#ifndef PTMEM_BASE_QUICK_EVENT_H
#define PTMEM_BASE_QUICK_EVENT_H

#include "base/heap_function.h"
#include "base/types.h"

struct quick_event {
	taddr_t addr;
	uint64_t size;    /* of an allocation, as requested; no alignment was asked for */
	taddr_t sp;       /* the stack pointer in the caller; 0 = not asked for */
	/* of an allocation: its stack in the call tree; 0 where stacks are not read */
	uint32_t node;
	uint32_t thread;  /* tid; only with target_options.quick_threads, or where sp is */
	bool is_free;     /* not of an inner free */
	uint8_t function; /* enum heap_function */
	uint16_t slot;    /* of its thread, in the ring */
};

#endif
