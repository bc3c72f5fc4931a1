/*
 * Blocks that a process had when ptmem attached to it, read from its heaps while it is stopped for
 * the attach. They begin its profile: all of one call path, live from snapshot 0 on, and their
 * releases are events.
 */
#ifndef PTMEM_EARLIER_BLOCKS_H
#define PTMEM_EARLIER_BLOCKS_H

#include "base/types.h"

struct address_space;
struct earlier_blocks;
struct options;
struct run;
struct session;

#define EARLIER_BLOCKS_FRAME "[allocated before attach]"

bool earlier_blocks_are_wanted(const struct options *o);

/* All threads of @space are stopped, and ptmem has put nothing in yet. Keeps its blocks in @run. */
void earlier_blocks_look(struct run *run, struct address_space *space);

/*
 * @s has no events yet. Its space must be the one that was looked at last, or it gets none. Where
 * they cannot be known for certain there are none, either, and a message says why.
 */
void earlier_blocks_add(struct session *s);

void earlier_blocks_free(struct earlier_blocks *e); /* may be NULL */

#endif
