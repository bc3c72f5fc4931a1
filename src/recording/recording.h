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

/* RECORDING_META and so on: the tables of recording_schema.h. */
enum recording_table_id {
#define TABLE(id, name, json) RECORDING_##id,
#define SAME(id, name, json, as) RECORDING_##id,
#define COLUMN(id, name, unit, to, merge, json)
#define END(prefix)
#include "recording/recording_schema.h"
	RECORDING_TABLES,
	RECORDING_NONE = RECORDING_TABLES,
	/* what --inspect found: nothing without a row of INSPECTION */
	RECORDING_INSPECTED = RECORDING_INSPECTION,
	RECORDING_INSPECTED_END = RECORDING_ADVICE + 1,
};

#define RECORDING_MAX_COLUMNS 13

/* META_KEY and so on: the columns of each table, and META_COLUMNS, their number. */
#define TABLE(id, name, json) enum {
#define SAME(id, name, json, as)
#define COLUMN(id, name, unit, to, merge, json) id,
#define END(prefix) prefix##_COLUMNS }; \
	_Static_assert((int)prefix##_COLUMNS <= RECORDING_MAX_COLUMNS, "too many columns");
#include "recording/recording_schema.h"

/* What the values of a column are. */
enum column_unit {
	UNIT_NUMBER,           /* also bytes, pages, milliseconds */
	UNIT_COUNT,            /* of blocks or calls; estimates are in units of 1 / ESTIMATE_UNIT */
	UNIT_VARIANCE,         /* of bytes; the column is only in files with estimates */
	UNIT_TEXT,             /* an index into recording.text */
	UNIT_FLAG,             /* 0 or 1 */
	UNIT_ADDRESS,
	UNIT_MICROSECONDS,     /* milliseconds in JSON */
	UNIT_SAMPLE,           /* bytes + 1; 0 = there is none */
	UNIT_INTERVAL,         /* of the timeline, CELL_BEFORE or CELL_NEVER */
	UNIT_BUCKET,           /* of a histogram (profile/history.h) */
	/* rows of the table that the column refers to */
	UNIT_INDEX,
	UNIT_INDEX_OR_END,     /* its number of rows has a meaning, too */
	UNIT_OPTIONAL,         /* index + 1; 0 = none */
	UNIT_LEAF,             /* index + 1, never 0: the number of a leaf */
};

/*
 * How two rows become one. A file is written while its program runs, so later rows replace those
 * with the same key; a reduced recording (recording_reduce.h) adds up rows whose keys became equal.
 */
enum column_merge {
	MERGE_NONE,            /* that of the later row, or a function finds it */
	MERGE_KEY,             /* equal in rows that are merged */
	MERGE_NEWEST,          /* a key when files are read, only */
	MERGE_REDUCED_KEY,     /* a key in reduced recordings, only */
	MERGE_SUM,
	MERGE_MAXIMUM,
	MERGE_KNOWN,           /* the later one that is not 0 */
};

/* What JSON has of a column. */
enum column_form {
	FORM_HIDDEN,           /* nothing, or not as a column */
	FORM_SHOWN,
	FORM_STEPS,            /* the differences to the row before; after all other columns */
	FORM_NOT_NULL,         /* an unknown text as "" */
	FORM_TEMPORARY,        /* null if it is not known what is temporary */
	FORM_WITH_SITE,        /* of nodes: the nodes of their call sites, too, as "site" */
	FORM_WITH_DESCRIPTION, /* of names of rows: their descriptions, too, as "text" */
	FORM_WITH_PAGE,        /* of numbers of pages: the size of one before it, as "page" */
};

struct recording_column {
	const char *name;      /* in JSON, and in doc/format.md */
	enum column_unit unit;
	enum recording_table_id to; /* RECORDING_NONE: it refers to none */
	enum column_merge merge;
	enum column_form form;
};

struct recording_table_info {
	char name[5];          /* in a file */
	uint8_t columns;
	const char *json;      /* the member that has its columns */
	const struct recording_column *column;
};

extern const struct recording_table_info recording_table_info[RECORDING_TABLES];

/* The columns that a file has: without the variances if it has no estimates. */
unsigned recording_file_columns(enum recording_table_id id, bool is_sampled);

/* Values of FRAME_KIND. */
enum recording_kind {
	KIND_PROGRAM, KIND_LIBRARY, KIND_ALLOCATOR, KIND_STANDARD,
	KIND_NONE,             /* no function: only in massif files */
};

struct recording_table {
	uint64_t *column[RECORDING_MAX_COLUMNS]; /* each of `capacity` values */
	size_t rows, capacity;
};

/* What call sites need of a frame (recording_site.h), found once: names are long to look at. */
struct recording_known_role {
	uint64_t function, file, object, kind; /* of the frame then: another one is found again */
	bool is_known;
	uint8_t rank, role; /* enum frame_rank, and a sum of enum wrapper_role */
};

/* Why a recording is not of the whole run, for messages. */
#define RECORDING_INCOMPLETE "it was not written to its end (ptmem was killed, or a disk was full)"
#define RECORDING_SO_FAR "a copy made while the program ran"
#define RECORDING_CORRUPT                                                                       \
	"the program overwrote memory shared with ptmem: the profile ends there"

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
	bool has_bounds;           /* of a massif file: variances are bounds, in square bytes */
	/* its nodes are numbers of a table that it shares: their call sites; NULL: its own */
	const int64_t *node_site;
	VEC(struct recording_known_role) *known_role; /* by row of FRAMES; of recording_site.c */
};

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
/* Row @i of table @id of @from, with texts of @r, which may be another recording. */
void recording_get_row(const struct recording *from, enum recording_table_id id, size_t i,
		       struct recording *r, uint64_t out[static RECORDING_MAX_COLUMNS]);
/* Adds the rows of table @id of @from. */
void recording_copy(const struct recording *from, enum recording_table_id id, struct recording *r);
/* Adds the inspection of @from to @r, which has the leaves of its pins. NULL: there is none. */
void recording_copy_inspection(const struct recording *from, struct recording *r);
/*
 * Sorts the rows by their keys, the columns with MERGE_KEY or @key, and merges those whose keys are
 * equal: @key MERGE_NEWEST keeps the last one, MERGE_REDUCED_KEY adds them up. Tables without a key
 * stay as they are.
 */
void recording_merge_rows(struct recording *r, enum recording_table_id id, enum column_merge key);

void recording_set_meta(struct recording *r, const char *key, const char *value);
/* @units, a number of blocks or calls in a table, rounded to a whole number. */
uint64_t recording_count(const struct recording *r, uint64_t units);
/* The standard error, in bytes, of an estimate with @variance; 0 if exact. */
double recording_error(const struct recording *r, double variance);
/* Its square: @variance in square bytes. */
double recording_square_error(const struct recording *r, double variance);

/*
 * The key of what calls of functions needed (session/within.h), one for each metric: "METRIC VALUE
 * NUMBER CALLS PART", where NUMBER is the worst of CALLS, and PART "within F" or "between F and G".
 */
#define WITHIN_META "within"

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

/* The text of index @text; NULL: it is unknown. */
static inline const char *recording_text_at(const struct recording *r, uint64_t text)
{
	return text ? r->text.data[text] : NULL;
}

static inline const char *recording_get_text(const struct recording *r, enum recording_table_id id,
					     size_t row, unsigned column)
{
	return recording_text_at(r, recording_get(r, id, row, column));
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
