/* Event files (events.h) that could not be written to their end. */
#ifndef PTMEM_PROFILE_EVENTS_CUT_H
#define PTMEM_PROFILE_EVENTS_CUT_H

#include "base/types.h"

/*
 * A file of events at @path that could not be written to its end: its last line is cut off if it is
 * not whole. Whether there is an event in it, and the time of the last one.
 */
bool events_cut(const char *path, uint64_t *time_ns_out);

#endif
