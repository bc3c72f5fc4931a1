/*
 * Each recording is copied with less detail: fewer call paths, and, of its timeline, the intervals
 * whose ends are shown in the total and some between them. Then its names are replaced by those of
 * a table that all share: the same program run a hundred times has them once.
 */
#include "recording/processes_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/json_write.h"
#include "base/log.h"
#include "output/html_page.h"
#include "profile/cells.h"
#include "profile/history.h"
#include "recording/recording_json.h"
#include "recording/recording_reduce.h"
#include "recording/recording_site.h"

/* How much remains of each recording. */
struct level {
	size_t leaves;         /* with rows of their own */
	size_t intervals;      /* besides those that are shown in the total */
};

/* Each has about 0.7 times the call paths of the one before: pages use most of what they may. */
static const struct level levels[] = {
	{SIZE_MAX, SIZE_MAX}, {64000, 512}, {45000, 512}, {32000, 512}, {22000, 512}, {16000, 512},
	{11000, 512}, {8000, 512}, {5600, 360}, {4000, 256}, {2800, 180}, {2000, 128},
	{1400, 90}, {1000, 64}, {700, 45}, {500, 32}, {350, 28}, {250, 24}, {170, 20}, {120, 16},
	{85, 14}, {60, 12}, {42, 10}, {30, 8}, {21, 6}, {15, 4}, {11, 3}, {8, 2}, {5, 2}, {3, 1},
	{2, 1}, {1, 0},
};

#define LEVEL_ALL 0u
#define THREADS 8u
#define MARKERS 20u
#define TEXT_SIZE 200u /* of a value of META */

/* -- names that all share -- */

/* RANK and ROLE take the places of columns that pages do not need. */
enum { FRAME_RANK = FRAME_INLINED, FRAME_ROLE = FRAME_ADDRESS };

struct shared_names {
	struct recording *r;           /* texts, OBJECTS, FRAMES, NODES, my_code */
	HASH(uint32_t) known[RECORDING_TABLES]; /* rows */
	VEC(int64_t) site;             /* by node; NO_SITE: no leaf has asked for it */
};

#define NO_SITE (-2)

static void names_deinit(struct shared_names *n)
{
	for (int id = 0; id < RECORDING_TABLES; id++)
		hash_deinit(&n->known[id]);
	vec_deinit(&n->site);
	recording_free(n->r);
}

static bool is_equal_row(const struct recording *r, enum recording_table_id id, size_t i,
			 const uint64_t *value)
{
	for (unsigned c = 0; c < recording_table_info[id].columns; c++)
		if (recording_get(r, id, i, c) != value[c])
			return false;
	return true;
}

/* The number of the row with these values, which is added if there is none. */
static uint32_t intern(struct shared_names *n, enum recording_table_id id, const uint64_t *value)
{
	size_t size = recording_table_info[id].columns * sizeof(*value);
	uint64_t hash = hash_bytes((const char *)value, size);
	const uint32_t *known =
		hash_find(&n->known[id], hash, i, is_equal_row(n->r, id, *i, value));

	if (known)
		return *known;
	recording_add(n->r, id, value);
	return *hash_add(&n->known[id], hash) = (uint32_t)recording_rows(n->r, id) - 1;
}

static uint32_t *intern_objects(struct shared_names *n, const struct recording *r)
{
	size_t rows = recording_rows(r, RECORDING_OBJECTS);
	uint32_t *number = xcalloc(rows + 1, sizeof(*number));
	uint64_t row[RECORDING_MAX_COLUMNS];

	for (size_t i = 0; i < rows; i++) {
		recording_get_row(r, RECORDING_OBJECTS, i, n->r, row);
		row[OBJECT_START] = row[OBJECT_END] = row[OBJECT_OFFSET] = 0;
		number[i] = intern(n, RECORDING_OBJECTS, row);
	}
	return number;
}

static uint32_t *intern_frames(struct shared_names *n, const struct recording *r,
			       const uint32_t *object)
{
	size_t rows = recording_rows(r, RECORDING_FRAMES);
	uint32_t *number = xcalloc(rows + 1, sizeof(*number));
	uint64_t row[RECORDING_MAX_COLUMNS];

	for (size_t i = 0; i < rows; i++) {
		const struct recording_role role = recording_frame_role(r, i);

		recording_get_row(r, RECORDING_FRAMES, i, n->r, row);
		if (row[FRAME_OBJECT])
			row[FRAME_OBJECT] = object[row[FRAME_OBJECT] - 1] + 1;
		row[FRAME_RANK] = role.rank;
		row[FRAME_ROLE] = recording_role_bits(&role);
		number[i] = intern(n, RECORDING_FRAMES, row);
	}
	return number;
}

static uint32_t *intern_nodes(struct shared_names *n, const struct recording *r,
			      const uint32_t *frame)
{
	size_t rows = recording_rows(r, RECORDING_NODES);
	uint32_t *number = xcalloc(rows + 1, sizeof(*number));

	for (size_t i = 0; i < rows; i++) {
		uint64_t parent = recording_get(r, RECORDING_NODES, i, NODE_PARENT);
		const uint64_t row[NODE_COLUMNS] = {
			[NODE_PARENT] = parent ? number[parent - 1] + 1 : 0,
			[NODE_FRAME] = frame[recording_get(r, RECORDING_NODES, i, NODE_FRAME)]};

		number[i] = intern(n, RECORDING_NODES, row);
	}
	while (n->site.count < recording_rows(n->r, RECORDING_NODES))
		*vec_add(&n->site) = NO_SITE;
	return number;
}

/* Replaces the nodes in @column by those that all share, whose call sites become known. */
static void share_nodes(struct shared_names *n, struct recording *r, enum recording_table_id id,
			const uint32_t *number)
{
	unsigned column = id == RECORDING_LEAVES ? (unsigned)LEAF_NODE : (unsigned)RELEASE_NODE;
	uint64_t *node = r->table[id].column[column];

	for (size_t i = 0; i < recording_rows(r, id); i++) {
		if (!node[i])
			continue;
		uint32_t shared = number[node[i] - 1];

		if (n->site.data[shared] == NO_SITE) {
			int64_t site = recording_site_of(r, node[i]);

			n->site.data[shared] = site < 0 ? -1 : (int64_t)number[site];
		}
		node[i] = shared + 1;
	}
}

static bool has_rule(const struct my_code *c, const char *rule)
{
	for (size_t i = 0; i < c->rule.count; i++)
		if (strcmp(c->rule.data[i], rule) == 0)
			return true;
	return false;
}

static void share_names(struct shared_names *n, struct recording *r)
{
	_cleanup_free_ uint32_t *object = intern_objects(n, r);
	_cleanup_free_ uint32_t *frame = intern_frames(n, r, object);
	_cleanup_free_ uint32_t *node = intern_nodes(n, r, frame);

	for (size_t i = 0; i < r->my_code.rule.count; i++)
		if (!has_rule(&n->r->my_code, r->my_code.rule.data[i]))
			my_code_add(&n->r->my_code, r->my_code.rule.data[i]);
	share_nodes(n, r, RECORDING_LEAVES, node);
	share_nodes(n, r, RECORDING_RELEASES, node);
}

static void put_names(struct json_writer *w, const struct shared_names *n)
{
	static const struct {
		const char *name;
		unsigned column;
	} numbers[] = {{"line", FRAME_LINE}, {"kind", FRAME_KIND}, {"rank", FRAME_RANK},
		       {"role", FRAME_ROLE}};
	const struct recording_table *f = &n->r->table[RECORDING_FRAMES];

	recording_json_rules(w, n->r);
	recording_json_list(w, n->r, RECORDING_OBJECTS, true);
	json_write_open(json_write_line(w, 0), "frames", '{');
	recording_json_column(w, n->r, RECORDING_FRAMES, FRAME_FUNCTION);
	recording_json_column(w, n->r, RECORDING_FRAMES, FRAME_FILE);
	recording_json_column(w, n->r, RECORDING_FRAMES, FRAME_OBJECT);
	for (size_t k = 0; k < ARRAY_SIZE(numbers); k++) {
		json_write_open(json_write_line(w, 0), numbers[k].name, '[');
		for (size_t i = 0; i < f->rows; i++)
			json_write_number(w, NULL, f->column[numbers[k].column][i]);
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
	recording_json_table(w, n->r, RECORDING_NODES);
}

/* -- less detail -- */

/* A recording in the form that is written. */
struct thinned {
	struct recording *r;
	uint32_t *place;       /* by interval of the original: the first kept one from it on */
	VEC(uint64_t) end;     /* by kept interval: its end, ms */
};

/* Marks the intervals that are shown in the total, some others, and the last one. */
static bool *choose_intervals(const struct processes_row *row, size_t rows, size_t others)
{
	bool *keep = xcalloc(rows + 1, sizeof(*keep));

	for (size_t i = 0; i < row->state.count; i++)
		if (row->state.data[i] < rows)
			keep[row->state.data[i]] = true;
	for (size_t i = 0; i < MIN(others, rows); i++)
		keep[(i + 1) * rows / MIN(others, rows) - 1] = true;
	if (rows)
		keep[rows - 1] = true;
	return keep;
}

static void thin_timeline(struct thinned *t, const bool *keep)
{
	struct recording_table old = t->r->table[RECORDING_TIMELINE];
	uint64_t value[RECORDING_MAX_COLUMNS], most = 0, rss = 0, space = 0;
	uint64_t whole = (uint64_t)ceil(recording_duration(t->r));

	t->place = xcalloc(old.rows + 1, sizeof(*t->place));
	t->r->table[RECORDING_TIMELINE] = (struct recording_table){0};
	for (size_t i = 0; i < old.rows; i++) {
		t->place[i] = (uint32_t)t->end.count;
		most = MAX(most, old.column[TIME_PEAK_BYTES][i]);
		rss = old.column[TIME_RSS][i] ? old.column[TIME_RSS][i] : rss;
		space = old.column[TIME_ADDRESS_SPACE][i] ? old.column[TIME_ADDRESS_SPACE][i] :
							    space;
		if (!keep[i])
			continue;
		for (unsigned c = 0; c < TIME_COLUMNS; c++)
			value[c] = old.column[c][i];
		value[TIME_PEAK_BYTES] = most;
		value[TIME_RSS] = rss;
		value[TIME_ADDRESS_SPACE] = space;
		recording_add(t->r, RECORDING_TIMELINE, value);
		*vec_add(&t->end) = MIN((uint64_t)(i + 1) << t->r->shift, whole);
		most = rss = space = 0;
	}
	for (unsigned c = 0; c < TIME_COLUMNS; c++)
		free(old.column[c]);
}

/* Blocks that were released before the end of the kept interval in which they were allocated go. */
static void thin_cells(struct thinned *t)
{
	const struct recording_table *old = &t->r->table[RECORDING_CELLS];
	struct cells sum = {0};
	struct cell *cell;

	for (size_t i = 0; i < old->rows; i++) {
		uint64_t born = old->column[CELL_BORN][i], died = old->column[CELL_DIED][i];
		const struct cell c = {
			.leaf = (uint32_t)old->column[CELL_LEAF][i],
			.born = (uint16_t)(born == CELL_BEFORE ? born : t->place[born]),
			.died = (uint16_t)(died == CELL_NEVER ? died : t->place[died]),
			.blocks = old->column[CELL_BLOCKS][i],
			.bytes = old->column[CELL_BYTES][i],
			.variance = old->column[CELL_VARIANCE][i],
		};

		if (c.born != c.died)
			cells_add(&sum, &c);
	}
	size_t n = cells_sorted(&sum, &cell);

	recording_clear(t->r, RECORDING_CELLS);
	for (size_t i = 0; i < n; i++)
		recording_add(t->r, RECORDING_CELLS, (uint64_t[CELL_COLUMNS]){
			t->r->shift, cell[i].leaf, cell[i].born, cell[i].died, cell[i].blocks,
			cell[i].bytes, cell[i].variance});
	free(cell);
	cells_deinit(&sum);
}

static struct thinned thin(const struct processes_row *row, const struct level *level)
{
	bool is_whole = level == &levels[LEVEL_ALL];
	struct recording_detail detail = recording_detail_all(row->recording);

	detail.is_checked = true;
	if (!is_whole) {
		detail.leaves = MIN(detail.leaves, level->leaves);
		detail.releases = MIN(detail.releases, level->leaves);
		detail.threads = MIN(detail.threads, (size_t)THREADS);
		detail.markers = MIN(detail.markers, (size_t)MARKERS);
		detail.has_inspection = false;
		detail.text_size = TEXT_SIZE;
	}
	struct thinned t = {.r = recording_reduce(row->recording, &detail)};
	size_t rows = recording_rows(t.r, RECORDING_TIMELINE);
	_cleanup_free_ bool *keep = choose_intervals(row, rows, level->intervals);

	thin_timeline(&t, keep);
	thin_cells(&t);
	return t;
}

/* -- the object -- */

static void put_moments(struct json_writer *w, const struct processes *p)
{
	json_write_open(json_write_line(w, 0), "total", '{');
	json_write_numbers(w, {"peak", p->peak}, {"end", p->end / 1000});
	json_write_open(json_write_line(w, 0), "time", '[');
	for (size_t i = 0; i < p->moment.count; i++)
		json_write_format(w, NULL, "%.3f", (double)p->moment.data[i].time / 1000);
	json_write_close(w, 1);
	json_write_open(json_write_line(w, 0), "live_bytes", '[');
	for (size_t i = 0; i < p->moment.count; i++)
		json_write_number(w, NULL, p->moment.data[i].bytes);
	json_write_close(w, 2);
}

/* Intervals of the thinned recording; -1: the peak. */
static void put_states(struct json_writer *w, const struct processes_row *row,
		       const struct thinned *t)
{
	json_write_number(w, "first", row->first_moment);
	json_write_open(json_write_line(w, 0), "state", '[');
	for (size_t i = 0; i < row->state.count; i++) {
		uint32_t state = row->state.data[i];
		bool is_peak = state == PROCESSES_AT_PEAK;

		json_write_format(w, NULL, "%d", is_peak ? -1 : (int)t->place[state]);
	}
	json_write_close(w, 1);
}

/* What [other call paths] have: of a process, or of all. */
struct left_out {
	size_t paths;
	uint64_t bytes, all_bytes;  /* allocated: of these paths, and of all */
	uint64_t peak, all_peak;    /* of these, live at the peak */
};

static void add_left_out(struct left_out *to, const struct left_out *from)
{
	to->paths += from->paths;
	to->bytes += from->bytes;
	to->all_bytes += from->all_bytes;
	to->peak += from->peak;
	to->all_peak += from->all_peak;
}

/* @thin: with @level; then the last leaf has the others. */
static struct left_out left_out_of(const struct processes_row *row, const struct recording *thin,
				   const struct level *level)
{
	size_t all = recording_rows(row->recording, RECORDING_LEAVES);
	size_t kept = recording_rows(thin, RECORDING_LEAVES);
	struct left_out out = {.paths = all - MIN(all, level->leaves)};

	for (size_t i = 0; i < kept; i++)
		out.all_bytes += recording_get(thin, RECORDING_LEAVES, i, LEAF_BYTES);
	for (size_t i = 0; i < recording_rows(thin, RECORDING_PEAK); i++) {
		uint64_t bytes = recording_get(thin, RECORDING_PEAK, i, PEAK_BYTES);
		bool is_other = recording_get(thin, RECORDING_PEAK, i, PEAK_LEAF) == kept;

		out.all_peak += bytes;
		out.peak += is_other && out.paths ? bytes : 0;
	}
	if (out.paths)
		out.bytes = recording_get(thin, RECORDING_LEAVES, kept - 1, LEAF_BYTES);
	return out;
}

/* "12,345 call paths are one, [other call paths], with 1.2 % of ..."; the caller frees it. */
static char *left_out_text(const struct left_out *o, const char *peak)
{
	char paths[AMOUNT_SIZE];

	return xasprintf("%s call path%s one, [other call paths], with %.1f %% of the bytes "
			 "allocated and %.1f %% of the %s", amount_commas(o->paths, paths),
			 o->paths == 1 ? " is" : "s are", amount_percent(o->bytes, o->all_bytes),
			 amount_percent(o->peak, o->all_peak), peak);
}

static void put_left_out(struct json_writer *w, const struct left_out *o)
{
	_cleanup_free_ char *what = o->paths ? left_out_text(o, "peak") : NULL;
	_cleanup_free_ char *text =
		what ? xasprintf("To keep the page of all processes small, %s. Sums are exact",
				 what) : NULL;

	json_write_text(w, "thinned", text);
}

static void put_row(struct json_writer *w, struct shared_names *n, const struct processes_row *row,
		    const struct level *level, struct left_out *all)
{
	json_write_open(json_write_line(w, 0), NULL, '{');
	json_write_format(w, "parent", "%ld", (long)row->parent - 1);
	json_write_numbers(w, {"pid", row->pid}, {"depth", row->depth}, {"peak_bytes", row->peak},
			   {"end_bytes", row->live}, {"leaked_bytes", row->leaked},
			   {"allocations", row->allocations}, {"allocated", row->allocated});
	json_write_text(w, "command", row->command);
	json_write_text(w, "file", row->name);
	json_write_text(w, "problem", row->problem);
	json_write_format(w, "start", "%.3f", (double)row->start / 1000);
	json_write_format(w, "duration", "%.3f", (double)(row->end - row->start) / 1000);
	if (row->recording) {
		struct thinned t = thin(row, level);

		const struct left_out others = left_out_of(row, t.r, level);

		add_left_out(all, &others);
		put_left_out(w, &others);
		share_names(n, t.r);
		t.r->node_site = n->site.data;
		put_states(w, row, &t);
		recording_json_meta(w, t.r);
		recording_json_members(w, t.r, t.end.data ? t.end.data : (uint64_t[]){0});
		recording_free(t.r);
		free(t.place);
		vec_deinit(&t.end);
	}
	json_write_close(w, 1);
}

/* What was left out, and why; NULL: nothing. The caller frees it. */
static char *level_text(const struct level *level, const struct left_out *others)
{
	_cleanup_free_ char *what = left_out_text(others, "peaks");
	char paths[AMOUNT_SIZE];

	if (level == &levels[LEVEL_ALL])
		return NULL;
	if (!others->paths)
		return xasprintf("The page is kept below %zu MiB: it has less detail over time. "
				 "Sums are exact", PROCESSES_PAGE_SIZE >> 20);
	return xasprintf("The page is kept below %zu MiB: it has the %s call path%s of each "
			 "process that allocated most, and less detail over time; %s. Sums are "
			 "exact, and the recordings (--record) have everything",
			 PROCESSES_PAGE_SIZE >> 20, amount_commas(level->leaves, paths),
			 plural(level->leaves), what);
}

static void put_all(FILE *out, const struct processes *p, const struct level *level,
		    const char *more)
{
	struct json_writer w = {.out = out};
	struct shared_names n = {.r = recording_new()};
	struct left_out others = {0};

	json_write_open(&w, NULL, '{');
	json_write_text(&w, "format", "ptmem-report-processes");
	json_write_number(&w, "version", 1);
	put_moments(&w, p);
	json_write_open(json_write_line(&w, 0), "processes", '[');
	for (size_t i = 0; i < p->row.count; i++)
		put_row(&w, &n, &p->row.data[i], level, &others);
	json_write_close(&w, 1);
	_cleanup_free_ char *note = level_text(level, &others);

	json_write_text(json_write_line(&w, 0), "thinned", note);
	put_names(&w, &n);
	fputs(more, out);
	json_write_close(&w, 1);
	putc('\n', out);
	names_deinit(&n);
}

void processes_json_write(FILE *out, const struct processes *p)
{
	put_all(out, p, &levels[LEVEL_ALL], "");
}

/* -- the page -- */

static char *make_json(const struct processes *p, const struct level *level, const char *more,
		       size_t *size_out)
{
	char *json = NULL;
	FILE *memory = open_memstream(&json, size_out);

	CHECK(memory);
	put_all(memory, p, level, more);
	CHECK(!fclose(memory));
	return json;
}

/* Of the page with @json. */
static size_t page_size(const char *json, size_t size)
{
	char *packed;
	size_t count = gzip_pack(json, size, &packed);

	free(packed);
	return html_page_size(count);
}

/* With a half of it a page has at least half the size. */
static double detail_of(const struct processes *p, const struct level *level)
{
	double paths = 0;

	for (size_t i = 0; i < p->row.count; i++)
		if (p->row.data[i].recording)
			paths += (double)MIN(recording_rows(p->row.data[i].recording,
							    RECORDING_LEAVES), level->leaves);
	return paths * (double)MIN(level->intervals, (size_t)HISTORY_INTERVALS);
}

/*
 * The JSON of the first level at which the page is small enough, which the caller frees. Levels at
 * which it cannot be small enough are not tried.
 */
static char *make_small(const struct processes *p, const char *more, size_t *size_out)
{
	size_t last = ARRAY_SIZE(levels) - 1;

	for (size_t level = 0;;) {
		char *json = make_json(p, &levels[level], more, size_out);
		size_t size = page_size(json, *size_out);
		double unit = (double)size / detail_of(p, &levels[level]);

		if (size <= PROCESSES_PAGE_SIZE || level == last)
			return json;
		free(json);
		do {
			level++;
		} while (level < last &&
			 unit * detail_of(p, &levels[level]) > (double)PROCESSES_PAGE_SIZE);
	}
}

void processes_page_write(FILE *out, const struct processes *p, const char *more)
{
	size_t size = 0;
	char *json = make_small(p, more, &size);

	html_page_write(out, json, size, false);
	free(json);
}
