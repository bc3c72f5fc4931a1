/*
 * The profile of one address space: call tree, live blocks, totals and
 * snapshots, fed by events alone. Rules: doc/massif.md sections 2.1 to 2.7.
 *
 *	event -> blocks (which one is it) -> leaf (bytes by stack) -> counters -> snapshots
 *
 * A leaf is a node of the call tree that owns or owned blocks; leaves are
 * numbered 1, 2, ... in the order of their first block. Bytes by leaf at a
 * detailed snapshot are kept as a journal of old values: each leaf saves its
 * value at its first change after a snapshot, so that a snapshot costs what
 * changes, not the whole tree.
 *
 * Invariants (checked in debug builds by profile_check):
 *	heap = sum of live bytes over leaves = sum of sizes over blocks (held ones included)
 *	allocated_bytes = sum of total bytes over leaves
 *	extra = sum over blocks of admin + capacity - size (no slop where the program announced the
 *	block)
 * Each block adds its weight (estimate.h; without sampling its size, extra and 1). Blocks include
 * mapped pages (capacity = size, no admin), and those removed by a realloc at an ignored site,
 * which stay counted forever (2.8).
 */
#ifndef PTMEM_PROFILE_PROFILE_H
#define PTMEM_PROFILE_PROFILE_H

#include "base/heap_calls.h"
#include "base/types.h"
#include "profile/blocks.h"
#include "profile/calltree.h"
#include "profile/estimate.h"
#include "profile/event.h"

/*
 * With samples (sample_interval) all numbers are estimates. Then numbers of blocks and calls are in
 * fractional units, which profile_count converts to whole ones, and a realloc is a free and an
 * allocation, since the size of an unsampled block is unknown.
 */

enum time_unit { TIME_MS, TIME_BYTES, TIME_INSTRUCTIONS };

struct profile_options {
	enum time_unit time_unit;
	double peak_inaccuracy;   /* percent, 1.0 */
	bool peak_at_exit;        /* the final state may become the peak */
	uint32_t detailed_freq;   /* 10 */
	uint32_t max_snapshots;   /* 100; at least 10 */
	uint32_t heap_admin;      /* 8 */
	uint32_t alignment;       /* 16 */
	uint32_t process;         /* process id, for messages of -v -v */
	bool no_heap;             /* --heap=no: blocks are tracked, but not counted in snapshots */
	/* of mapped ranges, bytes: the size of a block; 0 = a page; 1 for brk */
	uint32_t granule;
	/* blocks record when they were allocated (or last resized): profile_block_clock */
	bool keep_times;
	/* mean distance of samples in bytes; 0 = blocks are not samples */
	uint64_t sample_interval;
	/* keep a history (history.h); needs keep_times, no mapped ranges */
	bool keep_history;
	bool keep_whole_history;  /* and another one that is never restarted */
	/* keep what each leaf had at the exact peak (history.h): cheaper than a history */
	bool keep_peak;
	/* Whether blocks of @node are not counted at all; called once per leaf. NULL = none. */
	bool (*is_ignored)(void *ctx, uint32_t node);
	void *is_ignored_ctx;
	/*
	 * Groups of leaves whose common peak is kept (groups.h), and which of them a leaf of @node
	 * is in; called once per leaf, with is_ignored_ctx.
	 */
	size_t groups;
	void (*find_groups)(void *ctx, uint32_t node, bool *is_in);
	/* TIME_INSTRUCTIONS: the current counter; called at each event. */
	uint64_t (*instructions)(void *ctx);
	void *instructions_ctx;
};

struct leaf {
	uint32_t node;
	uint32_t epoch;           /* epoch of the last saved value; see profile.c */
	uint64_t live_bytes, live_blocks;
	uint64_t live_variance, total_variance; /* of the bytes; 0 without sampling */
	/* ever allocated here; for a realloc, which is a new block, the growth */
	uint64_t total_bytes, total_blocks;
	/* events that allocated here; for mappings not the pages */
	uint64_t calls;
};

enum snapshot_kind { SNAPSHOT_EMPTY, SNAPSHOT_DETAILED, SNAPSHOT_PEAK };

struct snapshot {
	enum snapshot_kind kind;
	uint64_t time;            /* in the time unit */
	uint64_t heap, extra, stacks;
};

struct profile_totals {
	uint64_t allocations;     /* blocks ever allocated, including realloc(NULL, n) and pages */
	uint64_t reallocations;
	/* including realloc(p, 0) that freed, and pages unmapped or mapped over */
	uint64_t frees;
	uint64_t allocated_bytes; /* requested by allocations; a realloc adds its growth */
	uint64_t failed;          /* calls that returned no memory */
	uint64_t unknown_frees;   /* free, realloc, unmap of something not live here */
	/* of these, free of an address 8 or 16 bytes below a live block */
	uint64_t header_frees;
	uint64_t replaced;        /* allocations at a live address: should be 0 */
	uint64_t replaced_blocks; /* bytes released by these, in the unit of frees */
	uint64_t live_bytes, live_blocks;
	uint64_t earlier_bytes, earlier_blocks; /* live at the start (EVENT_EARLIER) */
	uint64_t extra;
	uint64_t peak_bytes;      /* exact maximum of live_bytes */
	uint64_t peak_blocks;     /* live blocks at that moment */
	uint64_t peak_time_ns;    /* since profile_start */
	/* of live_bytes, peak_bytes, allocated_bytes; 0 without sampling */
	uint64_t live_variance, peak_variance, allocated_variance;
	uint64_t samples;         /* sampled allocations; 0 without sampling */
	uint64_t marked;          /* allocations that the program sampled itself (weighted) */
	uint64_t peak_stacks;     /* maximum of the bytes of all stacks (EVENT_STACK) */
};

struct profile;

struct leaf_group;

struct profile *profile_new(const struct profile_options *options, uint64_t start_ns);
/* A copy for a forked child, snapshots included. profile_set_ctx replaces the ctx pointers. */
struct profile *profile_clone(const struct profile *p);
void profile_set_ctx(struct profile *p, void *is_ignored_ctx, void *instructions_ctx);
void profile_set_process(struct profile *p, uint32_t process);
void profile_free(struct profile *p);

struct calltree *profile_calltree(struct profile *p);
const struct blocks *profile_blocks(const struct profile *p);
/*
 * Calls @fn for every live block that counts, including several at one address and nested ones,
 * until it returns non-zero.
 */
int profile_each_block(const struct profile *p, int (*fn)(void *ctx, const struct block *block),
		       void *ctx);

/*
 * Calls @fn for every live block that does not count (is_ignored), until it returns non-zero.
 * -EAGAIN: some are in a realloc, so their addresses are unknown.
 */
int profile_each_ignored(const struct profile *p, int (*fn)(void *ctx, const struct block *block),
			 void *ctx);

/* an estimate of the number of calls by profile_each_block */
uint64_t profile_block_count(const struct profile *p);

/* Like the options, for a replay, which learns them late. Call it before the first event. */
void profile_set_sample_interval(struct profile *p, uint64_t interval);
/* The start time, for events before profile_start (a replay learns it late). */
void profile_set_start(struct profile *p, uint64_t time_ns);
/*
 * Takes snapshot 0, all zero except for initial mappings: the program's first code is about to
 * run.
 */
void profile_start(struct profile *p, uint64_t time_ns);
void profile_event(struct profile *p, const struct event *ev);
/* A thread has ended: restores the block of a realloc that it did not finish. */
void profile_thread_exit(struct profile *p, uint32_t thread);
/* The end: the final state may become the peak (peak_at_exit). */
void profile_finish(struct profile *p, uint64_t time_ns);

/* The time of the last event, of whatever kind: none that follows is earlier. */
uint64_t profile_now(const struct profile *p);

/* Bytes of all stacks, from the last EVENT_STACK. */
uint64_t profile_stacks(const struct profile *p);
const struct profile_totals *profile_totals(const struct profile *p);
/* Group @index of profile_options.groups. */
const struct leaf_group *profile_group(const struct profile *p, size_t index);
const struct profile_options *profile_options(const struct profile *p);

/* Converts @units, a number of blocks or calls (of a leaf or the totals), to a whole number. */
uint64_t profile_count(const struct profile *p, uint64_t units);
/* The standard error of the estimate @bytes with @variance; 0 without sampling. */
double profile_error(const struct profile *p, uint64_t variance);
/*
 * An estimate of the variance of the @bytes that @leaf held at some time, assuming that its blocks
 * then were like all its blocks. Can be summed over several leaves.
 */
uint64_t profile_leaf_variance(const struct profile *p, uint32_t leaf, uint64_t bytes);

/* What @block adds to the totals: its size and 1, or its weight as a sample. */
struct weight profile_block_weight(const struct profile *p, const struct block *block);

/* Whether a counted or ignored block begins at @addr; blocks in a realloc do not count. */
bool profile_has_block(const struct profile *p, taddr_t addr);
/* Whether @thread is in a realloc that removed the block at @addr. */
bool profile_is_moving(const struct profile *p, uint32_t thread, taddr_t addr);

uint32_t profile_leaf_count(const struct profile *p); /* highest leaf index */
const struct leaf *profile_leaf(const struct profile *p, uint32_t leaf);

uint32_t profile_snapshot_count(const struct profile *p);
const struct snapshot *profile_snapshot(const struct profile *p, uint32_t i);

/*
 * The live bytes of every leaf at detailed (or peak) snapshot @i; UINT32_MAX: now. *bytes_out:
 * array indexed by leaf (index 0 unused), freed by the caller; returns the highest leaf that
 * existed then.
 */
uint32_t profile_snapshot_leaves(const struct profile *p, uint32_t i, uint64_t **bytes_out);

/* The current state as a snapshot (for monitor commands). */
void profile_current(const struct profile *p, uint64_t time_ns, struct snapshot *out);

/* block.time_us of a block allocated at @time_ns: microseconds since the first event. */
uint64_t profile_block_clock(const struct profile *p, uint64_t time_ns);

size_t profile_memory(const struct profile *p); /* memory used besides blocks and call tree */

/* Fast functions for frequent events. */

/*
 * Like profile_event for @count events in a row: EVENT_FREE, and EVENT_ALLOC without align. Returns
 * how many are allocations.
 */
size_t profile_quick(struct profile *p, const struct quick_event *ev, size_t count);
/* @count blocks will be added soon: makes room for them. */
void profile_reserve(struct profile *p, uint64_t count);
/* A block at @addr will be added soon: prefetches its place. */
void profile_prefetch(const struct profile *p, taddr_t addr);

/* CHECKs all invariants of a profile; slow. */
void profile_check(const struct profile *p);

#endif
