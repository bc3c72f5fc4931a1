/*
 * Exact totals of a sampled profile: calls and requested bytes by function, whether or not a call
 * was a sample. Failed calls and free(NULL) are counted, calls inside another watched call are not.
 * A realloc counts with its new size, and a size that no object can have as 0 bytes.
 *
 * Pads count in memory that the program can overwrite. If it is known to have done so, the totals
 * are marked as unreliable.
 *
 * Profiles without samples use only the events that are missing from them.
 */
#ifndef PTMEM_BASE_CALL_TOTALS_H
#define PTMEM_BASE_CALL_TOTALS_H

#include "base/heap_function.h"
#include "base/types.h"

/* Events that are not in the profile, since rings were full. Bytes of samples are weighted. */
struct lost_events {
	uint64_t allocations, bytes, releases;
	bool has_unsure; /* releases that may be others' are missing, too, and not counted */
};

struct call_totals {
	struct call_total {
		uint64_t calls, bytes;
	} function[HEAP_FUNCTION_COUNT];
	struct lost_events lost;
	bool is_doubtful;
};

/* Sums of the functions that allocate, and of those that release. */
struct call_sums {
	uint64_t allocations, bytes, frees;
};

static inline struct call_sums call_totals_sums(const struct call_totals *t)
{
	struct call_sums sums = {0};

	for (unsigned i = 0; i < HEAP_FUNCTION_COUNT; i++) {
		bool releases = i == FUNCTION_FREE || i == FUNCTION_DELETE;

		*(releases ? &sums.frees : &sums.allocations) += t->function[i].calls;
		sums.bytes += t->function[i].bytes;
	}
	return sums;
}

/* How reliable the totals are, for display. */
static inline const char *call_totals_trust(bool is_doubtful)
{
	return is_doubtful ? "counted in memory that the program overwrote" : "counted exactly";
}

/* What @frees counts, for display: unlike those of a profile without samples it is no blocks. */
static inline const char *call_totals_frees(uint64_t frees)
{
	return frees == 1 ? "call of free or delete, also of NULL" :
			    "calls of free or delete, also of NULL";
}

#endif
