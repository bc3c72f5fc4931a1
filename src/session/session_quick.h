/* Plain events in batches. */
#ifndef PTMEM_SESSION_QUICK_H
#define PTMEM_SESSION_QUICK_H

#include "base/quick_event.h"

struct session;

/* Whether a struct quick_event contains everything that @s needs. */
bool session_wants_quick(const struct session *s);

/* Counts them, in their order. */
void session_quick(struct session *s, const struct quick_event *ev, size_t count);

#endif
