/*
 * What a profile remembers of its past, for recordings (doc/format.md): a timeline of at most
 * HISTORY_INTERVALS equal intervals, cells (cells.h), counters by leaf, and the leaves at the exact
 * peak. All of it follows from the events alone, so a replay has the same.
 *
 * Of samples all numbers are estimates: blocks and other counts are in units of 1 / ESTIMATE_UNIT,
 * as in struct profile_totals, and bytes have variances, which are 0 otherwise (estimate.h).
 *
 * An interval is 1 << shift milliseconds. When time runs beyond the last one, or when there are
 * too many cells, neighbours are merged in pairs, and shift grows by one.
 *
 * This is the interface for readers; profile.c and its helpers change it (history_update.h).
 */
#ifndef PTMEM_PROFILE_HISTORY_H
#define PTMEM_PROFILE_HISTORY_H

#include "base/types.h"
#include "base/vec.h"
#include "profile/cells.h"

#define HISTORY_INTERVALS 512u
#define HISTORY_UNKNOWN UINT64_MAX

struct profile;

/* The state at the end of an interval; sums are those since the beginning. */
struct history_interval {
	uint64_t live_bytes, live_blocks;
	uint64_t peak_bytes;        /* the most that was live within it */
	uint64_t allocations, allocated_bytes, releases; /* reallocs are in all three */
	uint64_t rss, address_space; /* bytes, the last sample; HISTORY_UNKNOWN = none */
	uint64_t live_variance, allocated_variance;
};

/* By powers of two: bucket k counts values from 2^(k-1) to 2^k - 1, bucket 0 the value 0. */
struct histogram {
	uint64_t *count;            /* of bucket first + i */
	uint8_t first, size;
};

/* Beside struct leaf of the same number. */
struct history_leaf {
	uint64_t temporary, reallocs, moved;
	uint64_t max_bytes, max_variance;
	uint32_t max_ms;            /* when max_bytes was first reached */
	uint32_t touched;           /* the last history.mark at which it changed */
	uint32_t changed;           /* history.change_mark if it is in history.changed */
	uint64_t born_bytes, born_blocks, born_variance; /* allocated in this interval, and live */
	/* at the peak, if peak_epoch is the history's; else what is live now */
	uint64_t peak_bytes, peak_blocks, peak_variance;
	uint64_t peak_epoch;
	/* by the last thread that allocated here; what others did is in history.shares */
	uint32_t thread;            /* index of it; UINT32_MAX = none yet */
	uint64_t thread_blocks, thread_bytes, thread_variance;
	struct histogram sizes, lifetimes;
};

struct history_thread {
	uint32_t id;
	taddr_t last;               /* the last block that it allocated; 0 = released */
};

/* Blocks and bytes that a thread allocated at a leaf. */
struct history_share {
	uint32_t leaf, thread;
	uint64_t blocks, bytes, variance;
};

struct history {
	struct history_interval interval[HISTORY_INTERVALS];
	uint32_t current;           /* index of the interval that is not over */
	uint32_t shift;
	uint64_t end_ms;            /* when it is over */
	uint64_t most_bytes;        /* live within it */
	uint32_t mark;              /* changes when leaves are to be noted in touched again */
	uint64_t peak_epoch;        /* changes with each new peak */
	VEC(struct history_leaf) leaf; /* as many as the profile has, at least; [0] is not used */
	VEC(uint32_t) touched;      /* leaves that changed in this interval */
	/* for writers that follow it: leaves that changed since history_forget_changes */
	VEC(uint32_t) changed;
	uint32_t change_mark;       /* of leaves in changed; 0 = no writer follows it */
	struct cells cells;
	struct cells shares;        /* born, died: the halves of a thread's index */
	VEC(struct history_thread) thread;
	uint32_t *thread_slot;      /* hash of ids: index + 1, 0 = empty; NULL below two threads */
	uint32_t thread_slots;      /* a power of two, or 0 */
	uint32_t last_thread;       /* index of the thread of the last event */
	/* with two threads and more: how many have a last block of a hash */
	uint16_t *last_filter;
};

/* The history of @p; NULL unless profile_options.keep_history. */
struct history *profile_history(const struct profile *p);

struct history_held {
	uint64_t bytes, blocks, variance;
};

/* What @leaf of @p, which has a history, held at the peak. */
struct history_held profile_held_at_peak(const struct profile *p, uint32_t leaf);

/* Brings the interval that is not over, and the cells, up to date: nothing is missing then. */
void profile_sync_history(struct profile *p);

/* A sample of the process's memory, for the current interval. */
void history_sample(struct history *h, uint64_t rss, uint64_t address_space);

/* Empties `changed`, which from now on is filled by each profile_sync_history. */
void history_forget_changes(struct history *h);

/* What threads allocated at which leaves, by leaf and thread; *out is the caller's. */
size_t history_shares(const struct history *h, struct history_share **out);

#endif
