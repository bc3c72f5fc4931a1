/*
 * --record-limit: recordings whose file has at most a given size. What is thinned is said in the
 * recording itself, as something lost.
 */
#ifndef PTMEM_RECORDING_RECORDING_LIMIT_H
#define PTMEM_RECORDING_RECORDING_LIMIT_H

#include "recording/recording.h"

#define RECORDING_LEAST_LIMIT 65536 /* bytes; less than that could not be kept */

/*
 * A copy of @r, which is as recording_build_all makes it, whose file has at most @limit bytes; the
 * caller frees it. NULL: that of @r has.
 */
struct recording *recording_limit(const struct recording *r, uint64_t limit);

#endif
