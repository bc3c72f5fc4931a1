/*
 * What the files of the profile share: profile.c (events), profile_quick.c, realloc.c (blocks
 * that are between the halves of a realloc), profile_check.c. Nobody else
 * includes this.
 */
#ifndef PTMEM_PROFILE_PROFILE_INTERNAL_H
#define PTMEM_PROFILE_PROFILE_INTERNAL_H

#include "base/vec.h"
#include "profile/overlay.h"
#include "profile/pages.h"
#include "profile/profile.h"
#include "profile/snapshots.h"

#define LEAF_IGNORED UINT32_MAX

/* Which table a block was taken from. */
enum held_from { HELD_UNKNOWN, HELD_COUNTED, HELD_IGNORED };

/* A block taken out by the first half of a realloc. Its bytes stay counted. */
struct held {
	uint32_t thread;
	enum held_from from;
	struct block block; /* HELD_UNKNOWN: only the address */
};

struct profile {
	struct profile_options options;
	struct calltree *calltree;
	struct blocks *blocks;
	struct blocks *ignored;   /* blocks of ignored leaves: their frees are not unknown ones */
	/* blocks under others; NULL until the program announces one of its own */
	struct overlay *overlay;
	struct pages pages;
	VEC(struct held) held;    /* at most one a thread */
	VEC(struct leaf) leaf;    /* [0] is not used */
	uint32_t *leaf_of_node;   /* 0 = not asked yet, LEAF_IGNORED */
	size_t leaf_of_node_count;
	struct snapshots snapshots;
	struct profile_totals totals;
	uint64_t stacks;
	uint64_t time_bytes;      /* t of time unit B */
	uint64_t time_instructions;
	uint64_t start_ns, first_ns, now_ns;
	uint64_t time_ms;         /* = (now_ns - first_ns) / 1000000 */
	bool has_first;           /* first_ns: the reading that counts as 0 */
	/* Of blocks that a realloc at an ignored site took away: counted for ever (2.8). */
	uint64_t lost_bytes, lost_extra, lost_blocks;
	uint64_t counted_bytes, counted_blocks; /* of EVENT_COUNT */
};

/* The leaf of @node, made if it is new; LEAF_IGNORED if its blocks do not count. */
uint32_t profile_get_leaf(struct profile *p, uint32_t node);

/* The attempts of 2.3 with the state now. @what happened: see snapshots.h. */
void profile_try_normal(struct profile *p, const char *what);
void profile_try_peak(struct profile *p, const char *what);

/* Takes the block at @addr out of whichever table it is in. Its bytes stay counted. */
struct held profile_hold(struct profile *p, taddr_t addr);

/* Puts a block that counts, or one that does not, into its table. A counted block that was live
 * at the address must have been freed unseen: it leaves the sums, and counts as replaced. */
void profile_add_block(struct profile *p, const struct block *block);
void profile_add_ignored(struct profile *p, taddr_t addr, uint64_t size);
void profile_free_unseen(struct profile *p, const struct block *block);

/* Adds to, takes from, a leaf and the totals. @extra: admin and slop of all @blocks. */
void profile_count_in(struct profile *p, uint32_t leaf, uint64_t bytes, uint64_t blocks,
		      uint64_t extra);
void profile_count_out(struct profile *p, uint32_t leaf, uint64_t bytes, uint64_t blocks,
		      uint64_t extra);

/* B time goes on by @bytes. */
void profile_pass_bytes(struct profile *p, uint64_t bytes);

/* The exact maximum; after each event that added bytes. */
void profile_note_peak(struct profile *p);

/* A block comes to be, goes: the rows "allocate" and "free" of 2.2. */
void profile_alloc(struct profile *p, const struct event *ev);
void profile_free_block(struct profile *p, const struct block *block);

static inline uint64_t profile_block_extra(const struct profile *p, const struct block *block)
{
	return p->options.heap_admin + block->capacity - block->size;
}

static inline uint64_t profile_granule(const struct profile *p)
{
	return p->options.granule ? p->options.granule : PAGE_SIZE_MIN;
}

/* realloc.c */
void profile_realloc_begin(struct profile *p, const struct event *ev);
void profile_realloc_end(struct profile *p, const struct event *ev);
void profile_put_back_thread(struct profile *p, uint32_t thread);
void profile_put_back_all(struct profile *p);

#endif
