/* Reduces a recording to the call paths that match an expression. */
#ifndef PTMEM_RECORDING_RECORDING_MATCH_H
#define PTMEM_RECORDING_RECORDING_MATCH_H

#include "recording/recording.h"

/*
 * Drops all leaves, and their rows in other tables, whose paths contain no function, file or object
 * that matches @match, and all releasing stacks that do not match. Names, the timeline and
 * process-wide data remain. -EINVAL and *@why_out, which the caller frees, if the expression is
 * invalid.
 */
int recording_keep_matches(struct recording *r, const char *match, char **why_out);

#endif
