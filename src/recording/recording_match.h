/* What remains of a recording if only call paths that match an expression are wanted. */
#ifndef PTMEM_RECORDING_RECORDING_MATCH_H
#define PTMEM_RECORDING_RECORDING_MATCH_H

#include "recording/recording.h"

/*
 * Drops all leaves, with their rows in other tables, in whose paths no function, file or object
 * matches @match, and all stacks that release blocks but for those that match. Names, the timeline
 * and what is known of the whole process remain. -EINVAL and *@why_out, which the caller frees, if
 * the expression is wrong.
 */
int recording_keep_matches(struct recording *r, const char *match, char **why_out);

#endif
