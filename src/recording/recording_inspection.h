/* What --inspect found at the end of a recorded process, as JSON (doc/format.md). */
#ifndef PTMEM_RECORDING_RECORDING_INSPECTION_H
#define PTMEM_RECORDING_RECORDING_INSPECTION_H

#include <stdio.h>

#include "recording/recording.h"

/* An object, or null if @r has no inspection. */
void recording_inspection_write(FILE *out, const struct recording *r);

#endif
