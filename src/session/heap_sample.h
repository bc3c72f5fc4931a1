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
#ifndef PTMEM_SESSION_HEAP_SAMPLE_H
#define PTMEM_SESSION_HEAP_SAMPLE_H

#include "base/byte_sampler.h"
#include "base/heap_calls.h"
#include "base/types.h"
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

/* Reports the events that are missing from a profile since its rings were full. */

struct session;

/*
 * "12 allocations of 3.4 KiB and 9 releases are missing", or with @interval "12 samples of about
 * 6.0 MiB and at least 9 releases are missing". NULL: nothing is. The caller frees it.
 */
char *lost_events_text(const struct lost_events *lost, uint64_t interval);

/* What a session says about its sampling interval, which may change while it runs (--budget). */

/* Sets the text in desc: for a heap profile of samples, @interval bytes apart; 0: none. */
void session_describe(struct session *s, uint64_t interval);
/* @s has a sample whose interval is the smallest one, shifted by @shift: for desc: and messages. */
void session_sampling_note_sample(struct session *s, uint8_t shift);
/* The longest interval of its samples. */
uint64_t session_sampling_longest(const struct session *s);
/* "512.0 KiB", or "512.0 KiB to 4.0 MiB"; the caller frees it. */
char *session_sampling_range(const struct session *s);

#endif
