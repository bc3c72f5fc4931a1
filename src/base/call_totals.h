/*
 * Exact totals of a sampled profile: calls and requested bytes by function, whether or not a call
 * was a sample. Calls inside another watched call are not counted, failed calls are, and so is
 * free(NULL). A realloc requests its new size. Sizes that no object can have count no bytes.
 *
 * Pads count in memory that the program can overwrite. If it is known to have done so, the totals
 * are doubtful.
 */
#ifndef PTMEM_BASE_CALL_TOTALS_H
#define PTMEM_BASE_CALL_TOTALS_H

#include "base/heap_function.h"
#include "base/types.h"

struct call_totals {
	struct call_total {
		uint64_t calls, bytes;
	} function[HEAP_FUNCTION_COUNT];
	bool is_doubtful;
};

/* How far totals can be trusted, for people. */
static inline const char *call_totals_trust(bool is_doubtful)
{
	return is_doubtful ? "counted in memory that the program overwrote" : "counted exactly";
}

#endif
