/*
 * Sums by stack of what was allocated, is live and was released (--xtree-memory), and of what each
 * stack releases (--free-stacks). A profile itself knows only the stacks that allocate.
 */
#ifndef PTMEM_PROFILE_FLOWS_H
#define PTMEM_PROFILE_FLOWS_H

#include "profile/event.h"
#include "profile/profile.h"

/*
 * What each distinct stack allocated, holds and freed: the numbers of an xtree (doc/massif.md
 * 2.15). Separate from the profile, since here no function is ignored, a realloc is an allocation
 * and a free, and frees have their own stacks. Stacks are nodes of a call tree owned elsewhere.
 */

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

/*
 * Which stacks release how much (--free-stacks), from the profile's totals: what was allocated, or
 * live before the profile, is either live or released. So a free releases its block, a realloc the
 * bytes by which its block shrinks, and blocks that do not count are ignored. Stacks are nodes of
 * the profile's call tree.
 */

struct release_sum {
	uint64_t bytes, blocks;
};

/* Of one stack. */
struct release {
	uint32_t node;          /* 0 = unknown */
	struct release_sum all, recent; /* recent: since releases_restart */
};

struct releases;

struct releases *releases_new(void);
struct releases *releases_clone(const struct releases *r); /* for a forked child */
void releases_free(struct releases *r);                    /* may be NULL */

/* @node released everything that was released since the last call. @r NULL: does nothing. */
void releases_note(struct releases *r, const struct profile_totals *totals, uint32_t node);

/* What is recent begins now. @r NULL: does nothing. */
void releases_restart(struct releases *r);

uint32_t releases_count(const struct releases *r); /* stacks: 0 .. count - 1 */
const struct release *releases_get(const struct releases *r, uint32_t i);

#endif
