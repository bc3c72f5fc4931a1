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
#include "recording/recording_build.h"
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
	struct numbers leaf, thread, release, node, frame, object;
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

static struct numbers numbers_new(const struct recording *r, enum recording_table_id id)
{
	size_t rows = recording_rows(r, id);

	return (struct numbers){.of = xcalloc(rows + 1, sizeof(uint64_t)), .rows = rows};
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

	t->leaf = numbers_new(t->from, RECORDING_LEAVES);
	_cleanup_free_ uint64_t *weight = xcalloc(t->leaf.rows + 1, sizeof(*weight));

	for (size_t i = 0; i < leaves->rows; i++)
		weight[i] = MAX(leaves->column[LEAF_BYTES][i], leaves->column[LEAF_MAX_BYTES][i]);
	number_largest(&t->leaf, weight, t->detail->leaves);
}

static void number_threads(struct thinner *t)
{
	const struct recording_table *shares = &t->from->table[RECORDING_SHARES];

	t->thread = numbers_new(t->from, RECORDING_THREADS);
	_cleanup_free_ uint64_t *weight = xcalloc(t->thread.rows + 1, sizeof(*weight));

	for (size_t i = 0; i < shares->rows; i++)
		if (shares->column[SHARE_THREAD][i] < t->thread.rows)
			weight[shares->column[SHARE_THREAD][i]] += shares->column[SHARE_BYTES][i];
	number_largest(&t->thread, weight, t->detail->threads);
}

static void number_releases(struct thinner *t)
{
	t->release = numbers_new(t->from, RECORDING_RELEASES);
	number_largest(&t->release, t->from->table[RECORDING_RELEASES].column[RELEASE_BYTES],
		       t->detail->releases);
}

/* Wants what @column of the rows with a row of their own refers to, by index + 1. */
static void want(const struct numbers *rows, const uint64_t *column, struct numbers *to)
{
	for (size_t i = 0; i < rows->rows; i++)
		if (rows->of[i + 1] && rows->of[i + 1] <= rows->kept && column[i] &&
		    column[i] <= to->rows)
			to->of[column[i]] = 1;
}

/* Nodes with all their callers, and what they consist of. */
static void number_names(struct thinner *t)
{
	const struct recording_table *table = t->from->table;
	const struct recording_table *nodes = &table[RECORDING_NODES];

	t->node = numbers_new(t->from, RECORDING_NODES);
	t->frame = numbers_new(t->from, RECORDING_FRAMES);
	t->object = numbers_new(t->from, RECORDING_OBJECTS);
	want(&t->leaf, table[RECORDING_LEAVES].column[LEAF_NODE], &t->node);
	want(&t->release, table[RECORDING_RELEASES].column[RELEASE_NODE], &t->node);
	for (size_t i = nodes->rows; i-- > 0;) {
		if (!t->node.of[i + 1])
			continue;
		t->node.of[nodes->column[NODE_PARENT][i]] |= nodes->column[NODE_PARENT][i] > 0;
		t->frame.of[nodes->column[NODE_FRAME][i] + 1] = 1;
	}
	number_wanted(&t->node);
	number_wanted(&t->frame);
	want(&t->frame, table[RECORDING_FRAMES].column[FRAME_OBJECT], &t->object);
	if (t->object.rows > 0)
		t->object.of[1] = 1; /* the program, also if no frame is in it */
	number_wanted(&t->object);
}

/* -- rows -- */

/* A table whose rows may refer to one with new numbers. */
struct copied {
	enum recording_table_id id;
	uint32_t texts;            /* bit i: column i has texts */
	/* in struct thinner, the numbers of what @column refers to, by index + 1; 0 = nothing */
	size_t numbers;
	unsigned column;
	unsigned keys;             /* rows with these first columns equal are added up; 0: none */
};

#define OF(field) offsetof(struct thinner, field)

static const struct copied copied[] = {
	{RECORDING_SIZES, 0, OF(leaf), BUCKET_LEAF, 2},
	{RECORDING_LIFETIMES, 0, OF(leaf), BUCKET_LEAF, 2},
	{RECORDING_TIMELINE, 0, 0, 0, 0},
	{RECORDING_CELLS, 0, OF(leaf), CELL_LEAF, 0},
	{RECORDING_PEAK_AT, 0, 0, 0, 0},
	{RECORDING_PEAK, 0, OF(leaf), PEAK_LEAF, 2},
	{RECORDING_LEAKS, 1u << LEAK_KIND, OF(leaf), LEAK_LEAF, 2},
	{RECORDING_END, 0, 0, 0, 0},
	{RECORDING_CALLS, 1u << CALL_FUNCTION, 0, 0, 0},
};

static const struct copied inspected[] = {
	{RECORDING_INSPECTION, 1u << INSPECTION_MALLOC, 0, 0, 0},
	{RECORDING_DOUBTS, 1u << DOUBT_TEXT, 0, 0, 0},
	{RECORDING_RESIDENT, 1u << RESIDENT_NAME, 0, 0, 0},
	{RECORDING_ARENAS, 0, 0, 0, 0},
	{RECORDING_PINNED, 0, 0, 0, 0},
	{RECORDING_HEAPS, 0, 0, 0, 0},
	{RECORDING_HEAP_CELLS, 0, 0, 0, 0},
	{RECORDING_TYPES, 1u << TYPE_NAME, 0, 0, 0},
	{RECORDING_PINS, 0, OF(leaf), PIN_LEAF, 1},
	{RECORDING_ADVICE, 1u << ADVICE_TEXT, 0, 0, 0},
};

struct order {
	const struct recording_table *table;
	unsigned keys;
};

static int compare_keys(const struct order *o, size_t x, size_t y)
{
	for (unsigned k = 0; k < o->keys; k++)
		if (o->table->column[k][x] != o->table->column[k][y])
			return o->table->column[k][x] < o->table->column[k][y] ? -1 : 1;
	return 0;
}

static int compare_rows(const void *a, const void *b, void *order)
{
	return compare_keys(order, *(const size_t *)a, *(const size_t *)b);
}

/* Adds up the rows of which the first @keys columns are equal. */
static void add_equal(struct recording *r, enum recording_table_id id, unsigned keys)
{
	struct recording_table old = r->table[id];
	struct order order = {&old, keys};
	_cleanup_free_ size_t *row = xcalloc(old.rows + 1, sizeof(*row));

	for (size_t i = 0; i < old.rows; i++)
		row[i] = i;
	qsort_r(row, old.rows, sizeof(*row), compare_rows, &order);
	r->table[id] = (struct recording_table){0};
	for (size_t i = 0, first; i < old.rows;) {
		uint64_t sum[RECORDING_MAX_COLUMNS] = {0};

		for (unsigned k = 0; k < keys; k++)
			sum[k] = old.column[k][row[i]];
		for (first = row[i]; i < old.rows && !compare_keys(&order, first, row[i]); i++)
			for (unsigned c = keys; c < recording_table_info[id].columns; c++)
				sum[c] += old.column[c][row[i]];
		recording_add(r, id, sum);
	}
	for (int c = 0; c < RECORDING_MAX_COLUMNS; c++)
		free(old.column[c]);
}

/* Row @i of table @id; the texts in columns @texts are those of the copy. */
static void get_row(const struct thinner *t, const struct copied *c, size_t i, uint64_t *row)
{
	for (unsigned k = 0; k < recording_table_info[c->id].columns; k++) {
		row[k] = recording_get(t->from, c->id, i, k);
		if (c->texts & 1u << k)
			row[k] = recording_string(t->to, t->from->text.data[row[k]]);
	}
	if (c->numbers) {
		const struct numbers *n = (const void *)((const char *)t + c->numbers);

		row[c->column] = n->of[row[c->column]];
	}
}

/* Copies those that are in @wanted; NULL = all. */
static void copy(const struct thinner *t, const struct copied *c, const struct numbers *wanted)
{
	uint64_t row[RECORDING_MAX_COLUMNS];

	for (size_t i = 0; i < recording_rows(t->from, c->id); i++) {
		if (wanted && !wanted->of[i + 1])
			continue;
		get_row(t, c, i, row);
		recording_add(t->to, c->id, row);
	}
	if (c->keys)
		add_equal(t->to, c->id, c->keys);
}

static void copy_names(const struct thinner *t)
{
	static const struct copied objects = {RECORDING_OBJECTS,
					      1u << OBJECT_PATH | 1u << OBJECT_BUILD_ID, 0, 0, 0};
	static const struct copied frames = {RECORDING_FRAMES,
					     1u << FRAME_FUNCTION | 1u << FRAME_FILE, OF(object),
					     FRAME_OBJECT, 0};
	static const struct copied nodes = {RECORDING_NODES, 0, OF(node), NODE_PARENT, 0};
	uint64_t *frame;

	copy(t, &objects, &t->object);
	copy(t, &frames, &t->frame);
	copy(t, &nodes, &t->node);
	frame = t->to->table[RECORDING_NODES].column[NODE_FRAME];
	for (size_t i = 0; i < recording_rows(t->to, RECORDING_NODES); i++)
		frame[i] = t->frame.of[frame[i] + 1] - 1;
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

/* Changes @live, by interval, by the blocks of row @i of CELLS. */
static void add_live(const struct recording *r, size_t i, uint64_t *live)
{
	uint64_t born = recording_get(r, RECORDING_CELLS, i, CELL_BORN);
	uint64_t died = recording_get(r, RECORDING_CELLS, i, CELL_DIED);
	uint64_t bytes = recording_get(r, RECORDING_CELLS, i, CELL_BYTES);

	if (died != CELL_NEVER)
		live[MIN(died, (uint64_t)HISTORY_INTERVALS)] -= bytes;
	else
		live[born == CELL_BEFORE ? 0 : MIN(born, (uint64_t)HISTORY_INTERVALS)] += bytes;
}

/* What leaf @number of the copy held most: at the end of an interval, or at the peak. */
static void find_most(const struct thinner *t, uint64_t number, uint64_t *row)
{
	uint64_t live[HISTORY_INTERVALS + 1] = {0}, now = 0;
	const struct recording_table *peak = &t->from->table[RECORDING_PEAK];
	size_t rows = recording_rows(t->from, RECORDING_TIMELINE);

	for (size_t i = 0; i < recording_rows(t->from, RECORDING_CELLS); i++) {
		uint64_t leaf = recording_get(t->from, RECORDING_CELLS, i, CELL_LEAF);

		if (leaf && t->leaf.of[leaf] == number)
			add_live(t->from, i, live);
	}
	for (size_t i = 0; i < peak->rows; i++)
		if (t->leaf.of[peak->column[PEAK_LEAF][i]] == number) {
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
	static const struct copied leaves = {RECORDING_LEAVES, 0, OF(node), LEAF_NODE, 0};
	static const int sums[] = {LEAF_ALLOCATIONS, LEAF_BYTES, LEAF_TEMPORARY, LEAF_REALLOCS,
				   LEAF_MOVED,	     LEAF_VARIANCE};
	uint64_t row[LEAF_COLUMNS], other[LEAF_COLUMNS] = {0};

	for (size_t i = 0; i < t->leaf.rows; i++) {
		get_row(t, &leaves, i, row);
		row[LEAF_NUMBER] = t->leaf.of[i + 1];
		if (row[LEAF_NUMBER] <= t->leaf.kept) {
			recording_add(t->to, RECORDING_LEAVES, row);
			continue;
		}
		for (size_t k = 0; k < ARRAY_SIZE(sums); k++)
			other[sums[k]] += row[sums[k]];
	}
	if (!has_others(&t->leaf))
		return;
	other[LEAF_NODE] = add_other_node(t->to);
	other[LEAF_NUMBER] = t->leaf.kept + 1;
	find_most(t, other[LEAF_NUMBER], other);
	recording_add(t->to, RECORDING_LEAVES, other);
}

/* The other threads are one without an id. */
static void copy_threads(const struct thinner *t)
{
	static const struct copied shares = {RECORDING_SHARES, 0, OF(leaf), SHARE_LEAF, 0};
	const uint64_t other[THREAD_COLUMNS] = {[THREAD_NUMBER] = t->thread.kept};
	uint64_t *thread;

	for (size_t i = 0; i < t->thread.rows; i++) {
		const uint64_t row[THREAD_COLUMNS] = {
			t->thread.of[i + 1] - 1,
			recording_get(t->from, RECORDING_THREADS, i, THREAD_ID)};

		if (row[THREAD_NUMBER] < t->thread.kept)
			recording_add(t->to, RECORDING_THREADS, row);
	}
	if (has_others(&t->thread))
		recording_add(t->to, RECORDING_THREADS, other);
	copy(t, &shares, NULL);
	thread = t->to->table[RECORDING_SHARES].column[SHARE_THREAD];
	for (size_t i = 0; i < recording_rows(t->to, RECORDING_SHARES); i++)
		thread[i] = t->thread.of[thread[i] + 1] - 1;
	add_equal(t->to, RECORDING_SHARES, 2);
}

/* The stacks of the other releases are unknown. */
static void copy_releases(const struct thinner *t)
{
	static const struct copied releases = {RECORDING_RELEASES, 0, OF(node), RELEASE_NODE, 0};
	uint64_t row[RELEASE_COLUMNS];

	for (size_t i = 0; i < t->release.rows; i++) {
		get_row(t, &releases, i, row);
		if (t->release.of[i + 1] > t->release.kept)
			row[RELEASE_NODE] = 0;
		recording_add(t->to, RECORDING_RELEASES, row);
	}
	add_equal(t->to, RECORDING_RELEASES, 1);
}

static void copy_markers(const struct thinner *t)
{
	static const struct copied markers = {
		RECORDING_MARKERS, 1u << MARKER_KIND | 1u << MARKER_TEXT, 0, 0, 0};
	size_t rows = recording_rows(t->from, RECORDING_MARKERS);
	uint64_t row[MARKER_COLUMNS];

	for (size_t i = rows - MIN(rows, t->detail->markers); i < rows; i++) {
		get_row(t, &markers, i, row);
		recording_add(t->to, RECORDING_MARKERS, row);
	}
}

/* -- values -- */

/* "thread.ID" of a thread without a row of its own? */
static bool is_of_other_thread(const struct thinner *t, const char *key)
{
	if (!has_others(&t->thread) || strncmp(key, "thread.", 7) != 0)
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
	if (has_others(&t->thread))
		recording_set_meta(t->to, "thread.0", "[other threads]");
}

static void copy_all(struct thinner *t)
{
	copy_names(t);
	copy_leaves(t);
	copy_threads(t);
	copy_releases(t);
	copy_markers(t);
	copy_values(t);
	for (size_t i = 0; i < ARRAY_SIZE(copied); i++)
		copy(t, &copied[i], NULL);
	for (size_t i = 0; t->detail->has_inspection && i < ARRAY_SIZE(inspected); i++)
		copy(t, &inspected[i], NULL);
}

struct recording *recording_reduce(const struct recording *r, const struct recording_detail *detail)
{
	struct thinner t = {.from = r, .detail = detail, .to = recording_new()};

	t.to->interval = r->interval;
	number_leaves(&t);
	number_threads(&t);
	number_releases(&t);
	number_names(&t);
	copy_all(&t);
	recording_merge_intervals(t.to, detail->merges);
	free(t.leaf.of);
	free(t.thread.of);
	free(t.release.of);
	free(t.node.of);
	free(t.frame.of);
	free(t.object.of);
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

struct step {
	const struct recording *r;
	struct recording_detail *detail;
	double part;               /* of the size that is left to use, below 1 */
};

static bool merge_to(const struct step *s, size_t least)
{
	size_t n = recording_rows(s->r, RECORDING_TIMELINE);

	if (n >> s->detail->merges <= least)
		return false;
	s->detail->merges++;
	return true;
}

/* Reduces the @rows of a table, or their number @kept, by what the file is too large. */
static bool reduce(const struct step *s, size_t *kept, size_t least)
{
	if (*kept <= least)
		return false;
	*kept = MAX((size_t)((double)*kept * s->part * 0.9), least);
	return true;
}

static bool merge_some(const struct step *s)
{
	return merge_to(s, FIRST_INTERVALS);
}

static bool drop_inspection(const struct step *s)
{
	bool had = s->detail->has_inspection;

	s->detail->has_inspection = false;
	return had;
}

static bool reduce_threads(const struct step *s)
{
	return reduce(s, &s->detail->threads, FIRST_ROWS);
}

static bool reduce_releases(const struct step *s)
{
	return reduce(s, &s->detail->releases, FIRST_ROWS);
}

static bool reduce_markers(const struct step *s)
{
	return reduce(s, &s->detail->markers, FIRST_ROWS);
}

static bool reduce_leaves(const struct step *s)
{
	return reduce(s, &s->detail->leaves, FIRST_ROWS);
}

static bool merge_more(const struct step *s)
{
	return merge_to(s, LAST_INTERVALS);
}

/* All that has no fixed number. */
static bool keep_sums(const struct step *s)
{
	struct recording_detail *d = s->detail;

	if (d->text_size == SHORT_TEXT)
		return false;
	d->leaves = d->threads = d->releases = d->markers = 0;
	d->text_size = SHORT_TEXT;
	return true;
}

static bool (*const steps[])(const struct step *s) = {
	merge_some,    drop_inspection, reduce_threads, reduce_releases, reduce_markers,
	reduce_leaves, merge_more,      keep_sums,
};

static bool take_step(const struct step *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (steps[i](s))
			return true;
	return false;
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
		const struct step step = {r, &detail, (double)limit / (double)size};

		if (!take_step(&step))
			break;
		recording_free(thin);
		thin = recording_reduce(r, &detail);
		add_note(r, &detail, limit, thin);
		size = file_size(thin);
	}
	return thin;
}
