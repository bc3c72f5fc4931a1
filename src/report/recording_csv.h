/*
 * A view of a recording as a table (RFC 4180): a line for each call path that has something of it,
 * with the counters of its leaves. Leaves are of one path if the names and lines of their frames
 * are equal: addresses differ if a library was loaded several times. Of samples "error" is the
 * standard error of the bytes. The call path is in the last column, outermost caller first, " > "
 * between.
 */
#ifndef PTMEM_REPORT_RECORDING_CSV_H
#define PTMEM_REPORT_RECORDING_CSV_H

#include <stdio.h>

#include "recording/recording_view.h"

void recording_csv_write(FILE *out, const struct recording *r, const struct recording_view *v);

#endif
