/*
 * A recording in memory: texts, and tables of numbers by column (doc/format.md). It is built from a
 * profile (recording_build.h), or read from a file (recording_format.h); reports use it.
 *
 * Tables refer to a text by its index in `text`, 0 = unknown. Rows refer to each other by index,
 * from 0; optional references are index + 1, 0 = none.
 *
 * In a recording of samples (`interval` is not 0), all numbers of blocks and of calls are estimates
 * in units of 1 / ESTIMATE_UNIT, except those of RECORDING_CALLS. Bytes are estimates, too, and
 * have variances (profile/estimate.h).
 */
#ifndef PTMEM_RECORDING_RECORDING_H
#define PTMEM_RECORDING_RECORDING_H

#include "base/alloc.h"
#include "base/hash.h"
#include "base/types.h"
#include "symbols/code_owner.h"

enum recording_table_id {
	RECORDING_META, RECORDING_OBJECTS, RECORDING_FRAMES, RECORDING_NODES, RECORDING_LEAVES,
	RECORDING_SIZES, RECORDING_LIFETIMES, RECORDING_SHARES, RECORDING_THREADS,
	RECORDING_TIMELINE, RECORDING_CELLS, RECORDING_PEAK_AT, RECORDING_PEAK, RECORDING_MARKERS,
	RECORDING_LEAKS, RECORDING_RELEASES, RECORDING_END, RECORDING_CALLS,
	/* what --inspect found; nothing without an INSPECTION */
	RECORDING_INSPECTION, RECORDING_DOUBTS, RECORDING_RESIDENT, RECORDING_ARENAS,
	RECORDING_PINNED, RECORDING_HEAPS, RECORDING_HEAP_CELLS, RECORDING_TYPES, RECORDING_PINS,
	RECORDING_ADVICE,
	RECORDING_TABLES,
};

#define RECORDING_MAX_COLUMNS 13

/* The columns of each table, in the order of the file. Variances are last. */
enum { META_KEY, META_VALUE, META_COLUMNS };
enum { OBJECT_PATH, OBJECT_BUILD_ID, OBJECT_START, OBJECT_END, OBJECT_OFFSET, OBJECT_COLUMNS };
enum {
	FRAME_FUNCTION, FRAME_FILE, FRAME_LINE, FRAME_OBJECT, /* index + 1 */
	FRAME_KIND, FRAME_INLINED, FRAME_ADDRESS, FRAME_COLUMNS,
};
enum { NODE_PARENT, /* index + 1 */ NODE_FRAME, NODE_COLUMNS };
enum {
	LEAF_NODE, /* index + 1 */ LEAF_ALLOCATIONS, LEAF_BYTES, LEAF_TEMPORARY, LEAF_REALLOCS,
	LEAF_MOVED, LEAF_MAX_BYTES, LEAF_MAX_TIME, LEAF_NUMBER, LEAF_VARIANCE, LEAF_MAX_VARIANCE,
	LEAF_COLUMNS,
};
enum { BUCKET_LEAF, BUCKET_NUMBER, BUCKET_COUNT, BUCKET_COLUMNS }; /* sizes, lifetimes */
enum { SHARE_LEAF, SHARE_THREAD, SHARE_BLOCKS, SHARE_BYTES, SHARE_VARIANCE, SHARE_COLUMNS };
enum { THREAD_NUMBER, THREAD_ID, THREAD_COLUMNS }; /* names: META, "thread.ID" */
enum {
	TIME_SHIFT, TIME_INTERVAL, TIME_LIVE_BYTES, TIME_LIVE_BLOCKS, TIME_PEAK_BYTES,
	TIME_ALLOCATIONS, TIME_ALLOCATED_BYTES, TIME_RELEASES, /* sums since the start */
	TIME_RSS, TIME_ADDRESS_SPACE, /* bytes + 1; 0 = no sample */
	TIME_LIVE_VARIANCE, TIME_ALLOCATED_VARIANCE, TIME_COLUMNS,
};
enum {
	CELL_SHIFT, CELL_LEAF, CELL_BORN, CELL_DIED, CELL_BLOCKS, CELL_BYTES, CELL_VARIANCE,
	CELL_COLUMNS,
};
enum { PEAK_AT_TIME, PEAK_AT_BYTES, PEAK_AT_BLOCKS, PEAK_AT_VARIANCE, PEAK_AT_COLUMNS };
enum {
	PEAK_MOMENT, /* row of PEAK_AT */ PEAK_LEAF, PEAK_BYTES, PEAK_BLOCKS, PEAK_VARIANCE,
	PEAK_COLUMNS,
};
enum { MARKER_TIME, MARKER_KIND, MARKER_TEXT, MARKER_COLUMNS };
enum { LEAK_LEAF, LEAK_KIND, LEAK_BLOCKS, LEAK_BYTES, LEAK_COLUMNS };
enum { RELEASE_NODE, /* index + 1 */ RELEASE_BLOCKS, RELEASE_BYTES, RELEASE_COLUMNS };
enum {
	END_LIVE_BYTES, END_LIVE_BLOCKS, END_ALLOCATIONS, END_ALLOCATED_BYTES, END_REALLOCS,
	END_FREES, END_TEMPORARY, END_FAILED, END_UNKNOWN_FREES, END_STACKS, END_COMPLETE_STACKS,
	END_LIVE_VARIANCE, END_ALLOCATED_VARIANCE, END_COLUMNS,
};
enum { CALL_FUNCTION, CALL_CALLS, CALL_BYTES, CALL_COLUMNS }; /* exact, even with samples */
enum {
	INSPECTION_TIME, INSPECTION_MALLOC, INSPECTION_RSS, INSPECTION_SWAP, INSPECTION_STOPPED,
	INSPECTION_PAGES_PER_CELL, INSPECTION_COLUMNS,
};
enum { DOUBT_TEXT, DOUBT_COLUMNS };
enum { RESIDENT_NAME, RESIDENT_BYTES, RESIDENT_SWAPPED, RESIDENT_COLUMNS };
enum {
	ARENA_ADDRESS, ARENA_IS_MAIN, ARENA_THREADS, ARENA_SYSTEM, ARENA_RESIDENT, ARENA_SWAPPED,
	ARENA_LIVE_BLOCKS, ARENA_LIVE_BYTES, ARENA_FREE, ARENA_TRIM, ARENA_FREE_PAGES,
	ARENA_COLUMNS,
};
enum { PINNED_ARENA, PINNED_LIVE_BYTES, PINNED_PAGES, PINNED_COLUMNS };
enum { HEAP_ARENA, HEAP_START, HEAP_END, HEAP_COLUMNS };
enum { HEAP_CELL_HEAP, HEAP_CELL_PAGES, HEAP_CELL_LIVE, HEAP_CELL_NEARLY_EMPTY, HEAP_CELL_COLUMNS };
enum { TYPE_NAME, TYPE_BLOCKS, TYPE_BLOCK_BYTES, TYPE_PAGES, TYPE_COLUMNS };
enum { PIN_LEAF, PIN_PAGES, PIN_COLUMNS };
enum { ADVICE_TEXT, ADVICE_BYTES, ADVICE_IS_LIMIT, ADVICE_COLUMNS };
_Static_assert(END_COLUMNS <= RECORDING_MAX_COLUMNS && TIME_COLUMNS <= RECORDING_MAX_COLUMNS, "");

struct recording_table {
	uint64_t *column[RECORDING_MAX_COLUMNS]; /* each of `capacity` values */
	size_t rows, capacity;
};

struct recording {
	VEC(char *) text;          /* owned; [0] is "" and means unknown */
	HASH(uint32_t) text_index; /* indexes of text, by its hash */
	struct recording_table table[RECORDING_TABLES];
	struct my_code my_code;    /* of META (recording_read_my_code), and what readers add */
	uint32_t shift;            /* an interval is 1 << shift ms; set by readers */
	uint64_t interval;         /* mean distance of samples, bytes; 0 = exact */
	uint64_t temporary_below;  /* us: what LEAF_TEMPORARY counts; 0 = what ptmem counted */
	bool is_complete;          /* has a row of RECORDING_END */
	bool is_copy;              /* a copy of one that was not finished: see recording_format.h */
};

/* The layout of a table in a file. */
struct recording_table_info {
	char name[5];
	uint8_t columns;
	uint8_t exact_columns;     /* without the variances: in exact recordings */
};

extern const struct recording_table_info recording_table_info[RECORDING_TABLES];

struct recording *recording_new(void);
void recording_free(struct recording *r); /* may be NULL */

/* The index of @text of @size bytes; 0 for "". */
uint32_t recording_text_index(struct recording *r, const char *text, size_t size);
uint32_t recording_string(struct recording *r, const char *text); /* NULL counts as "" */

/* Adds a row; @value has one element for each column. */
void recording_add(struct recording *r, enum recording_table_id id, const uint64_t *value);
void recording_truncate(struct recording *r, enum recording_table_id id, size_t rows);
/* The same for all rows, whose memory is freed. */
void recording_clear(struct recording *r, enum recording_table_id id);
/* Adds the rows of table @id of @from; bit i of @texts: column i has texts. */
void recording_copy(const struct recording *from, enum recording_table_id id, uint32_t texts,
		    struct recording *r);

void recording_set_meta(struct recording *r, const char *key, const char *value);
/* @units, a number of blocks or calls in a table, rounded to a whole number. */
uint64_t recording_count(const struct recording *r, uint64_t units);
/* The standard error, in bytes, of an estimate with @variance; 0 if exact. */
double recording_error(const struct recording *r, double variance);
/* Its square: @variance in square bytes. */
double recording_square_error(const struct recording *r, double variance);

/* The last value of @key, or NULL. */
const char *recording_meta(const struct recording *r, const char *key);
/* Milliseconds until the end; of an incomplete recording, until that of its last interval. */
double recording_duration(const struct recording *r);
/* The longest sampling interval that --budget has chosen, at least r->interval. */
uint64_t recording_longest_interval(const struct recording *r);

/* The value in @column of row @row. */
static inline uint64_t recording_get(const struct recording *r, enum recording_table_id id,
				     size_t row, unsigned column)
{
	return r->table[id].column[column][row];
}

static inline size_t recording_rows(const struct recording *r, enum recording_table_id id)
{
	return r->table[id].rows;
}

/* The timeline and cells of a file, written in intervals of different lengths. */

/* Converts both to the longest interval, and checks them: NULL, or the error. */
const char *recording_join_intervals(struct recording *r);

/*
 * Merges intervals in pairs, @times times. All are of the same length, and each row is there once,
 * as in the complete file of a recording; the cells of equal leaf, born and died are added up.
 */
void recording_merge_intervals(struct recording *r, unsigned times);

#endif
