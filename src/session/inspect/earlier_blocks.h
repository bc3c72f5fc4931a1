/*
 * Blocks that a process had before ptmem attached, read from its heaps while it is stopped for the
 * attach. They start its profile: all have the same call path, are live from snapshot 0 on, and
 * their releases are events.
 */
#ifndef PTMEM_SESSION_INSPECT_EARLIER_BLOCKS_H
#define PTMEM_SESSION_INSPECT_EARLIER_BLOCKS_H

#include "base/types.h"

struct address_space;
struct earlier_blocks;
struct options;
struct run;
struct session;

#define EARLIER_BLOCKS_FRAME "[allocated before attach]"

bool earlier_blocks_are_wanted(const struct options *o);

/*
 * All threads of @space are stopped, and ptmem has not installed anything yet. Stores its blocks in
 * @run.
 */
void earlier_blocks_read(void *ctx, struct address_space *space);

/*
 * Adds the blocks to @s, which has no events yet, if its space is the one read last. If they are
 * not known with certainty it adds none, and logs why.
 */
void session_add_earlier_blocks(struct session *s);

void earlier_blocks_free(struct earlier_blocks *e); /* may be NULL */

#endif
