/*
 * What memusage(1) counts, from events: calls and bytes by function, the live
 * bytes and their peak, a histogram of sizes, the depth of stacks.
 *
 * Numbers are defined in doc/memusage.md 1.1, with the differences of its section 7: failures are
 * counted as failures, mappings are live bytes, and the memalign family has its own row. Everything
 * that happens to blocks of that family is counted in that row (memusage does not see them), so the
 * other rows equal memusage's.
 *
 * Counting ends where memusage's does, after the destructors of the program itself
 * (EVENT_PROGRAM_END): those of libraries follow.
 *
 * Invariant: calls of the histogram = sum over its lines.
 */
#ifndef PTMEM_PROFILE_MEMUSAGE_H
#define PTMEM_PROFILE_MEMUSAGE_H

#include "base/heap_calls.h"
#include "base/types.h"
#include "profile/event.h"

#define MEMUSAGE_BUCKET 16       /* bytes per line of the histogram */
#define MEMUSAGE_BUCKETS 4096    /* larger sizes are "large" */

enum memusage_row {
	MEMUSAGE_MALLOC,
	MEMUSAGE_REALLOC,
	MEMUSAGE_CALLOC,
	MEMUSAGE_FREE,
	MEMUSAGE_MEMALIGN,
	MEMUSAGE_MMAP_READ,      /* a file, to be read */
	MEMUSAGE_MMAP_WRITE,     /* a file, writable */
	MEMUSAGE_MMAP_ANONYMOUS,
	MEMUSAGE_MREMAP,
	MEMUSAGE_MUNMAP,
	MEMUSAGE_ROWS,
};

struct memusage_numbers {
	struct {
		uint64_t calls, memory, failed;
	} row[MEMUSAGE_ROWS];
	uint64_t same_place, shrunk, freeing;    /* reallocs: address kept; smaller; of 0 bytes */
	uint64_t map_same_place, map_shrunk;     /* mremaps */
	uint64_t aligned_reallocs, aligned_frees; /* of blocks of the memalign family */
	/* bytes requested, including failed requests of up to PTRDIFF_MAX */
	uint64_t total;
	uint64_t live, peak;                     /* bytes held */
	uint64_t live_variance, peak_variance;   /* of these estimates (profile/estimate.h) */
	uint64_t stack_peak;                     /* deepest stack, bytes */
	/* largest live + depth of the thread that changed it */
	uint64_t sum_peak;
	/* calls for MEMUSAGE_BUCKETS * MEMUSAGE_BUCKET bytes or more */
	uint64_t large;
	uint64_t histogram[MEMUSAGE_BUCKETS];
	uint64_t histogram_calls;
	bool is_estimate; /* with samples: the kinds of reallocs are unknown */
	uint64_t unknown;                        /* frees and reallocs of blocks not live */
};

struct memusage;

/*
 * Receives each change: live bytes, the depth of the stack of the thread that changed them, the
 * time.
 */
struct memusage_sink {
	void (*add)(void *ctx, uint64_t live, uint64_t depth, uint64_t time_ns);
	void *ctx;
};

/* @sink is copied; NULL = none. */
struct memusage *memusage_new(const struct memusage_sink *sink);
/* The copy for a forked child: continues from its parent's numbers, without a sink. */
struct memusage *memusage_clone(const struct memusage *m);
void memusage_free(struct memusage *m);

void memusage_event(struct memusage *m, const struct event *ev);
/* The same for @count plain allocations and frees in a row. */
void memusage_quick(struct memusage *m, const struct quick_event *ev, size_t count);
void memusage_thread_exit(struct memusage *m, uint32_t thread);

/* Blocks are samples, @interval bytes apart on average. Call it before the first event. */
void memusage_set_sample_interval(struct memusage *m, uint64_t interval);
/*
 * The exact numbers of samples: calls, and the bytes of allocating ones, as in @totals; a realloc
 * counts with its new size. Live bytes, peaks, freed bytes and the histogram are estimates; the
 * kinds of reallocs are unknown.
 */
void memusage_estimate(const struct memusage *m, const struct call_totals *totals,
		       struct memusage_numbers *out);

const struct memusage_numbers *memusage_numbers(const struct memusage *m);

#endif
