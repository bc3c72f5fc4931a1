/* Reports the events that are missing from a profile since its rings were full. */
#ifndef PTMEM_SESSION_LOST_EVENTS_H
#define PTMEM_SESSION_LOST_EVENTS_H

#include "base/call_totals.h"

struct session;

/*
 * "12 allocations of 3.4 KiB and 9 releases are missing", or with @interval "12 samples of about
 * 6.0 MiB and at least 9 releases are missing". NULL: nothing is. The caller frees it.
 */
char *lost_events_text(const struct lost_events *lost, uint64_t interval);

/* Warns about those of @s, at its end. */
void lost_events_warn(const struct session *s);

#endif
