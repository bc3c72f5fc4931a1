/* Counters of the tracer's work. */
#ifndef PTMEM_TRACEE_STATE_TARGET_STATS_H
#define PTMEM_TRACEE_STATE_TARGET_STATS_H

#include "base/types.h"

struct target_stats {
	uint64_t stops;          /* stops returned by waitpid */
	uint64_t trap_stops;     /* those at our breakpoints */
	uint64_t attach_ns, detach_ns; /* stops of all threads */
	uint64_t nested;         /* calls inside a watched call */
	uint64_t threads, processes; /* threads ever seen */
	uint32_t probes;         /* watched functions, of the first program */
	uint32_t unprobed;       /* definitions that could not be watched */
	uint32_t pages_left;     /* pages left mapped at detach */
	uint32_t masks_restored;   /* signal masks in which SIGTRAP was restored */
	uint64_t records, raw_records, ring_bytes; /* of rings that were closed */
	uint64_t ring_full;      /* stops because of a full ring */
	uint64_t promote_ns;     /* stops of all threads for it */
};

#endif
