/*
 * --heap-sample: selects the events of a session that are samples. All others are dropped after
 * they were counted in the exact totals:
 *
 *	every call -> totals -> is it a sample? -> event, with its real size -> profile
 *
 * A release is an event if its block was a sample. A realloc is one if the old block was a sample,
 * if the new one is, or both:
 *
 *	old      new      event
 *	sample   sample   a realloc, unchanged
 *	sample   no       a realloc to 0 bytes, which frees the block
 *	no       sample   an allocation with the address of the old block
 *	no       no       none
 *
 * A call that fails is always an event.
 */
#ifndef PTMEM_HEAP_SAMPLE_H
#define PTMEM_HEAP_SAMPLE_H

#include "base/byte_sampler.h"
#include "base/call_totals.h"
#include "profile/event.h"

struct profile;

struct heap_sample {
	uint64_t interval;    /* 0: every call is an event, and nothing else here is used */
	uint64_t now;         /* the one in force: with --budget it may be longer */
	uint64_t stops;       /* with --budget: calls at breakpoints when its last second began */
	uint32_t over;        /* seconds in a row in which these cost more than it */
	uint8_t shift_max;    /* the largest of all samples (estimate.h) */
	uint64_t seed;
	bool is_done;         /* replay of samples: the events are already chosen */
	struct byte_sampler sampler;
	struct call_totals totals;
};

void heap_sample_init(struct heap_sample *h, uint64_t interval, uint64_t seed);

/*
 * Whether @ev is an event of @p, the profile with all samples so far; may change *ev. @is_chosen:
 * the tracee has decided that the allocation is a sample, and counted the call.
 */
bool heap_sample_keep(struct heap_sample *h, const struct profile *p, bool is_chosen,
		      struct event *ev);

/* "--heap-sample=512K"; the caller frees it. */
char *heap_sample_text(uint64_t interval);

#endif
