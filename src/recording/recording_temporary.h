/* Which allocations are temporary: what ptmem counted, or those that lived less than a time. */
#ifndef PTMEM_RECORDING_RECORDING_TEMPORARY_H
#define PTMEM_RECORDING_RECORDING_TEMPORARY_H

#include "recording/recording.h"

/* "100us", "1.5ms", "2s" or "2" in microseconds: false if @text is no time, or 0. */
bool recording_temporary_parse(const char *text, uint64_t *us_out);

/*
 * Counts as temporary what lived less than @us, rounded up to the end of a bucket of lifetimes: a
 * power of two, which r->temporary_below becomes. With samples, the counts become estimates.
 */
void recording_temporary_within(struct recording *r, uint64_t us);

/* "released within 1,024 us", or NULL for what ptmem counted. The caller frees it. */
char *recording_temporary_text(const struct recording *r);

#endif
