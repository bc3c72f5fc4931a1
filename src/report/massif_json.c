/*
 * See massif_output.h.
 *
 *	{ "format": "ptmem-report-massif", "version": 1,
 *	  "meta": {"command", "options", "memory", "time_unit": "i", "ms" or "B"},
 *	  "objects", "frames", "nodes": as in recordings
 *	  "leaves": {"node", "site"},
 *	  "timeline": {"number", "time", "live_bytes", "extra", "stacks"},   by snapshot
 *	  "states": [{"snapshot": index, "leaf": [], "bytes": []}],
 *	  "peak": {"snapshot": index, "bytes": total} }
 *
 * A massif tree begins at the allocation functions. A node's own bytes belong to the stack from
 * that node, the outermost known caller, back to the root.
 */
#include "report/massif_output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json_write.h"
#include "output/path_tree.h"
#include "report/massif_file.h"
#include "report/massif_paths.h"

/* Numbers as in doc/format.md; NONE: frames without a function. */
enum json_frame_kind { JSON_PROGRAM, JSON_LIBRARY, JSON_ALLOCATOR, JSON_RUNTIME, JSON_NONE };

/* Bytes of a leaf at a snapshot. */
struct massif_held {
	uint32_t leaf;
	uint64_t bytes;
};

struct massif_json {
	struct json_writer w;
	const struct massif_file *file;
	struct path_tree *nodes;   /* stacks, outermost frame first; names are the lines' texts */
	struct path_tree *frames;  /* children of its root: the distinct names */
	struct path_tree *objects; /* the same */
	VEC(uint32_t) frame_of;    /* by node of nodes; the root has one, too */
	VEC(uint32_t) sample;      /* by frame: a node of the file */
	VEC(uint32_t) object_of;   /* by frame */
	VEC(uint32_t) leaf_of;     /* by node of nodes; 0 = none, else leaf + 1 */
	VEC(uint32_t) leaf;        /* node of nodes */
	VEC(uint32_t) site;        /* by leaf: that of its call site */
};

/* The line without its address. */
static struct massif_text text_of(const struct massif_frame *frame)
{
	struct massif_text t = frame->function;

	if (frame->location.size)
		t.size = (size_t)(frame->location.at + frame->location.size - t.at);
	return t;
}

static uint32_t add_frame(struct massif_json *j, uint32_t node)
{
	struct massif_frame frame;

	massif_file_frame(&j->file->node[node], &frame);
	struct massif_text t = text_of(&frame);
	uint32_t i = path_tree_child(j->frames, 0, t.at, t.size);

	if (i > j->sample.count) {
		*vec_add(&j->sample) = node;
		*vec_add(&j->object_of) =
			frame.object.size && !massif_text_is(frame.object, "???") ?
				path_tree_child(j->objects, 0, frame.object.at, frame.object.size) :
				0;
	}
	return i;
}

static uint32_t add_node(struct massif_json *j, uint32_t parent, uint32_t frame)
{
	const char *name = path_tree_node(j->frames, frame)->name;
	uint32_t node = path_tree_child(j->nodes, parent, name, strlen(name));

	while (j->frame_of.count <= node) {
		*vec_add(&j->frame_of) = frame;
		*vec_add(&j->leaf_of) = 0;
	}
	return node;
}

/* The node that is the call site of the stack between @innermost and, in the file, @outermost. */
static uint32_t site_node(const struct massif_json *j, uint32_t outermost, uint32_t innermost)
{
	for (size_t i = massif_wrapper_site(j->file, outermost); i > 0; i--)
		innermost = path_tree_node(j->nodes, innermost)->parent;
	return innermost;
}

/* The leaf of the stack from @node of the file back to its root, which is not part of the stack. */
static uint32_t add_leaf(struct massif_json *j, uint32_t node)
{
	uint32_t at = 0, n = node;

	do {
		at = add_node(j, at, add_frame(j, n));
		n = j->file->node[n].parent;
	} while (n && j->file->node[n].parent);
	if (!j->leaf_of.data[at]) {
		*vec_add(&j->leaf) = at;
		*vec_add(&j->site) = site_node(j, node, at);
		j->leaf_of.data[at] = (uint32_t)j->leaf.count;
	}
	return j->leaf_of.data[at] - 1;
}

static void put_state(struct massif_json *j, size_t snapshot)
{
	VEC(struct massif_held) held = {0};
	uint32_t root = j->file->snapshot[snapshot].root;

	for (uint32_t n = root, end = massif_tree_end(j->file, root); n < end; n++) {
		uint64_t bytes = massif_own_bytes(j->file, n);

		if (bytes)
			*vec_add(&held) = (struct massif_held){add_leaf(j, n), bytes};
	}
	json_write_open(&j->w, NULL, '{');
	json_write_number(&j->w, "snapshot", snapshot);
	json_write_open(&j->w, "leaf", '[');
	for (size_t i = 0; i < held.count; i++)
		json_write_number(&j->w, NULL, held.data[i].leaf);
	json_write_close(&j->w, 1);
	json_write_open(&j->w, "bytes", '[');
	for (size_t i = 0; i < held.count; i++)
		json_write_number(&j->w, NULL, held.data[i].bytes);
	json_write_close(&j->w, 2);
	vec_deinit(&held);
}

static void put_states(struct massif_json *j)
{
	json_write_open(json_write_line(&j->w, 0), "states", '[');
	for (size_t i = 0; i < j->file->snapshot_count; i++) {
		if (!j->file->snapshot[i].root)
			continue;
		json_write_line(&j->w, 0);
		put_state(j, i);
	}
	json_write_close(&j->w, 1);
}

/* Names. */

static enum json_frame_kind kind_of(const struct massif_frame *frame)
{
	_cleanup_free_ char *function = xasprintf("%.*s", MASSIF_TEXT(frame->function));
	_cleanup_free_ char *object = xasprintf("%.*s", MASSIF_TEXT(frame->object));
	_cleanup_free_ char *file = xasprintf("%.*s", MASSIF_TEXT(frame->file));

	if (frame->line != MASSIF_LINE_FRAME)
		return JSON_NONE;
	enum standard_library library = standard_library(
		&(struct frame_text){.function = function, .file = file, .object = object});

	if (library == STANDARD_MALLOC)
		return JSON_ALLOCATOR;
	if (library != STANDARD_NONE)
		return JSON_RUNTIME;
	if (wrapper_is_malloc_like(function))
		return JSON_ALLOCATOR;
	return strstr(object, ".so") ? JSON_LIBRARY : JSON_PROGRAM;
}

/* Joins several lines. */
static void put_lines(struct massif_json *j, const char *name, struct massif_text t)
{
	_cleanup_free_ char *line = xasprintf("%.*s", MASSIF_TEXT(t));

	for (char *p = line; *p; p++)
		if (*p == '\n')
			*p = ' ';
	size_t size = strlen(line);

	for (; size && line[size - 1] == ' ';)
		size--;
	json_write_text_n(&j->w, name, line, size);
}

static void put_function(struct massif_json *j, const struct massif_frame *frame)
{
	if (frame->line == MASSIF_LINE_AGGREGATE)
		json_write_text(&j->w, NULL, "[below threshold]");
	else if (frame->line == MASSIF_LINE_ROOT)
		json_write_text(&j->w, NULL, "[allocation functions]");
	else if (massif_text_is(frame->function, "???"))
		json_write_text(&j->w, NULL, NULL);
	else
		json_write_text_n(&j->w, NULL, frame->function.at, frame->function.size);
}

enum column { FUNCTION, FILE_NAME, LINE, OBJECT, KIND, RANK, ROLE, COLUMNS };

/* Without --my-code, which the page applies itself. */
static enum frame_rank rank_of(const struct massif_frame *frame)
{
	static const struct massif_file none;

	return frame->line == MASSIF_LINE_FRAME ? massif_wrapper_rank(&none, frame) :
						  RANK_UNNAMED;
}

static unsigned role_of(const struct massif_frame *frame)
{
	_cleanup_free_ char *function = xasprintf("%.*s", MASSIF_TEXT(frame->function));

	if (frame->line != MASSIF_LINE_FRAME || *function == '[')
		return ROLE_FIXED;
	return (massif_wrapper_is_allocator(frame) ? ROLE_ALLOCATOR : 0u) |
	       (wrapper_is_malloc_like(function) ? ROLE_FIXED : 0u);
}

static void put_cell(struct massif_json *j, enum column column, uint32_t i)
{
	struct massif_frame frame;

	massif_file_frame(&j->file->node[j->sample.data[i]], &frame);
	if (column == FUNCTION)
		put_function(j, &frame);
	else if (column == FILE_NAME)
		json_write_text_n(&j->w, NULL, frame.file.at, frame.file.size);
	else if (column == LINE)
		json_write_number(&j->w, NULL, frame.line_number);
	else if (column == OBJECT)
		json_write_format(&j->w, NULL, "%" PRId64, (int64_t)j->object_of.data[i] - 1);
	else if (column == KIND)
		json_write_number(&j->w, NULL, kind_of(&frame));
	else if (column == RANK)
		json_write_number(&j->w, NULL, rank_of(&frame));
	else
		json_write_number(&j->w, NULL, role_of(&frame));
}

static void put_frames(struct massif_json *j)
{
	static const char *const names[COLUMNS] = {"function", "file", "line", "object", "kind",
						     "rank", "role"};
	const struct my_code *m = j->file->my_code;

	json_write_open(json_write_line(&j->w, 0), "my_code", '[');
	for (size_t i = 0; m && i < m->rule.count; i++)
		json_write_text(&j->w, NULL, m->rule.data[i]);
	json_write_close(&j->w, 1);
	json_write_open(json_write_line(&j->w, 0), "frames", '{');
	for (int column = 0; column < COLUMNS; column++) {
		if (column)
			json_write_line(&j->w, 0);
		json_write_open(&j->w, names[column], '[');
		for (uint32_t i = 0; i < j->sample.count; i++)
			put_cell(j, (enum column)column, i);
		json_write_close(&j->w, 1);
	}
	json_write_close(&j->w, 1);
}

static void put_objects(struct massif_json *j)
{
	json_write_open(json_write_line(&j->w, 0), "objects", '[');
	for (uint32_t i = 1; i < path_tree_node_count(j->objects); i++) {
		json_write_open(&j->w, NULL, '{');
		json_write_text(&j->w, "path", path_tree_node(j->objects, i)->name);
		json_write_close(&j->w, 1);
	}
	json_write_close(&j->w, 1);
}

/* Node 0 of the tree is not a frame: numbers in the file are one less. */
static void put_nodes(struct massif_json *j)
{
	struct json_writer *w = &j->w;
	uint32_t count = path_tree_node_count(j->nodes);

	json_write_open(json_write_line(w, 0), "nodes", '{');
	json_write_open(w, "parent", '[');
	for (uint32_t i = 1; i < count; i++)
		json_write_format(w, NULL, "%" PRId64,
				  (int64_t)path_tree_node(j->nodes, i)->parent - 1);
	json_write_close(w, 1);
	json_write_open(json_write_line(w, 0), "frame", '[');
	for (uint32_t i = 1; i < count; i++)
		json_write_number(w, NULL, j->frame_of.data[i] - 1);
	json_write_close(w, 2);
	json_write_open(json_write_line(w, 0), "leaves", '{');
	json_write_open(w, "node", '[');
	for (size_t i = 0; i < j->leaf.count; i++)
		json_write_number(w, NULL, j->leaf.data[i] - 1);
	json_write_close(w, 1);
	json_write_open(json_write_line(w, 0), "site", '[');
	for (size_t i = 0; i < j->site.count; i++)
		json_write_number(w, NULL, j->site.data[i] - 1);
	json_write_close(w, 2);
}

/* Snapshots. */

static void put_column(struct massif_json *j, const char *name, size_t offset)
{
	json_write_open(&j->w, name, '[');
	for (size_t i = 0; i < j->file->snapshot_count; i++) {
		const char *at = (const char *)&j->file->snapshot[i] + offset;

		json_write_number(&j->w, NULL, *(const uint64_t *)(const void *)at);
	}
	json_write_close(&j->w, 1);
}

static bool has_value(const struct massif_json *j, size_t offset)
{
	for (size_t i = 0; i < j->file->snapshot_count; i++)
		if (*(const uint64_t *)(const void *)((const char *)&j->file->snapshot[i] + offset))
			return true;
	return false;
}

static void put_timeline(struct massif_json *j)
{
	static const struct {
		const char *name;
		size_t offset;
		bool is_optional;
	} columns[] = {
		{"time", offsetof(struct massif_snapshot, time), false},
		{"number", offsetof(struct massif_snapshot, number), false},
		{"live_bytes", offsetof(struct massif_snapshot, heap), false},
		{"extra", offsetof(struct massif_snapshot, extra), true},
		{"stacks", offsetof(struct massif_snapshot, stacks), true},
	};

	json_write_open(json_write_line(&j->w, 0), "timeline", '{');
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		if (columns[i].is_optional && !has_value(j, columns[i].offset))
			continue;
		if (i)
			json_write_line(&j->w, 0);
		put_column(j, columns[i].name, columns[i].offset);
	}
	json_write_close(&j->w, 1);
	if (j->file->peak >= j->file->snapshot_count)
		return;
	json_write_record(json_write_line(&j->w, 0), "peak", {"snapshot", j->file->peak},
			   {"bytes", j->file->snapshot[j->file->peak].total});
}

static void put_meta(struct massif_json *j)
{
	const struct massif_file *f = j->file;

	json_write_text(&j->w, "format", "ptmem-report-massif");
	json_write_number(&j->w, "version", 1);
	json_write_open(json_write_line(&j->w, 0), "meta", '{');
	json_write_text_n(&j->w, "command", f->command.at, f->command.size);
	put_lines(j, "options", f->desc);
	json_write_text_n(&j->w, "time_unit", f->time_unit.at, f->time_unit.size);
	json_write_text(&j->w, "memory", memory_kind_name(f->memory));
	json_write_close(&j->w, 1);
}

void massif_json_write(FILE *out, const struct massif_file *file,
		       struct massif_json_frames *frames_out)
{
	struct massif_json j = {
		.w = {.out = out},
		.file = file,
		.nodes = path_tree_new(),
		.frames = path_tree_new(),
		.objects = path_tree_new(),
	};

	*vec_add(&j.frame_of) = 0;
	*vec_add(&j.leaf_of) = 0;
	json_write_open(&j.w, NULL, '{');
	put_meta(&j);
	put_timeline(&j);
	put_states(&j);
	put_objects(&j);
	put_frames(&j);
	put_nodes(&j);
	json_write_close(&j.w, 1);
	putc('\n', out);
	path_tree_free(j.nodes);
	path_tree_free(j.frames);
	path_tree_free(j.objects);
	vec_deinit(&j.frame_of);
	if (frames_out)
		*frames_out = (struct massif_json_frames){j.sample.data, j.sample.count};
	else
		vec_deinit(&j.sample);
	vec_deinit(&j.object_of);
	vec_deinit(&j.leaf_of);
	vec_deinit(&j.leaf);
	vec_deinit(&j.site);
}
