/*
 * Rows are numbered anew first: leaves and threads that keep their own row, then what they need of
 * releases, nodes, frames and objects. Then all tables are copied with these numbers, and rows that
 * have the same key then are added up.
 */
#include "recording/recording_reduce.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "profile/history.h"
#include "recording/recording.h"
#include "recording/recording_format.h"

/* The new number of each row of a table, from 1; 0: it is left out. */
struct numbers {
	uint64_t *of;              /* by row + 1; [0] = 0 */
	size_t rows, kept;         /* all, and those that have a row of their own */
};

struct thinner {
	const struct recording *from;
	const struct recording_detail *detail;
	struct recording *to;
	/* of leaves, threads, releases, nodes, frames and objects */
	struct numbers numbers[RECORDING_TABLES];
};

struct recording_detail recording_detail_all(const struct recording *r)
{
	return (struct recording_detail){
		.leaves = recording_rows(r, RECORDING_LEAVES),
		.threads = recording_rows(r, RECORDING_THREADS),
		.releases = recording_rows(r, RECORDING_RELEASES),
		.markers = recording_rows(r, RECORDING_MARKERS),
		.has_inspection = recording_rows(r, RECORDING_INSPECTION) > 0,
		.text_size = SIZE_MAX,
	};
}

/* -- numbers -- */

static struct numbers *numbers_new(struct thinner *t, enum recording_table_id id)
{
	size_t rows = recording_rows(t->from, id);

	t->numbers[id] = (struct numbers){xcalloc(rows + 1, sizeof(uint64_t)), rows, 0};
	return &t->numbers[id];
}

/* Numbers the rows whose number is not 0. */
static void number_wanted(struct numbers *n)
{
	for (size_t i = 1; i <= n->rows; i++)
		if (n->of[i])
			n->of[i] = ++n->kept;
}

static int compare_weights(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x > y ? -1 : x < y;
}

/*
 * Numbers the @keep rows of the largest @weight; all others get the number after these. Of equal
 * ones the first are kept.
 */
static void number_largest(struct numbers *n, const uint64_t *weight, size_t keep)
{
	_cleanup_free_ uint64_t *sorted = xcalloc(n->rows + 1, sizeof(*sorted));
	size_t equal = keep;

	for (size_t i = 0; i < n->rows; i++)
		sorted[i] = weight[i];
	qsort(sorted, n->rows, sizeof(*sorted), compare_weights);
	uint64_t least = keep && n->rows ? sorted[MIN(keep, n->rows) - 1] : UINT64_MAX;

	for (size_t i = 0; i < n->rows; i++)
		equal -= weight[i] > least && equal;
	for (size_t i = 0; i < n->rows; i++) {
		bool is_kept = keep && (weight[i] > least || (weight[i] == least && equal));

		equal -= is_kept && weight[i] == least;
		n->of[i + 1] = is_kept;
	}
	number_wanted(n);
	for (size_t i = 1; i <= n->rows; i++)
		if (!n->of[i])
			n->of[i] = n->kept + 1;
}

static bool has_others(const struct numbers *n)
{
	return n->kept < n->rows;
}

static void number_leaves(struct thinner *t)
{
	const struct recording_table *leaves = &t->from->table[RECORDING_LEAVES];
	struct numbers *n = numbers_new(t, RECORDING_LEAVES);
	_cleanup_free_ uint64_t *weight = xcalloc(n->rows + 1, sizeof(*weight));

	for (size_t i = 0; i < leaves->rows; i++)
		weight[i] = MAX(leaves->column[LEAF_BYTES][i], leaves->column[LEAF_MAX_BYTES][i]);
	number_largest(n, weight, t->detail->leaves);
}

static void number_threads(struct thinner *t)
{
	const struct recording_table *shares = &t->from->table[RECORDING_SHARES];
	struct numbers *n = numbers_new(t, RECORDING_THREADS);
	_cleanup_free_ uint64_t *weight = xcalloc(n->rows + 1, sizeof(*weight));

	for (size_t i = 0; i < shares->rows; i++)
		if (shares->column[SHARE_THREAD][i] < n->rows)
			weight[shares->column[SHARE_THREAD][i]] += shares->column[SHARE_BYTES][i];
	number_largest(n, weight, t->detail->threads);
}

/* Wants what @column of the rows with a row of their own refers to. */
static void want(struct thinner *t, enum recording_table_id id, unsigned column)
{
	const struct numbers *rows = &t->numbers[id];
	struct numbers *to = &t->numbers[recording_table_info[id].column[column].to];
	const uint64_t *value = t->from->table[id].column[column];

	for (size_t i = 0; i < rows->rows; i++)
		if (rows->of[i + 1] && rows->of[i + 1] <= rows->kept && value[i] &&
		    value[i] <= to->rows)
			to->of[value[i]] = 1;
}

/* Nodes with all their callers, and what they consist of. */
static void number_names(struct thinner *t)
{
	const struct recording_table *nodes = &t->from->table[RECORDING_NODES];
	struct numbers *node = numbers_new(t, RECORDING_NODES);
	struct numbers *frame = numbers_new(t, RECORDING_FRAMES);
	struct numbers *object = numbers_new(t, RECORDING_OBJECTS);

	want(t, RECORDING_LEAVES, LEAF_NODE);
	want(t, RECORDING_RELEASES, RELEASE_NODE);
	for (size_t i = nodes->rows; i-- > 0;) {
		if (!node->of[i + 1])
			continue;
		node->of[nodes->column[NODE_PARENT][i]] |= nodes->column[NODE_PARENT][i] > 0;
		frame->of[nodes->column[NODE_FRAME][i] + 1] = 1;
	}
	number_wanted(node);
	number_wanted(frame);
	want(t, RECORDING_FRAMES, FRAME_OBJECT);
	if (object->rows > 0)
		object->of[1] = 1; /* the program, also if no frame is in it */
	number_wanted(object);
}

/* -- rows -- */

/* Row @i of table @id as the copy has it. */
static void get_row(const struct thinner *t, enum recording_table_id id, size_t i, uint64_t *row)
{
	recording_get_row(t->from, id, i, t->to, row);
	for (unsigned c = 0; c < recording_table_info[id].columns; c++) {
		const struct recording_column *column = &recording_table_info[id].column[c];
		const uint64_t *of = column->to == RECORDING_NONE ? NULL :
								     t->numbers[column->to].of;

		if (of)
			row[c] = column->unit == UNIT_INDEX ? of[row[c] + 1] - 1 : of[row[c]];
	}
}

/* Those that have no number, if the table has numbers, are left out. */
static void copy(const struct thinner *t, enum recording_table_id id)
{
	const uint64_t *of = t->numbers[id].of;
	uint64_t row[RECORDING_MAX_COLUMNS];

	for (size_t i = 0; i < recording_rows(t->from, id); i++) {
		if (of && !of[i + 1])
			continue;
		get_row(t, id, i, row);
		recording_add(t->to, id, row);
	}
	recording_merge_rows(t->to, id, MERGE_REDUCED_KEY);
}

/* -- others -- */

/* The node + 1 of the other leaves. */
static uint64_t add_other_node(struct recording *r)
{
	const uint64_t frame[FRAME_COLUMNS] = {
		[FRAME_FUNCTION] = recording_string(r, "[other call paths]"),
		[FRAME_KIND] = KIND_PROGRAM};
	const uint64_t node[NODE_COLUMNS] = {
		[NODE_FRAME] = recording_rows(r, RECORDING_FRAMES)};

	recording_add(r, RECORDING_FRAMES, frame);
	recording_add(r, RECORDING_NODES, node);
	return recording_rows(r, RECORDING_NODES);
}

/*
 * Changes @live, by interval, by the blocks of row @i of CELLS. In files cells that never died
 * contain those that did.
 */
static void add_live(const struct thinner *t, size_t i, uint64_t *live)
{
	const struct recording *r = t->from;
	uint64_t born = recording_get(r, RECORDING_CELLS, i, CELL_BORN);
	uint64_t died = recording_get(r, RECORDING_CELLS, i, CELL_DIED);
	uint64_t bytes = recording_get(r, RECORDING_CELLS, i, CELL_BYTES);

	if (died != CELL_NEVER)
		live[MIN(died, (uint64_t)HISTORY_INTERVALS)] -= bytes;
	if (died == CELL_NEVER || t->detail->is_checked)
		live[born == CELL_BEFORE ? 0 : MIN(born, (uint64_t)HISTORY_INTERVALS)] += bytes;
}

/* What leaf @number of the copy held most: at the end of an interval, or at the peak. */
static void find_most(const struct thinner *t, uint64_t number, uint64_t *row)
{
	uint64_t live[HISTORY_INTERVALS + 1] = {0}, now = 0;
	const struct recording_table *peak = &t->from->table[RECORDING_PEAK];
	const uint64_t *of = t->numbers[RECORDING_LEAVES].of;
	size_t rows = recording_rows(t->from, RECORDING_TIMELINE);

	for (size_t i = 0; i < recording_rows(t->from, RECORDING_CELLS); i++) {
		uint64_t leaf = recording_get(t->from, RECORDING_CELLS, i, CELL_LEAF);

		if (leaf && of[leaf] == number)
			add_live(t, i, live);
	}
	for (size_t i = 0; i < peak->rows; i++)
		if (of[peak->column[PEAK_LEAF][i]] == number) {
			row[LEAF_MAX_BYTES] += peak->column[PEAK_BYTES][i];
			row[LEAF_MAX_VARIANCE] += peak->column[PEAK_VARIANCE][i];
		}
	if (peak->rows)
		row[LEAF_MAX_TIME] = recording_get(t->from, RECORDING_PEAK_AT, 0, PEAK_AT_TIME);
	for (size_t i = 0; i < MIN(rows, (size_t)HISTORY_INTERVALS); i++) {
		now += live[i];
		if (now <= row[LEAF_MAX_BYTES])
			continue;
		row[LEAF_MAX_BYTES] = now;
		row[LEAF_MAX_TIME] = i << recording_get(t->from, RECORDING_TIMELINE, 0, TIME_SHIFT);
	}
}

static void copy_leaves(const struct thinner *t)
{
	const struct recording_column *column = recording_table_info[RECORDING_LEAVES].column;
	const struct numbers *n = &t->numbers[RECORDING_LEAVES];
	uint64_t row[RECORDING_MAX_COLUMNS], other[LEAF_COLUMNS] = {0};

	for (size_t i = 0; i < n->rows; i++) {
		get_row(t, RECORDING_LEAVES, i, row);
		row[LEAF_NUMBER] = n->of[i + 1];
		if (row[LEAF_NUMBER] <= n->kept) {
			recording_add(t->to, RECORDING_LEAVES, row);
			continue;
		}
		for (unsigned c = 0; c < LEAF_COLUMNS; c++)
			if (column[c].merge == MERGE_SUM)
				other[c] += row[c];
	}
	if (!has_others(n))
		return;
	other[LEAF_NODE] = add_other_node(t->to);
	other[LEAF_NUMBER] = n->kept + 1;
	find_most(t, other[LEAF_NUMBER], other);
	recording_add(t->to, RECORDING_LEAVES, other);
}

/* The other threads are one without an id. */
static void copy_threads(const struct thinner *t)
{
	const struct numbers *n = &t->numbers[RECORDING_THREADS];
	const uint64_t other[THREAD_COLUMNS] = {[THREAD_NUMBER] = n->kept};

	for (size_t i = 0; i < n->rows; i++) {
		const uint64_t row[THREAD_COLUMNS] = {
			n->of[i + 1] - 1, recording_get(t->from, RECORDING_THREADS, i, THREAD_ID)};

		if (row[THREAD_NUMBER] < n->kept)
			recording_add(t->to, RECORDING_THREADS, row);
	}
	if (has_others(n))
		recording_add(t->to, RECORDING_THREADS, other);
}

/* The stacks of the other releases are unknown. */
static void copy_releases(const struct thinner *t)
{
	const struct numbers *n = &t->numbers[RECORDING_RELEASES];
	uint64_t row[RECORDING_MAX_COLUMNS];

	for (size_t i = 0; i < n->rows; i++) {
		get_row(t, RECORDING_RELEASES, i, row);
		if (n->of[i + 1] > n->kept)
			row[RELEASE_NODE] = 0;
		recording_add(t->to, RECORDING_RELEASES, row);
	}
	recording_merge_rows(t->to, RECORDING_RELEASES, MERGE_REDUCED_KEY);
}

static void copy_markers(const struct thinner *t)
{
	size_t rows = recording_rows(t->from, RECORDING_MARKERS);
	uint64_t row[RECORDING_MAX_COLUMNS];

	for (size_t i = rows - MIN(rows, t->detail->markers); i < rows; i++) {
		get_row(t, RECORDING_MARKERS, i, row);
		recording_add(t->to, RECORDING_MARKERS, row);
	}
}

/* -- values -- */

/* "thread.ID" of a thread without a row of its own? */
static bool is_of_other_thread(const struct thinner *t, const char *key)
{
	if (!has_others(&t->numbers[RECORDING_THREADS]) || strncmp(key, "thread.", 7) != 0)
		return false;
	uint64_t id = strtoull(key + 7, NULL, 10);

	for (size_t i = 0; i < recording_rows(t->to, RECORDING_THREADS); i++)
		if (recording_get(t->to, RECORDING_THREADS, i, THREAD_ID) == id)
			return false;
	return true;
}

static void copy_values(const struct thinner *t)
{
	for (size_t i = 0; i < recording_rows(t->from, RECORDING_META); i++) {
		const char *key =
			t->from->text.data[recording_get(t->from, RECORDING_META, i, META_KEY)];
		const char *value =
			t->from->text.data[recording_get(t->from, RECORDING_META, i, META_VALUE)];
		size_t size = strlen(value);
		bool is_long = size > t->detail->text_size;
		_cleanup_free_ char *cut = is_long ? xasprintf("%.*s...", (int)t->detail->text_size,
							      value) : NULL;

		if (!is_of_other_thread(t, key))
			recording_set_meta(t->to, key, cut ? cut : value);
	}
	if (has_others(&t->numbers[RECORDING_THREADS]))
		recording_set_meta(t->to, "thread.0", "[other threads]");
}

/* In this order, by which texts get their numbers; the other leaves add a node. */
static const struct {
	enum recording_table_id id;
	void (*copy)(const struct thinner *t); /* NULL: as all other tables */
} first[] = {
	{RECORDING_OBJECTS, NULL},
	{RECORDING_FRAMES, NULL},
	{RECORDING_NODES, NULL},
	{RECORDING_LEAVES, copy_leaves},
	{RECORDING_THREADS, copy_threads},
	{RECORDING_RELEASES, copy_releases},
	{RECORDING_MARKERS, copy_markers},
	{RECORDING_META, copy_values},
};

static void copy_all(const struct thinner *t)
{
	int end = t->detail->has_inspection ? RECORDING_TABLES : RECORDING_INSPECTED;
	bool is_copied[RECORDING_TABLES] = {0};

	for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
		is_copied[first[i].id] = true;
		if (first[i].copy)
			first[i].copy(t);
		else
			copy(t, first[i].id);
	}
	for (int id = 0; id < end; id++)
		if (!is_copied[id])
			copy(t, (enum recording_table_id)id);
}

struct recording *recording_reduce(const struct recording *r, const struct recording_detail *detail)
{
	struct thinner t = {.from = r, .detail = detail, .to = recording_new()};

	t.to->interval = r->interval;
	t.to->shift = r->shift;
	t.to->temporary_below = r->temporary_below;
	t.to->is_complete = r->is_complete;
	t.to->is_copy = r->is_copy;
	for (size_t i = 0; i < r->my_code.rule.count; i++)
		my_code_add(&t.to->my_code, r->my_code.rule.data[i]);
	number_leaves(&t);
	number_threads(&t);
	number_largest(numbers_new(&t, RECORDING_RELEASES),
		       r->table[RECORDING_RELEASES].column[RELEASE_BYTES], detail->releases);
	number_names(&t);
	copy_all(&t);
	if (!detail->is_checked)
		recording_merge_intervals(t.to, detail->merges);
	for (int id = 0; id < RECORDING_TABLES; id++)
		free(t.numbers[id].of);
	return t.to;
}

/*
 * Detail is reduced in the order of `steps` until the file is small enough: first times become
 * coarser, since totals, call paths and what they held stay exact for that; call paths are merged
 * later, those that allocated least first. How much smaller the file becomes is not known before
 * it was written.
 */

#define FIRST_INTERVALS 64u /* intervals, and rows, that remain before the next step */
#define FIRST_ROWS 64u
#define LAST_INTERVALS 8u
#define SHORT_TEXT 256u

static uint64_t file_size(const struct recording *r)
{
	char *data = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&data, &size);

	CHECK(file && recording_write(file, r) == 0 && fclose(file) == 0);
	free(data);
	return size;
}

/* -- steps -- */

static const struct step {
	enum {
		STEP_MERGE_INTERVALS,   /* until there are at most `least` */
		STEP_DROP_INSPECTION,
		STEP_REDUCE_ROWS,       /* until there are at most `least` of @number */
		STEP_KEEP_SUMS,         /* all that has no fixed number */
	} kind;
	unsigned least;
	size_t number;             /* its offset in struct recording_detail */
} steps[] = {
	{STEP_MERGE_INTERVALS, FIRST_INTERVALS, 0},
	{STEP_DROP_INSPECTION, 0, 0},
	{STEP_REDUCE_ROWS, FIRST_ROWS, offsetof(struct recording_detail, threads)},
	{STEP_REDUCE_ROWS, FIRST_ROWS, offsetof(struct recording_detail, releases)},
	{STEP_REDUCE_ROWS, FIRST_ROWS, offsetof(struct recording_detail, markers)},
	{STEP_REDUCE_ROWS, FIRST_ROWS, offsetof(struct recording_detail, leaves)},
	{STEP_MERGE_INTERVALS, LAST_INTERVALS, 0},
	{STEP_KEEP_SUMS, 0, 0},
};

/* @part: of the size that is left to use, below 1. False: there is nothing to reduce. */
static bool take_step(const struct step *s, const struct recording *r, double part,
		      struct recording_detail *d)
{
	size_t *rows = (size_t *)((char *)d + s->number);

	switch (s->kind) {
	case STEP_MERGE_INTERVALS:
		if (recording_rows(r, RECORDING_TIMELINE) >> d->merges <= s->least)
			return false;
		d->merges++;
		return true;
	case STEP_DROP_INSPECTION:
		if (!d->has_inspection)
			return false;
		d->has_inspection = false;
		return true;
	case STEP_REDUCE_ROWS:
		if (*rows <= s->least)
			return false;
		*rows = MAX((size_t)((double)*rows * part * 0.9), (size_t)s->least);
		return true;
	default:
		if (d->text_size == SHORT_TEXT)
			return false;
		d->leaves = d->threads = d->releases = d->markers = 0;
		d->text_size = SHORT_TEXT;
		return true;
	}
}

/* -- what is said about it -- */

static void add_rows_note(FILE *out, size_t all, size_t kept, const char *what)
{
	char number[AMOUNT_SIZE];

	if (kept < all)
		fprintf(out, "; %s %s", amount_commas(all - kept, number), what);
}

static void add_interval_note(FILE *out, const struct recording *r, unsigned merges)
{
	uint64_t shift = recording_get(r, RECORDING_TIMELINE, 0, TIME_SHIFT);

	if (merges)
		fprintf(out, "; intervals of %.3f s instead of %.3f s",
			(double)(UINT64_C(1) << (shift + merges)) / 1000,
			(double)(UINT64_C(1) << shift) / 1000);
}

static void add_note(const struct recording *r, const struct recording_detail *d, uint64_t limit,
		     struct recording *thin)
{
	const struct recording_detail all = recording_detail_all(r);
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	CHECK(out);
	fprintf(out, "thinned to %" PRIu64 " bytes (--record-limit)", limit);
	add_interval_note(out, r, d->merges);
	add_rows_note(out, all.leaves, d->leaves,
		      "call paths that allocated least are one, [other call paths]");
	add_rows_note(out, all.threads, d->threads,
		      "threads that allocated least are one, [other threads]");
	add_rows_note(out, all.releases, d->releases, "releasing call paths are unknown");
	add_rows_note(out, all.markers, d->markers, "older markers are left out");
	if (all.has_inspection && !d->has_inspection)
		fputs("; what --inspect found is left out", out);
	CHECK(!fclose(out));
	recording_set_meta(thin, "lost", text);
}

struct recording *recording_limit(const struct recording *r, uint64_t limit)
{
	struct recording_detail detail = recording_detail_all(r);
	struct recording *thin = NULL;
	uint64_t size = file_size(r);

	while (size > limit) {
		size_t i = 0;

		while (i < ARRAY_SIZE(steps) &&
		       !take_step(&steps[i], r, (double)limit / (double)size, &detail))
			i++;
		if (i == ARRAY_SIZE(steps))
			break;
		recording_free(thin);
		thin = recording_reduce(r, &detail);
		add_note(r, &detail, limit, thin);
		size = file_size(thin);
	}
	return thin;
}
