/* Each leaf is a sample, its path the outermost function first. */
#include "report/recording_output.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json_write.h"
#include "output/path_tree.h"
#include "report/recording_paths.h"

/* By frame of the recording: its number in the output. */
typedef VEC(uint32_t) frame_numbers;

static void put_frame(struct json_writer *w, const struct recording *r, size_t frame)
{
	_cleanup_free_ char *name = recording_frame_name(r, frame);
	uint64_t file = recording_get(r, RECORDING_FRAMES, frame, FRAME_FILE);

	json_write_open(w, NULL, '{');
	json_write_text(w, "name", name);
	if (file) {
		json_write_text(w, "file", r->text.data[file]);
		json_write_number(w, "line",
				  recording_get(r, RECORDING_FRAMES, frame, FRAME_LINE));
	}
	json_write_close(w, 1);
}

/* What makes a frame another one, but not its address. The caller frees it. */
static char *frame_key(const struct recording *r, size_t frame)
{
	_cleanup_free_ char *name = recording_frame_name(r, frame);
	uint64_t object = recording_get(r, RECORDING_FRAMES, frame, FRAME_OBJECT);
	uint64_t path = object ? recording_get(r, RECORDING_OBJECTS, object - 1, OBJECT_PATH) : 0;

	return xasprintf("%s %" PRIu64 " %" PRIu64 " %" PRIu64, name, path,
			 recording_get(r, RECORDING_FRAMES, frame, FRAME_FILE),
			 recording_get(r, RECORDING_FRAMES, frame, FRAME_LINE));
}

/* Speedscope would show equal frames at several addresses side by side: they become one. */
static void put_frames(struct json_writer *w, const struct recording *r, frame_numbers *numbers)
{
	struct path_tree *known = path_tree_new();
	uint32_t count = 0;

	for (size_t i = 0; i < recording_rows(r, RECORDING_FRAMES); i++) {
		_cleanup_free_ char *key = frame_key(r, i);
		uint32_t number = path_tree_child(known, 0, key, strlen(key)) - 1;

		*vec_add(numbers) = number;
		if (number < count)
			continue;
		if (count++ > 0)
			json_write_line(w, 0);
		put_frame(w, r, i);
	}
	path_tree_free(known);
}

static void put_path(struct json_writer *w, const struct recording *r, size_t leaf,
		     const frame_numbers *numbers)
{
	recording_frames frame = {0};

	recording_leaf_frames(r, leaf, &frame);
	json_write_open(w, NULL, '[');
	for (size_t i = frame.count; i-- > 0;)
		json_write_number(w, NULL, numbers->data[frame.data[i]]);
	json_write_close(w, 1);
	vec_deinit(&frame);
}

void recording_speedscope_write(FILE *out, const struct recording *r,
				const struct recording_view *v, const char *name)
{
	struct json_writer w = {.out = out};
	const char *command = recording_meta(r, "command");
	frame_numbers numbers = {0};

	json_write_open(&w, NULL, '{');
	json_write_text(&w, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_write_text(json_write_line(&w, 0), "exporter", "ptmem-report");
	json_write_text(&w, "name", command ? command : "");
	json_write_number(&w, "activeProfileIndex", 0);
	json_write_open(json_write_line(&w, 0), "shared", '{');
	json_write_open(&w, "frames", '[');
	put_frames(&w, r, &numbers);
	json_write_close(&w, 2);
	json_write_open(json_write_line(&w, 0), "profiles", '[');
	json_write_open(&w, NULL, '{');
	json_write_text(&w, "type", "sampled");
	json_write_text(&w, "name", name);
	json_write_text(&w, "unit", "bytes");
	json_write_numbers(&w, {"startValue", 0}, {"endValue", v->sum.bytes});
	json_write_open(json_write_line(&w, 0), "samples", '[');
	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++)
		if (v->leaf[i].bytes)
			put_path(&w, r, i, &numbers);
	json_write_close(&w, 1);
	json_write_open(json_write_line(&w, 0), "weights", '[');
	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++)
		if (v->leaf[i].bytes)
			json_write_number(&w, NULL, v->leaf[i].bytes);
	json_write_close(&w, 4);
	putc('\n', out);
	vec_deinit(&numbers);
}
