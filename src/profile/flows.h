/*
 * What each distinct stack allocated, holds and freed: the numbers of an xtree (doc/massif.md
 * 2.15). Separate from the profile, since here no function is ignored, a realloc is an allocation
 * and a free, and frees have their own stacks. Stacks are nodes of a call tree owned elsewhere.
 */
#ifndef PTMEM_PROFILE_FLOWS_H
#define PTMEM_PROFILE_FLOWS_H

#include "profile/event.h"

struct profile;

/* The numbers of one stack, in the order of an xtree's events. */
enum flow_event {
	FLOW_LIVE_BYTES, FLOW_LIVE_BLOCKS,
	FLOW_TOTAL_BYTES, FLOW_TOTAL_BLOCKS,
	/* by the stack that freed, not the one that allocated */
	FLOW_FREED_BYTES, FLOW_FREED_BLOCKS,
	FLOW_EVENT_COUNT,
};

struct flow {
	uint32_t node;
	uint64_t value[FLOW_EVENT_COUNT];
};

struct flows;

/* @is_full: as in Valgrind's full form, where a block of 0 bytes stays live when it is freed. */
struct flows *flows_new(bool is_full);
/*
 * The blocks are samples, @interval bytes apart on average: values are estimates (estimate.h). Call
 * it before the first event.
 */
void flows_set_sample_interval(struct flows *f, uint64_t interval);
struct flows *flows_clone(const struct flows *f); /* for a forked child */
void flows_free(struct flows *f);

void flows_event(struct flows *f, const struct event *ev);

/*
 * The current contents of @p as flows with live numbers only; @p does not have blocks of ignored
 * functions.
 */
struct flows *flows_from_profile(const struct profile *p);

/* Only the stacks of @f, with whole numbers of blocks, which samples do not have. */
struct flows *flows_rounded(const struct flows *f);

uint32_t flows_count(const struct flows *f); /* stacks: 0 .. count - 1, by first appearance */
const struct flow *flows_get(const struct flows *f, uint32_t i);
bool flows_is_full(const struct flows *f);

#endif
