/* What a recording of samples has besides estimates: the sampling interval, and exact totals. */
#ifndef PTMEM_RECORDING_CALLS_H
#define PTMEM_RECORDING_CALLS_H

#include "base/call_totals.h"

struct recording;
struct recording_span;
struct session;

/* The exact totals since the session began. */
struct call_totals recording_calls_now(const struct session *s);

/* Adds both to @out, the totals of @span; nothing if the session records every event. */
void recording_calls_fill(const struct session *s, const struct recording_span *span,
			  struct recording *out);

#endif
