/*
 * A frame of the call tree is one address. In a recording each function at it, inlined ones
 * included, has its own row, the outermost first, and a node for each of them.
 */
#include "recording/recording_build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/files.h"
#include "base/log.h"
#include "output/outfile.h"
#include "profile/flows.h"
#include "profile/history.h"
#include "recording/recording_format.h"
#include "symbols/wrapper.h"
#include "tracee/os/own_settings.h"

#define NO_OBJECT (UINT32_C(1) << 31)

static uint32_t *slot_of(uint32_t **data, size_t *count, size_t i)
{
	if (i >= *count) {
		size_t old = *count;

		*data = xgrow(*data, count, i + 1, sizeof(**data));
		memset(*data + old, 0, (*count - old) * sizeof(**data));
	}
	return *data + i;
}

/* -- objects -- */

static uint64_t add_object(struct recording_builder *b, const struct recording_object *o)
{
	char hex[129];
	size_t n = o->build_id ? MIN(o->build_id_size, (sizeof(hex) - 1) / 2) : 0;

	for (size_t i = 0; i < n; i++) {
		static const char digits[] = "0123456789abcdef";

		hex[2 * i] = digits[o->build_id[i] >> 4];
		hex[2 * i + 1] = digits[o->build_id[i] & 15];
	}
	const uint64_t row[OBJECT_COLUMNS] = {
		recording_string(b->r, o->path), recording_text_index(b->r, hex, 2 * n),
		o->start, o->end, o->offset};

	recording_add(b->r, RECORDING_OBJECTS, row);
	return recording_rows(b->r, RECORDING_OBJECTS);
}

/* The row + 1 of module @id; 0 = unknown. */
static uint32_t object_row(struct recording_builder *b, uint32_t id)
{
	uint32_t *slot = slot_of(&b->object, &b->object_count, id);
	struct recording_object o = {0};

	if (!*slot)
		*slot = id && b->in.names.object(b->in.names.ctx, id, &o) ?
				(uint32_t)add_object(b, &o) :
				NO_OBJECT;
	return *slot == NO_OBJECT ? 0 : *slot;
}

/* -- frames -- */

/* @is_below_main: start-up code. */
static enum recording_kind kind_of(const struct filter *filter, const struct frame_text *text,
				   bool is_below_main)
{
	const char *function = text->function;

	if (function && filter_is_alloc_fn(filter, function))
		return KIND_ALLOCATOR;
	enum standard_library library = standard_library(text);

	if (is_below_main || (library != STANDARD_NONE && library != STANDARD_MALLOC))
		return KIND_STANDARD;
	if (library == STANDARD_MALLOC || wrapper_is_malloc_like(function))
		return KIND_ALLOCATOR;
	return text->object && strstr(text->object, ".so") ? KIND_LIBRARY : KIND_PROGRAM;
}

/* What differs among the functions at an address. */
struct added {
	const char *object;
	bool is_inlined, is_below_main;
};

static void add_frame(struct recording *r, const struct recording_place *place,
		      const struct symbol_frame *f, const struct added *a)
{
	_cleanup_free_ char *path = f->file && f->dir && *f->file != '/' ?
					    xasprintf("%s/%s", f->dir, f->file) :
					    NULL;
	const struct frame_text text = {
		.function = f->name, .file = path ? path : f->file, .object = a->object};
	const uint64_t row[FRAME_COLUMNS] = {
		recording_string(r, f->name),
		recording_string(r, path ? path : f->file),
		f->line,
		place->object,
		kind_of(place->filter, &text, a->is_below_main),
		a->is_inlined,
		place->address,
	};

	recording_add(r, RECORDING_FRAMES, row);
}

void recording_names_add(struct recording *r, const struct recording_place *place,
			 const struct symbol *s)
{
	struct added a = {.object = s->object, .is_below_main = s->is_below_main};

	if (place->object) {
		size_t path = recording_get(r, RECORDING_OBJECTS, place->object - 1, OBJECT_PATH);

		a.object = r->text.data[path];
	}
	if (symbol_is_startup(s)) {
		const struct symbol_frame f = {.name = s->frame[s->count - 1].name};

		add_frame(r, place, &f, &a);
		return;
	}
	for (uint32_t i = s->count; i-- > 0;) {
		a.is_inlined = i + 1 < s->count;
		add_frame(r, place, &s->frame[i], &a);
	}
}

static void add_frames(struct recording_builder *b, uint32_t frame)
{
	const struct calltree_frame *cf =
		calltree_frame(profile_calltree(b->in.report->profile), frame);
	const struct recording_place place = {.object = object_row(b, cf->module),
					      .address = cf->key, .filter = b->in.report->filter};

	if (b->in.names.function && cf->kind == FRAME_NATIVE) {
		struct symbol_frame f = {.name = b->in.names.function(b->in.names.ctx, frame)};
		const struct symbol quick = {.frame = &f, .count = 1};

		recording_names_add(b->r, &place, &quick);
		return;
	}
	const struct symbol *s = b->in.report->symbol(b->in.report->symbol_ctx, frame, SYMBOL_REAL);

	if (!symbol_is_startup(s))
		s = b->in.report->symbol(b->in.report->symbol_ctx, frame, SYMBOL_ALL);
	recording_names_add(b->r, &place, s);
}

/* The row of the real function at @frame, followed by the inlined ones. */
static uint32_t frame_row(struct recording_builder *b, uint32_t frame)
{
	uint32_t *slot = slot_of(&b->frame, &b->frame_count, frame);

	if (!*slot) {
		*slot = (uint32_t)recording_rows(b->r, RECORDING_FRAMES) + 1;
		add_frames(b, frame);
	}
	return *slot - 1;
}

/* -- nodes -- */

static uint32_t add_nodes(struct recording_builder *b, uint32_t parent, uint32_t frame)
{
	size_t row = frame_row(b, frame), end = recording_rows(b->r, RECORDING_FRAMES);

	do {
		const uint64_t node[NODE_COLUMNS] = {parent, row};

		recording_add(b->r, RECORDING_NODES, node);
		parent = (uint32_t)recording_rows(b->r, RECORDING_NODES);
		row++;
	} while (row < end && recording_get(b->r, RECORDING_FRAMES, row, FRAME_INLINED));
	return parent;
}

/* The row + 1 of node @node of the call tree; 0 for the root. */
static uint32_t recording_names_node(struct recording_builder *b, uint32_t node)
{
	const struct calltree *tree = profile_calltree(b->in.report->profile);
	VEC(uint32_t) todo = {0};
	uint32_t parent = 0;

	for (; node; node = calltree_parent(tree, node)) {
		parent = *slot_of(&b->node, &b->node_count, node);
		if (parent)
			break;
		*vec_add(&todo) = node;
	}
	while (todo.count > 0) {
		node = todo.data[--todo.count];
		parent = add_nodes(b, parent, calltree_node_frame(tree, node));
		*slot_of(&b->node, &b->node_count, node) = parent;
	}
	vec_deinit(&todo);
	return parent;
}

/* Converts the history of a profile to the tables of a recording. */

/* Rows that are written at a time: a table of a million cells would take 56 MB. */
#define WRITTEN_ROWS 8192u

void recording_builder_init(struct recording_builder *b, struct recording *r,
			    const struct recording_input *in)
{
	*b = (struct recording_builder){.r = r, .in = *in, .peak_epoch = UINT64_MAX};
	if (in->names.program) /* the first object */
		object_row(b, in->names.program);
}

void recording_builder_deinit(struct recording_builder *b)
{
	free(b->node);
	free(b->frame);
	free(b->object);
}

/* To a table whose rows are not referred to by their numbers. */
static void add_row(struct recording_builder *b, enum recording_table_id id, const uint64_t *row)
{
	recording_add(b->r, id, row);
	if (!b->out || recording_rows(b->r, id) < WRITTEN_ROWS)
		return;
	recording_write_rows(b->out, b->r, id, 0);
	recording_truncate(b->r, id, 0);
}

/* -- leaves -- */

static void add_histogram(struct recording_builder *b, enum recording_table_id id, uint32_t leaf,
			  const struct histogram *g)
{
	for (unsigned i = 0; i < g->size; i++) {
		const uint64_t row[BUCKET_COLUMNS] = {leaf, g->first + i, g->count[i]};

		if (g->count[i])
			add_row(b, id, row);
	}
}

static void add_leaf(struct recording_builder *b, uint32_t index)
{
	const struct leaf *leaf = profile_leaf(b->in.report->profile, index);
	const struct history_leaf *l = &b->in.history->leaf.data[index];
	const uint64_t row[LEAF_COLUMNS] = {
		[LEAF_NODE] = recording_names_node(b, leaf->node),
		/* with samples each realloc is an allocation */
		[LEAF_ALLOCATIONS] = leaf->total_blocks - l->base_blocks -
				     (b->r->interval ? 0 : l->reallocs),
		[LEAF_BYTES] = leaf->total_bytes - l->base_bytes,
		[LEAF_TEMPORARY] = l->temporary,
		[LEAF_REALLOCS] = l->reallocs,
		[LEAF_MOVED] = l->moved,
		[LEAF_MAX_BYTES] = l->max_bytes,
		[LEAF_MAX_TIME] = l->max_ms,
		[LEAF_NUMBER] = index,
		[LEAF_VARIANCE] = leaf->total_variance - l->base_variance,
		[LEAF_MAX_VARIANCE] = l->max_variance,
	};

	add_row(b, RECORDING_LEAVES, row);
	add_histogram(b, RECORDING_SIZES, index, &l->sizes);
	add_histogram(b, RECORDING_LIFETIMES, index, &l->lifetimes);
	if (l->lifetimes.size)
		add_row(b, RECORDING_LIVED, (const uint64_t[LIVED_COLUMNS]){index, l->lived_us});
}

/* The leaves that changed since @mark; 0 = all. */
static void add_shares(struct recording_builder *b, uint32_t mark)
{
	const struct history *h = b->in.history;
	struct history_share *share;
	size_t n = history_shares(h, &share);

	for (size_t i = 0; i < n; i++) {
		const uint64_t row[SHARE_COLUMNS] = {share[i].leaf, share[i].thread,
						     share[i].blocks, share[i].bytes,
						     share[i].variance};

		if (!mark || h->leaf.data[share[i].leaf].changed == mark)
			add_row(b, RECORDING_SHARES, row);
	}
	free(share);
}

static void add_threads(struct recording_builder *b)
{
	const struct history *h = b->in.history;

	for (uint32_t i = 0; i < h->thread.count; i++) {
		const uint64_t row[THREAD_COLUMNS] = {i, h->thread.data[i].id};

		add_row(b, RECORDING_THREADS, row);
	}
}

/* -- time -- */

static uint64_t sample(uint64_t bytes)
{
	return bytes == HISTORY_UNKNOWN ? 0 : bytes + 1;
}

static void add_timeline(struct recording_builder *b, uint32_t first)
{
	const struct history *h = b->in.history;

	for (uint32_t i = first; i <= h->current; i++) {
		const struct history_interval *t = &h->interval[i];
		const uint64_t row[TIME_COLUMNS] = {
			h->shift,	     i,
			t->live_bytes,	     t->live_blocks,
			t->peak_bytes,	     t->allocations,
			t->allocated_bytes,  t->releases,
			sample(t->rss),	     sample(t->address_space),
			t->live_variance,    t->allocated_variance,
		};

		add_row(b, RECORDING_TIMELINE, row);
	}
}

static void add_cells(struct recording_builder *b, uint32_t first)
{
	const struct history *h = b->in.history;
	struct cells_reader rd;
	struct cell c;
	const uint64_t begin[CELL_COLUMNS] = {[CELL_SHIFT] = h->shift, [CELL_BORN] = first};

	add_row(b, RECORDING_CELLS, begin);

	cells_read(&h->cells, &rd);
	while (cells_next(&rd, &c)) {
		const uint64_t row[CELL_COLUMNS] = {h->shift, c.leaf,  c.born,    c.died,
						    c.blocks, c.bytes, c.variance};

		if (cell_changed(&c) >= first)
			add_row(b, RECORDING_CELLS, row);
	}
	cells_read_end(&rd);
}

static void add_peak(struct recording_builder *b)
{
	const struct history *h = b->in.history;
	const struct history_peak *p = &h->peak;
	const uint64_t at[PEAK_AT_COLUMNS] = {p->time_ns / 1000000, p->bytes, p->blocks,
					      p->variance};

	if (b->peak_epoch == h->peak_epoch)
		return;
	b->peak_epoch = h->peak_epoch;
	recording_add(b->r, RECORDING_PEAK_AT, at);
	for (uint32_t i = 1; i < h->leaf.count; i++) {
		const struct history_held held =
			profile_held_at_peak(b->in.report->profile, h, i);
		const uint64_t row[PEAK_COLUMNS] = {recording_rows(b->r, RECORDING_PEAK_AT) - 1, i,
						    held.bytes, held.blocks, held.variance};

		if (row[PEAK_BLOCKS] || row[PEAK_BYTES])
			add_row(b, RECORDING_PEAK, row);
	}
}

static void add_releases(struct recording_builder *b)
{
	const struct releases *all = b->in.releases;

	for (uint32_t i = 0; all && i < releases_count(all); i++) {
		const struct release *release = releases_get(all, i);
		const struct release_sum *sum =
			b->in.history->base_ms ? &release->recent : &release->all;
		const uint64_t row[RELEASE_COLUMNS] = {recording_names_node(b, release->node),
						       sum->blocks, sum->bytes};

		if (sum->blocks || sum->bytes)
			add_row(b, RECORDING_RELEASES, row);
	}
}

/* -- all -- */

void recording_build_all(struct recording_builder *b)
{
	for (uint32_t i = 1; i < b->in.history->leaf.count; i++)
		add_leaf(b, i);
	add_threads(b);
	add_shares(b, 0);
	add_timeline(b, 0);
	add_cells(b, 0);
	add_peak(b);
	add_releases(b);
}

/*
 * The same for the leaves that changed (history.changed), and the timeline and cells from interval
 * @first on.
 */
static void recording_build_changes(struct recording_builder *b, uint32_t first)
{
	const struct history *h = b->in.history;

	for (size_t i = 0; i < h->changed.count; i++)
		add_leaf(b, h->changed.data[i]);
	add_threads(b);
	add_shares(b, h->change_mark);
	add_timeline(b, first);
	add_cells(b, first);
	add_peak(b);
	add_releases(b);
}

void recording_fill_end(const struct profile *p, const struct history *h,
			uint64_t out[static END_COLUMNS])
{
	const struct profile_totals *t = profile_totals(p);

	for (int c = 0; c < END_COLUMNS; c++)
		out[c] = 0;
	out[END_LIVE_BYTES] = t->live_bytes;
	out[END_LIVE_BLOCKS] = t->live_blocks;
	out[END_ALLOCATIONS] = t->allocations - h->base.allocations;
	out[END_ALLOCATED_BYTES] = t->allocated_bytes - h->base.allocated_bytes;
	out[END_REALLOCS] = t->reallocations - h->base.reallocations;
	out[END_FREES] = t->frees - h->base.frees;
	out[END_FAILED] = t->failed - h->base.failed;
	out[END_UNKNOWN_FREES] = t->unknown_frees - h->base.unknown_frees;
	for (uint32_t i = 1; i < h->leaf.count; i++) {
		out[END_TEMPORARY] += h->leaf.data[i].temporary;
		if (t->samples)
			out[END_REALLOCS] += h->leaf.data[i].reallocs;
	}
	out[END_LIVE_VARIANCE] = t->live_variance;
	out[END_ALLOCATED_VARIANCE] = t->allocated_variance - h->base.allocated_variance;
}

/*
 * Appends to the file of a recording. Keeps names, objects and nodes; everything else is passed
 * through.
 */

struct recording_journal {
	char *path;
	int fd;                    /* -1 = there is no file yet */
	char *bytes;               /* to be appended; NULL = the file has everything */
	size_t size, done;         /* number of these; number of those in the file */
	struct recording *r;
	struct recording_builder b;
	size_t texts;              /* written so far */
	size_t written[RECORDING_TABLES]; /* the same for the tables that are kept */
	uint32_t current, shift;   /* first interval to write at the next call */
	uint32_t mark;             /* of the history, since when it collects what changes */
};

struct recording_journal *recording_journal_new(const char *path, uint64_t interval)
{
	struct recording_journal *j = xcalloc(1, sizeof(*j));

	j->path = xstrdup(path);
	j->fd = -1;
	j->r = recording_new();
	j->r->interval = interval;
	j->texts = 1;
	return j;
}

struct recording_journal *recording_journal_to_fd(int fd, uint64_t interval)
{
	struct recording_journal *j = recording_journal_new("", interval);

	j->fd = fd;
	return j;
}

int recording_journal_fd(const struct recording_journal *j)
{
	return j->fd;
}

uint64_t recording_journal_size(const struct recording_journal *j)
{
	struct stat own;

	return fstat(j->fd, &own) == 0 ? (uint64_t)own.st_size : 0;
}

uint64_t recording_journal_next_size(const struct recording_journal *j)
{
	return (j->fd < 0 ? 0 : recording_journal_size(j)) + j->size - j->done;
}

bool recording_journal_is_written(const struct recording_journal *j)
{
	return j->fd >= 0 && !j->bytes;
}

void recording_journal_close(struct recording_journal *j)
{
	if (!j)
		return;
	free(j->bytes);
	free(j->path);
	if (j->fd >= 0)
		close(j->fd);
	recording_builder_deinit(&j->b);
	recording_free(j->r);
	free(j);
}

struct recording *recording_journal_meta(struct recording_journal *j)
{
	return j->r;
}

static bool is_kept(enum recording_table_id id)
{
	return id == RECORDING_OBJECTS || id == RECORDING_FRAMES || id == RECORDING_NODES ||
	       id == RECORDING_PEAK_AT;
}

static void write_changes(struct recording_journal *j, struct recording_out *out)
{
	recording_write_texts(out, j->r, j->texts);
	j->texts = j->r->text.count;
	for (int i = 0; i < RECORDING_TABLES; i++) {
		enum recording_table_id id = (enum recording_table_id)i;

		recording_write_rows(out, j->r, id, j->written[id]);
		if (is_kept(id))
			j->written[id] = recording_rows(j->r, id);
		else
			recording_clear(j->r, id);
	}
	recording_write_sync(out);
}

void recording_journal_append(struct recording_journal *j, const struct recording_input *in)
{
	struct history *h = in->history;
	struct recording_out out = {.file = open_memstream(&j->bytes, &j->size)};
	bool is_new = !j->b.r;

	CHECK(out.file);
	if (is_new) {
		recording_write_head(&out, j->r);
		recording_builder_init(&j->b, j->r, in);
	}
	j->b.in = *in;
	j->b.out = &out;
	if (is_new || j->mark != h->change_mark) /* another journal has had changes */
		recording_build_all(&j->b);
	else
		recording_build_changes(&j->b, j->current >> (h->shift - j->shift));
	history_forget_changes(h);
	j->mark = h->change_mark;
	j->current = h->current;
	j->shift = h->shift;
	write_changes(j, &out);
	j->b.out = NULL;
	CHECK(!fclose(out.file));
}

static int put_bytes(FILE *file, const void *ctx)
{
	const struct recording_journal *j = ctx;

	return fwrite(j->bytes, 1, j->size, file) == j->size ? 0 : -errno;
}

/* The first part appears atomically. */
static int write_first(struct recording_journal *j)
{
	int rc = outfile_put(j->path, put_bytes, j);

	if (rc != 0)
		return rc;
	rc = stream_open(j->path, O_WRONLY | O_APPEND, 0);
	j->fd = limit_keep(rc);
	return rc < 0 ? rc : j->fd < 0 ? -errno : 0;
}

static int write_next(struct recording_journal *j)
{
	while (j->done < j->size) {
		ssize_t n = write(j->fd, j->bytes + j->done, j->size - j->done);

		if (n >= 0)
			j->done += (size_t)n;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int recording_journal_flush(struct recording_journal *j)
{
	if (!j->bytes)
		return 0;
	int rc = j->fd < 0 ? write_first(j) : write_next(j);

	if (rc != 0)
		return rc;
	free(j->bytes);
	j->bytes = NULL;
	j->size = j->done = 0;
	return 0;
}

bool recording_journal_is_removed(const struct recording_journal *j)
{
	struct stat own;

	return j->fd >= 0 && fstat(j->fd, &own) == 0 && own.st_nlink == 0;
}

bool recording_journal_is_at(const struct recording_journal *j, const char *path)
{
	struct stat there, own;

	return j->fd >= 0 && stat(path, &there) == 0 && fstat(j->fd, &own) == 0 &&
	       there.st_ino == own.st_ino && there.st_dev == own.st_dev;
}
