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
	union {
		struct {
			/* of an allocation's stack in the call tree; 0: stacks are not recorded */
			uint32_t node;
			/* set only with event_options.quick_threads, or together with sp */
			uint32_t thread;
		};
		uint64_t node_alone; /* the thread is 0 */
	};
	union {
		struct {
			bool is_free;     /* not set for an inner free */
			uint8_t function; /* enum heap_function */
			uint16_t slot;    /* of its thread */
		};
		uint32_t kind;            /* quick_kind */
	};
};

/* Stores are what limits the ring reader: these are one, instead of three. */
static inline uint32_t quick_kind(bool is_free, uint8_t function, uint16_t slot)
{
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the order of the members");
	return (uint32_t)is_free | (uint32_t)function << 8 | (uint32_t)slot << 16;
}

#endif
