/* Converts a tracee's event to one that profiles count. */
#ifndef PTMEM_SESSION_COUNTED_EVENT_H
#define PTMEM_SESSION_COUNTED_EVENT_H

#include "profile/event.h"
#include "tracee/state/heap_event.h"

/* @he without its stack: the node is 0, since it depends on the profile. */
struct event counted_event(const struct heap_event *he);

#endif
