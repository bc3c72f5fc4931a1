/*
 * Reads recordings (recording_write.h). The file is untrusted: each number is checked, so that
 * reports may use what is returned without care:
 *
 *	all references are to rows and texts that exist; a node's parent is before it
 *	leaves, and the rows of each table with keys, are once each, in the order of their keys
 *	timeline and cells are in intervals of one length; intervals are 0 .. rows - 1
 *	born < died < number of intervals, or died = CELL_NEVER: then what remains at the end
 *
 * The last one differs from the file, where cells that died are also in those that never did.
 */
#ifndef PTMEM_RECORDING_RECORDING_READ_H
#define PTMEM_RECORDING_RECORDING_READ_H

#include "recording/recording.h"

/* Whether it begins as a recording does. */
bool recording_is(const char *data, size_t size);

/* -EINVAL and *@why_out, which the caller frees, if @data is damaged or not a recording. */
int recording_read(const char *data, size_t size, struct recording **out, char **why_out);

#endif
