/* Brings what was read into the form that recording_read.h promises. */
#ifndef PTMEM_RECORDING_RECORDING_CHECK_H
#define PTMEM_RECORDING_RECORDING_CHECK_H

#include "recording/recording.h"

/* NULL, or what is wrong. */
const char *recording_check(struct recording *r);

#endif
