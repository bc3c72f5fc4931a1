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
#include "recording/recording_json.h"
#include "report/massif_paths.h"

struct massif_json {
	struct json_writer w;
	const struct massif_file *file;
	const struct massif_paths *paths;
};

static void put_state(struct massif_json *j, size_t snapshot)
{
	static const char *const names[] = {"leaf", "bytes"};
	uint32_t root = j->file->snapshot[snapshot].root, end = massif_tree_end(j->file, root);

	json_write_open(&j->w, NULL, '{');
	json_write_number(&j->w, "snapshot", snapshot);
	for (int i = 0; i < 2; i++) {
		json_write_open(&j->w, names[i], '[');
		for (uint32_t n = root; n < end; n++)
			if (j->paths->leaf[n])
				json_write_number(&j->w, NULL,
						  i ? massif_own_bytes(j->file, n) :
						      j->paths->leaf[n] - 1);
		json_write_close(&j->w, 1);
	}
	json_write_close(&j->w, 1);
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

static void put_file(struct massif_json *j, const struct massif_frame *frame)
{
	json_write_text_n(&j->w, NULL, frame->file.at, frame->file.size);
}

static void put_rank(struct massif_json *j, const struct massif_frame *frame)
{
	json_write_number(&j->w, NULL, rank_of(frame));
}

static void put_role(struct massif_json *j, const struct massif_frame *frame)
{
	json_write_number(&j->w, NULL, role_of(frame));
}

/* What only lines of massif files have. */
static void put_of_lines(struct massif_json *j, const char *name,
			 void (*put)(struct massif_json *j, const struct massif_frame *frame))
{
	struct massif_frame frame;

	json_write_open(json_write_line(&j->w, 0), name, '[');
	for (size_t i = 0; i < j->paths->sample.count; i++) {
		massif_file_frame(&j->file->node[j->paths->sample.data[i]], &frame);
		put(j, &frame);
	}
	json_write_close(&j->w, 1);
}

static void put_column_of(struct massif_json *j, enum recording_table_id id, unsigned column)
{
	recording_json_column(&j->w, j->paths->recording, id, column);
}

static void put_frames(struct massif_json *j)
{
	recording_json_rules(&j->w, j->paths->recording);
	json_write_open(json_write_line(&j->w, 0), "frames", '{');
	put_column_of(j, RECORDING_FRAMES, FRAME_FUNCTION);
	put_of_lines(j, "file", put_file);
	for (unsigned column = FRAME_LINE; column <= FRAME_KIND; column++) {
		json_write_line(&j->w, 0);
		put_column_of(j, RECORDING_FRAMES, column);
	}
	put_of_lines(j, "rank", put_rank);
	put_of_lines(j, "role", put_role);
	json_write_close(&j->w, 1);
}

static void put_objects(struct massif_json *j)
{
	const struct recording *r = j->paths->recording;

	json_write_open(json_write_line(&j->w, 0), "objects", '[');
	for (size_t i = 0; i < recording_rows(r, RECORDING_OBJECTS); i++) {
		uint64_t path = recording_get(r, RECORDING_OBJECTS, i, OBJECT_PATH);

		json_write_open(&j->w, NULL, '{');
		json_write_text(&j->w, "path", r->text.data[path]);
		json_write_close(&j->w, 1);
	}
	json_write_close(&j->w, 1);
}

static void put_nodes(struct massif_json *j)
{
	recording_json_table(&j->w, j->paths->recording, RECORDING_NODES);
	json_write_open(json_write_line(&j->w, 0), "leaves", '{');
	put_column_of(j, RECORDING_LEAVES, LEAF_NODE);
	json_write_close(&j->w, 1);
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

void massif_json_write(FILE *out, struct massif_file *file)
{
	struct massif_json j = {.w = {.out = out}, .file = file, .paths = massif_paths(file)};

	json_write_open(&j.w, NULL, '{');
	put_meta(&j);
	put_timeline(&j);
	put_states(&j);
	put_objects(&j);
	put_frames(&j);
	put_nodes(&j);
	json_write_close(&j.w, 1);
	putc('\n', out);
}
