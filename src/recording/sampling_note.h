/* The note for estimates in reports. */
#ifndef PTMEM_RECORDING_SAMPLING_NOTE_H
#define PTMEM_RECORDING_SAMPLING_NOTE_H

#include "base/types.h"

/* "512.0 KiB", or, where --budget lengthened it, "512.0 KiB to 4.0 MiB". The caller frees it. */
char *sampling_range(uint64_t interval, uint64_t longest);

/* " (estimate, sampled every 512.0 KiB)", or "" if @interval is 0. The caller frees it. */
char *sampling_note(uint64_t interval, uint64_t longest);

#endif
