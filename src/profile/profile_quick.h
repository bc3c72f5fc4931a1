/* What events that come in millions take. */
#ifndef PTMEM_PROFILE_PROFILE_QUICK_H
#define PTMEM_PROFILE_PROFILE_QUICK_H

#include "base/quick_event.h"
#include "profile/profile.h"

/* As profile_event, for @count in a row of EVENT_FREE, and EVENT_ALLOC without align. */
void profile_quick(struct profile *p, uint64_t time_ns, const struct quick_event *ev, size_t count);
/* @count blocks will be added soon: room is made for them. */
void profile_reserve(struct profile *p, uint64_t count);
/* A block at @addr will be added soon: its place is fetched meanwhile. */
void profile_prefetch(const struct profile *p, taddr_t addr);

#endif
