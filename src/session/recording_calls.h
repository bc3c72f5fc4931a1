/* What a recording of samples has besides estimates: the sampling interval, and exact totals. */
#ifndef PTMEM_RECORDING_CALLS_H
#define PTMEM_RECORDING_CALLS_H

struct recording;
struct session;

/* Adds the current values of both to @out; nothing if the session records every event. */
void recording_calls_fill(const struct session *s, struct recording *out);

#endif
