/* What a recording of samples has besides the estimates: their distance, and exact totals. */
#ifndef PTMEM_RECORDING_CALLS_H
#define PTMEM_RECORDING_CALLS_H

struct recording;
struct session;

/* Adds both to @out as they are now; nothing if the session records every event. */
void recording_calls_fill(const struct session *s, struct recording *out);

#endif
