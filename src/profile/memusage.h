/*
 * What memusage(1) counts, from events: calls and bytes by function, the live
 * bytes and their peak, a histogram of sizes, the depth of stacks.
 *
 * Every number means what spec/memusage.md 1.1 says, with the differences of its
 * section 7: failures are failures, mappings are live bytes, and the memalign
 * family has a row of its own. All that happens to blocks of that family stays in
 * that row (memusage does not see them), so the other rows are memusage's.
 *
 * Counting ends where memusage's does, after the destructors of the program itself
 * (EVENT_PROGRAM_END): those of libraries are to come.
 *
 * Invariant: calls of the histogram = sum over its lines.
 */
#ifndef PTMEM_PROFILE_MEMUSAGE_H
#define PTMEM_PROFILE_MEMUSAGE_H

#include "base/call_totals.h"
#include "base/quick_event.h"
#include "base/types.h"
#include "profile/event.h"

#define MEMUSAGE_BUCKET 16       /* bytes a line of the histogram */
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
	/* bytes asked for, failures included unless they asked for more than PTRDIFF_MAX */
	uint64_t total;
	uint64_t live, peak;                     /* bytes held */
	uint64_t stack_peak;                     /* deepest stack, bytes */
	/* largest live + depth of the thread that changed it */
	uint64_t sum_peak;
	/* calls of MEMUSAGE_BUCKETS * MEMUSAGE_BUCKET bytes or more */
	uint64_t large;
	uint64_t histogram[MEMUSAGE_BUCKETS];
	uint64_t histogram_calls;
	bool is_estimate; /* of samples: how reallocs moved is not known */
	uint64_t unknown;                        /* frees and reallocs of what was not live */
};

struct memusage;

/* Receives each change: live bytes, the depth of the stack that changed them, the time. */
struct memusage_sink {
	void (*add)(void *ctx, uint64_t live, uint64_t depth, uint64_t time_ns);
	void *ctx;
};

/* @sink is copied; NULL = none. */
struct memusage *memusage_new(const struct memusage_sink *sink);
/* The copy for a forked child: it continues from its parent's numbers, without a sink. */
struct memusage *memusage_clone(const struct memusage *m);
void memusage_free(struct memusage *m);

void memusage_event(struct memusage *m, const struct event *ev);
/* The same for plain allocations and frees, @count in a row. */
void memusage_quick(struct memusage *m, uint64_t time_ns, const struct quick_event *ev,
		    size_t count);
void memusage_thread_exit(struct memusage *m, uint32_t thread);

/* Blocks are samples of marks @interval bytes apart on average; before the first event. */
void memusage_set_sample_interval(struct memusage *m, uint64_t interval);
/*
 * The numbers of samples: calls, and the bytes of those that allocate, as in @totals; a realloc
 * requests its new size. Live bytes, peaks, what was freed and the histogram are estimates; how
 * reallocs moved is not known.
 */
void memusage_estimate(const struct memusage *m, const struct call_totals *totals,
		       struct memusage_numbers *out);

const struct memusage_numbers *memusage_numbers(const struct memusage *m);

#endif
