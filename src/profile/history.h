/*
 * The history of a profile, for recordings (doc/format.md): a timeline of at most HISTORY_INTERVALS
 * equal intervals, cells (cells.h), counters by leaf, and the leaves at the exact peak. Everything
 * is derived from events, so a replay gives the same history.
 *
 * With samples all numbers are estimates: blocks and other counts are in units of 1 /
 * ESTIMATE_UNIT, as in struct profile_totals, and bytes have variances, which are 0 otherwise
 * (estimate.h).
 *
 * An interval is 1 << shift milliseconds. When time runs beyond the last one, or when there are
 * too many cells, neighbours are merged in pairs, and shift grows by one.
 *
 * A history may be restarted: then it is one of what happens from that moment on. Its times, sums
 * and peak are those since then, and blocks from before are live from its beginning (CELL_BEFORE).
 * A profile may keep two, one of which is never restarted.
 *
 * This is the interface for readers; profile.c and its helpers change it (profile_update.h).
 */
#ifndef PTMEM_PROFILE_HISTORY_H
#define PTMEM_PROFILE_HISTORY_H

#include "base/alloc.h"
#include "base/hash.h"
#include "base/types.h"
#include "profile/cells.h"
#include "profile/profile.h"

#define HISTORY_INTERVALS 512u
#define HISTORY_UNKNOWN UINT64_MAX

/* The state at the end of an interval; sums are since the start. */
struct history_interval {
	uint64_t live_bytes, live_blocks;
	uint64_t peak_bytes;        /* maximum of live bytes within it */
	uint64_t allocations, allocated_bytes, releases; /* reallocs count in all three */
	uint64_t rss, address_space; /* bytes, the last sample; HISTORY_UNKNOWN = none */
	uint64_t live_variance, allocated_variance;
};

/* By powers of two: bucket k counts values from 2^(k-1) to 2^k - 1, bucket 0 the value 0. */
struct histogram {
	uint64_t *count;            /* of bucket first + i */
	uint8_t first, size;
};

/* Parallel to struct leaf of the same number. */
struct history_leaf {
	uint64_t temporary, reallocs, moved;
	uint64_t max_bytes, max_variance;
	uint32_t max_ms;            /* when max_bytes was first reached */
	uint32_t touched;           /* the last history.mark at which it changed */
	uint32_t changed;           /* history.change_mark if it is in history.changed */
	uint64_t born_bytes, born_blocks, born_variance; /* allocated in this interval, live */
	/* at the peak, if peak_epoch is the history's; else the live values */
	uint64_t peak_bytes, peak_blocks, peak_variance;
	uint64_t peak_epoch;
	/* by the last thread that allocated here; other threads' are in history.shares */
	uint32_t thread;            /* index of that thread; UINT32_MAX = none yet */
	uint64_t thread_blocks, thread_bytes, thread_variance;
	struct histogram sizes, lifetimes;
	uint64_t lived_us;          /* sum of lifetimes; UINT64_MAX = more than that */
	/* totals of the leaf when the history began */
	uint64_t base_blocks, base_bytes, base_variance;
};

struct history_peak {
	uint64_t bytes, blocks, variance;
	uint64_t time_ns;           /* since the history began */
};

struct history_thread {
	uint32_t id;
	taddr_t last;               /* its last allocated block; 0 = released */
};

/* Blocks and bytes that a thread allocated at a leaf. */
struct history_share {
	uint32_t leaf, thread;
	uint64_t blocks, bytes, variance;
};

struct history {
	struct history_interval interval[HISTORY_INTERVALS];
	uint32_t current;           /* index of the current interval */
	uint32_t shift;
	uint64_t end_ms;            /* its end, as base_ms */
	uint64_t most_bytes;        /* live within it */
	uint32_t mark;              /* incremented to collect leaves in touched anew */
	uint64_t peak_epoch;        /* incremented with each new peak */
	struct history_peak peak;
	/* when it began: 0, or on the profile's clock, and since profile_start */
	uint64_t base_ms, base_ns;
	struct profile_totals base; /* the totals then */
	VEC(struct history_leaf) leaf; /* at least as many as in the profile; [0] is not used */
	VEC(uint32_t) touched;      /* leaves that changed in this interval */
	/* for incremental writers: leaves that changed since history_forget_changes */
	VEC(uint32_t) changed;
	uint32_t change_mark;       /* mark of leaves in changed, of one writer; 0 = no writer */
	struct cells cells;
	struct cells shares;        /* born, died: the halves of a thread's index */
	VEC(struct history_thread) thread;
	HASH(uint32_t) thread_by_id; /* indexes of thread */
	uint32_t last_thread;       /* index of the thread of the last event */
	/* with two or more threads: how many of their last blocks have each hash */
	uint16_t *last_filter;
	struct history *next;       /* of the same profile; NULL = none */
};

/* The history of @p that may be restarted; NULL unless profile_options.keep_history. */
struct history *profile_history(const struct profile *p);
/* The one that is not, with profile_options.keep_whole_history; otherwise the same. */
struct history *profile_whole_history(const struct profile *p);

struct history_held {
	uint64_t bytes, blocks, variance;
};

/* The bytes and blocks of @leaf at the peak of @h, a history of @p. */
struct history_held profile_held_at_peak(const struct profile *p, const struct history *h,
					 uint32_t leaf);

/* The same at the peak that profile_options.keep_peak keeps, but for the blocks, which are 0. */
struct history_held profile_at_peak(const struct profile *p, uint32_t leaf);

/* Updates the current interval and the cells of all histories, so that nothing is missing. */
void profile_sync_history(struct profile *p);

/*
 * Restarts the history of @p at the time of its last event. No block may have been allocated in
 * that millisecond.
 */
void profile_restart_history(struct profile *p);
/* The same for the one that is never restarted otherwise, too. */
void profile_restart_histories(struct profile *p);
/* When the history that may be restarted began (CLOCK_MONOTONIC, ns): its time 0. */
uint64_t profile_history_begin(const struct profile *p);
/* When the millisecond of the last event ends (CLOCK_MONOTONIC, ns). */
uint64_t profile_next_ms(const struct profile *p);

/* A sample of the process's memory, for the current interval. */
void history_sample(struct history *h, uint64_t rss, uint64_t address_space);

/* Empties `changed`; from now on each profile_sync_history fills it. */
void history_forget_changes(struct history *h);

/*
 * What each thread allocated at each leaf, by leaf and thread; the caller frees *out. Returns the
 * count.
 */
size_t history_shares(const struct history *h, struct history_share **out);

#endif
