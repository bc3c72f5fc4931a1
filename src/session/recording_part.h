/*
 * --record-every: the recording of a session in parts, each a file of its own.
 *
 *	part 1           part 2                       part 3
 *	|----------------|----------------------------|----
 *	                 its times, sums and peak are those since its beginning; blocks from
 *	                 before are live from its beginning, at their call paths
 *
 * At the end of a part a copy of ptmem replaces its file by the complete one (recording_now.h). So
 * each part can be read alone, and the sums of all parts are those of one recording. What --listen
 * serves, and the page of --html, come from a history of the whole run (profile/history.h).
 */
#ifndef PTMEM_RECORDING_PART_H
#define PTMEM_RECORDING_PART_H

#include "base/types.h"

struct session;

/* The recording of @s begins: with its first part, if it has several. */
void recording_part_start(struct session *s);
/* The same for a forked child, whose first part has what its parent's current one has. */
void recording_part_fork(const struct session *parent, struct session *child);

/* The name of the current part's file; the caller frees it. Not 0 after a message. */
int recording_part_path(struct session *s, char **path_out);

/*
 * Ends the current part and begins the next one if that is due at @now_ns. Returns the time of the
 * next call; UINT64_MAX: there are no parts.
 */
uint64_t recording_part_tick(struct session *s, uint64_t now_ns);

#endif
