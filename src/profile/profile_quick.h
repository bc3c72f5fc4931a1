/* Fast functions for frequent events. */
#ifndef PTMEM_PROFILE_PROFILE_QUICK_H
#define PTMEM_PROFILE_PROFILE_QUICK_H

#include "base/quick_event.h"
#include "profile/profile.h"

/* Like profile_event for @count events in a row: EVENT_FREE, and EVENT_ALLOC without align. */
void profile_quick(struct profile *p, const struct quick_event *ev, size_t count);
/* @count blocks will be added soon: makes room for them. */
void profile_reserve(struct profile *p, uint64_t count);
/* A block at @addr will be added soon: prefetches its place. */
void profile_prefetch(const struct profile *p, taddr_t addr);

#endif
