/*
 * The table of snapshots and the bytes by leaf at the detailed ones. Used by
 * profile.c alone; rules: doc/massif.md sections 2.1, 2.3, 2.4.
 *
 * A detailed snapshot copies nothing. Each leaf saves its live bytes in that snapshot's journal
 * before it first changes, so
 *
 *	bytes(leaf, newest detailed) = its entry there, else its live bytes
 *	bytes(leaf, an older one)    = its entry there, else bytes(leaf, the next one)
 *
 * Epochs number the detailed snapshots ever taken. A leaf has saved its value for the newest one if
 * leaf.epoch >= snapshots.epoch.
 */
#ifndef PTMEM_PROFILE_SNAPSHOTS_H
#define PTMEM_PROFILE_SNAPSHOTS_H

#include "base/types.h"
#include "base/vec.h"
#include "profile/profile.h"

/* 12 bytes: bytes is split so that the array has no holes. */
struct journal_entry {
	uint32_t leaf;
	uint32_t bytes_low, bytes_high;
};

struct snapshot_record {
	struct snapshot snapshot;
	uint32_t epoch;        /* 0 for an empty one */
	uint32_t leaf_count;   /* highest leaf at that moment */
	VEC(struct journal_entry) journal;
};

struct snapshots {
	struct snapshot_record *record; /* maximum number of them */
	uint32_t count, max;
	uint32_t detailed_freq;
	uint32_t process;      /* process id, for messages */
	uint32_t since_detailed;
	uint32_t newest;       /* index of the newest detailed record; meaningful if epoch != 0 */
	uint32_t epoch;        /* epoch of the newest detailed record that is kept; 0 = none */
	uint32_t last_epoch;   /* the last epoch assigned */
	double peak_inaccuracy;
	uint64_t peak_total;
	/* what a total must exceed to be a new peak; follows from the two above */
	uint64_t peak_limit;
	uint64_t min_interval;
	uint64_t earliest;     /* a normal attempt before this time has no effect */
};

/* Takes max_snapshots, detailed_freq, peak_inaccuracy and process from @options. */
void snapshots_init(struct snapshots *s, const struct profile_options *options);
void snapshots_deinit(struct snapshots *s);
void snapshots_clone(struct snapshots *to, const struct snapshots *from); /* @to: uninitialized */

/*
 * The two attempts of 2.3. @now: time and sizes; @leaf_count: highest leaf; @what: cause, for -v
 * -v, at most 7 letters.
 */
void snapshots_try_normal(struct snapshots *s, const struct snapshot *now, uint32_t leaf_count,
			  const char *what);
void snapshots_try_peak(struct snapshots *s, const struct snapshot *now, uint32_t leaf_count,
			const char *what);

/* Call it before the live bytes of @leaf, number @index, change. */
void snapshots_save_leaf(struct snapshots *s, struct leaf *leaf, uint32_t index);

/* Converts @bytes (live values by leaf, @leaf_count the highest) to those of record @i. */
void snapshots_undo(const struct snapshots *s, uint32_t i, uint64_t *bytes, uint32_t leaf_count);

size_t snapshots_memory(const struct snapshots *s);

#endif
