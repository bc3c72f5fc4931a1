/*
 * Which stacks release how much (--free-stacks), from the profile's totals: what was allocated, or
 * live before the profile, is either live or released. So a free releases its block, a realloc the
 * bytes by which its block shrinks, and blocks that do not count are ignored. Stacks are nodes of
 * the profile's call tree.
 */
#ifndef PTMEM_PROFILE_RELEASES_H
#define PTMEM_PROFILE_RELEASES_H

#include "profile/profile.h"

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
