/*
 * Reads recordings (recording_write.h). The file is untrusted, and each number is checked, so
 * reports can rely on the following:
 *
 *	all references are to existing rows and texts; a node's parent precedes it
 *	leaves, and rows of tables with keys, are unique and in the order of their keys
 *	timeline and cells are in intervals of one length; intervals are 0 .. rows - 1
 *	born < died < number of intervals, or died = CELL_NEVER: live at the end
 *
 * The last rule differs from the file, where CELL_NEVER cells include those that died.
 */
#ifndef PTMEM_RECORDING_RECORDING_READ_H
#define PTMEM_RECORDING_RECORDING_READ_H

#include "recording/recording.h"

/* Whether @data begins like a recording. */
bool recording_is(const char *data, size_t size);

/* -EINVAL and *@why_out, which the caller frees, if @data is damaged or not a recording. */
int recording_read(const char *data, size_t size, struct recording **out, char **why_out);

/*
 * Reads tables that this ptmem has written, alone: their references, which may lead to rows of
 * another recording, are not checked. NULL if @data is not complete.
 */
struct recording *recording_read_tables(const char *data, size_t size);

#endif
