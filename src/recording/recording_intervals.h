/* The timeline and cells of a file, written in intervals of different lengths. */
#ifndef PTMEM_RECORDING_RECORDING_INTERVALS_H
#define PTMEM_RECORDING_RECORDING_INTERVALS_H

#include "recording/recording.h"

/* Converts both to the longest interval, and checks them: NULL, or the error. */
const char *recording_join_intervals(struct recording *r);

/*
 * Merges intervals in pairs, @times times. All are of the same length, and each row is there once,
 * as in the complete file of a recording; the cells of equal leaf, born and died are added up.
 */
void recording_merge_intervals(struct recording *r, unsigned times);

#endif
