/* Each leaf is a sample, its path the outermost function first. */
#include "report/recording_output.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "output/path_tree.h"
#include "recording/recording_json.h"
#include "report/recording_paths.h"

/* By frame of the recording: its number in the output. */
typedef VEC(uint32_t) frame_numbers;

static void put_frame(FILE *out, const struct recording *r, size_t frame)
{
	_cleanup_free_ char *name = recording_frame_name(r, frame);
	uint64_t file = recording_get(r, RECORDING_FRAMES, frame, FRAME_FILE);

	fputs("{\"name\":", out);
	recording_put_string(out, name);
	if (file) {
		fputs(",\"file\":", out);
		recording_put_string(out, r->text.data[file]);
		fprintf(out, ",\"line\":%" PRIu64,
			recording_get(r, RECORDING_FRAMES, frame, FRAME_LINE));
	}
	putc('}', out);
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
static void put_frames(FILE *out, const struct recording *r, frame_numbers *numbers)
{
	struct path_tree *known = path_tree_new();
	uint32_t count = 0;

	for (size_t i = 0; i < recording_rows(r, RECORDING_FRAMES); i++) {
		_cleanup_free_ char *key = frame_key(r, i);
		uint32_t number = path_tree_child(known, 0, key, strlen(key)) - 1;

		*vec_add(numbers) = number;
		if (number < count)
			continue;
		fputs(count++ > 0 ? ",\n" : "", out);
		put_frame(out, r, i);
	}
	path_tree_free(known);
}

static void put_path(FILE *out, const struct recording *r, size_t leaf,
		     const frame_numbers *numbers)
{
	VEC(uint64_t) frame = {0};

	for (uint64_t n = recording_get(r, RECORDING_LEAVES, leaf, LEAF_NODE); n > 0;
	     n = recording_get(r, RECORDING_NODES, n - 1, NODE_PARENT))
		*vec_add(&frame) = recording_get(r, RECORDING_NODES, n - 1, NODE_FRAME);
	putc('[', out);
	for (size_t i = frame.count; i-- > 0;)
		fprintf(out, "%" PRIu32 "%s", numbers->data[frame.data[i]], i > 0 ? "," : "");
	putc(']', out);
	vec_deinit(&frame);
}

static void put_samples(FILE *out, const struct recording *r, const struct recording_view *v,
			const frame_numbers *numbers)
{
	bool is_first = true;

	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++) {
		if (!v->leaf[i].bytes)
			continue;
		if (!is_first)
			putc(',', out);
		is_first = false;
		put_path(out, r, i, numbers);
	}
}

static void put_weights(FILE *out, const struct recording *r, const struct recording_view *v)
{
	bool is_first = true;

	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++) {
		if (!v->leaf[i].bytes)
			continue;
		fprintf(out, "%s%" PRIu64, is_first ? "" : ",", v->leaf[i].bytes);
		is_first = false;
	}
}

void recording_speedscope_write(FILE *out, const struct recording *r,
				const struct recording_view *v, const char *name)
{
	const char *command = recording_meta(r, "command");
	frame_numbers numbers = {0};

	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
	      "\"exporter\":\"ptmem-report\",\"name\":", out);
	recording_put_string(out, command ? command : "");
	fputs(",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[", out);
	put_frames(out, r, &numbers);
	fputs("]},\n\"profiles\":[{\"type\":\"sampled\",\"name\":", out);
	recording_put_string(out, name);
	fprintf(out, ",\"unit\":\"bytes\",\"startValue\":0,\"endValue\":%" PRIu64,
		v->sum.bytes);
	fputs(",\n\"samples\":[", out);
	put_samples(out, r, v, &numbers);
	fputs("],\n\"weights\":[", out);
	put_weights(out, r, v);
	fputs("]}]}\n", out);
	vec_deinit(&numbers);
}
