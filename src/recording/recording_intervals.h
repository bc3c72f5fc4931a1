/* Timeline and cells of a file, which were written in intervals of several lengths. */
#ifndef PTMEM_RECORDING_RECORDING_INTERVALS_H
#define PTMEM_RECORDING_RECORDING_INTERVALS_H

#include "recording/recording.h"

/* Brings both into the longest of the lengths, and checks them: NULL, or what is wrong. */
const char *recording_join_intervals(struct recording *r);

#endif
