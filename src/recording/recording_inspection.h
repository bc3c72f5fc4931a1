/* What --inspect found in a recorded process: copied, and as JSON (doc/format.md). */
#ifndef PTMEM_RECORDING_RECORDING_INSPECTION_H
#define PTMEM_RECORDING_RECORDING_INSPECTION_H

#include <stdio.h>

#include "recording/recording.h"
#include "recording/recording_write.h"

/* Adds the inspection of @from to @r, which has the leaves of its pins. NULL: there is none. */
void recording_inspection_add(const struct recording *from, struct recording *r);
/* Writes its tables. */
void recording_inspection_put(struct recording_out *out, const struct recording *r);

/* An object, or null if @r has no inspection. */
void recording_inspection_write(FILE *out, const struct recording *r);

#endif
