/*
 * --record-limit while the program runs: the file of a recording never becomes larger.
 *
 *	appended to, each second        until it would be too large
 *	begun anew (recording_file.h)   then; what it has at once is at most half of the limit
 *	written anew by copies of ptmem otherwise; the copies thin it (recording/recording_limit.h)
 *
 * Copies take at most a twentieth of a CPU. All replace the file at once, so it can always be
 * read.
 */
#ifndef PTMEM_RECORDING_BOUND_H
#define PTMEM_RECORDING_BOUND_H

#include "base/types.h"

struct session;

/* Whether the file of @s may not become as large as what was collected makes it. */
bool recording_bound_is_reached(const struct session *s);
/* Whether it is too large even if it is begun anew, which was done. */
bool recording_bound_must_rewrite(const struct session *s);

/* Starts a copy that writes the file if it is time; after the end writes it: 0 or -errno. */
int recording_bound_rewrite(struct session *s);
/* Waits for a copy that is at work, which would overwrite what is written later. */
void recording_bound_wait(struct session *s);

#endif
