/* The leaves of a recording whose call paths match an expression. */
#ifndef PTMEM_REPORT_RECORDING_MATCH_H
#define PTMEM_REPORT_RECORDING_MATCH_H

#include "recording/recording.h"

/*
 * By leaf (row), in *@out, which the caller frees: whether a function, file or
 * object of its path matches @match; NULL = all do, if @match is NULL. -EINVAL
 * and *@why_out, which the caller frees, if the expression is wrong.
 */
int recording_match(const struct recording *r, const char *match, bool **out, char **why_out);

#endif
