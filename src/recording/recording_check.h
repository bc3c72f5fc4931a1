/* Brings what was read into the form that recording_read.h promises. */
#ifndef PTMEM_RECORDING_RECORDING_CHECK_H
#define PTMEM_RECORDING_RECORDING_CHECK_H

#include "recording/recording.h"

/* @is_sampled: the file says that it holds estimates. NULL, or what is wrong. */
const char *recording_check(struct recording *r, bool is_sampled);

#endif
