/* Counters of what tracing did. */
#ifndef PTMEM_TRACEE_STATE_TARGET_STATS_H
#define PTMEM_TRACEE_STATE_TARGET_STATS_H

#include "base/types.h"

struct target_stats {
	uint64_t stops;          /* waitpid returns */
	uint64_t trap_stops;     /* of them at our breakpoints */
	uint64_t attach_ns, detach_ns; /* the pauses of all threads */
	uint64_t nested;         /* calls inside a watched call */
	uint64_t threads, processes; /* ever seen */
	uint32_t probes;         /* watched functions, of the first program */
	uint32_t unprobed;       /* definitions that could not be watched */
	uint32_t pages_left;     /* pages that stayed mapped at detach */
	uint32_t masks_restored;   /* signal masks given back SIGTRAP */
	uint64_t records, raw_records, ring_bytes; /* of rings that were closed */
	uint64_t ring_full;      /* stops because a ring was full */
	uint64_t ring_jumps;     /* times that a ring continued around unfinished records */
	uint64_t uncommitted;    /* records that were reserved and never finished */
	uint64_t promote_ns;     /* pauses for it */
};

#endif
