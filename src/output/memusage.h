/*
 * What memusage(1) counts, from events: calls and bytes by function, the live
 * bytes and their peak, a histogram of sizes, the depth of stacks.
 *
 * Every number means what spec/memusage.md 1.1 says, with the differences of its
 * section 7: failures are failures, mappings are live bytes, and the memalign
 * family has a row of its own. All that happens to blocks of that family stays in
 * that row (memusage does not see them), so the other rows are memusage's.
 *
 * Counting ends where memusage's does, behind the destructors of the program itself
 * (EVENT_PROGRAM_END): those of libraries are to come.
 *
 * Invariant: calls of the histogram = sum over its lines.
 */
#ifndef PTMEM_OUTPUT_MEMUSAGE_H
#define PTMEM_OUTPUT_MEMUSAGE_H

#include <stdio.h>

#include "base/quick_event.h"
#include "base/types.h"
#include "output/memusage_data.h"
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
	/* bytes asked for, failures included, modulo 2^64 */
	uint64_t total;
	uint64_t live, peak;                     /* bytes held */
	uint64_t stack_peak;                     /* deepest stack, bytes */
	/* largest live + depth of the thread that changed it */
	uint64_t sum_peak;
	/* calls of MEMUSAGE_BUCKETS * MEMUSAGE_BUCKET bytes or more */
	uint64_t large;
	uint64_t histogram[MEMUSAGE_BUCKETS];
	uint64_t histogram_calls;
	uint64_t unknown;                        /* frees and reallocs of what was not live */
};

struct memusage;

/* @data: gets a record for each change; stays the caller's; NULL = none. */
struct memusage *memusage_new(struct memusage_data *data);
/* A forked child's, which goes on from its parent's numbers without a data file. */
struct memusage *memusage_clone(const struct memusage *m);
void memusage_free(struct memusage *m);

void memusage_event(struct memusage *m, const struct event *ev);
/* The same for plain allocations and frees, @count in a row. */
void memusage_quick(struct memusage *m, uint64_t time_ns, const struct quick_event *ev,
		    size_t count);
void memusage_thread_exit(struct memusage *m, uint32_t thread);

const struct memusage_numbers *memusage_numbers(const struct memusage *m);

/* memusage's report (spec/memusage.md section 1), its first line empty. 0 or -errno. */
int memusage_print(FILE *file, const struct memusage_numbers *n, bool with_mappings,
		   bool use_color);

#endif
