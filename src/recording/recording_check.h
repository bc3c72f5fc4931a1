/* Converts what was read to the form guaranteed by recording_read.h. */
#ifndef PTMEM_RECORDING_RECORDING_CHECK_H
#define PTMEM_RECORDING_RECORDING_CHECK_H

#include "recording/recording.h"

/* @is_sampled: the file contains estimates. Returns NULL, or the error. */
const char *recording_check(struct recording *r, bool is_sampled);

#endif
