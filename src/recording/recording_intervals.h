/* The timeline and cells of a file, written in intervals of different lengths. */
#ifndef PTMEM_RECORDING_RECORDING_INTERVALS_H
#define PTMEM_RECORDING_RECORDING_INTERVALS_H

#include "recording/recording.h"

/* Converts both to the longest interval, and checks them: NULL, or the error. */
const char *recording_join_intervals(struct recording *r);

#endif
