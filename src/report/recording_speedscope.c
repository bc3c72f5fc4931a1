/* Each leaf is a sample, its path the outermost function first. Frames are the recording's. */
#include "report/recording_speedscope.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "recording/recording_columns.h"
#include "report/recording_paths.h"

static void put_frames(FILE *out, const struct recording *r)
{
	for (size_t i = 0; i < recording_rows(r, RECORDING_FRAMES); i++) {
		_cleanup_free_ char *name = recording_frame_name(r, i);
		uint64_t file = recording_get(r, RECORDING_FRAMES, i, FRAME_FILE);

		fputs(i > 0 ? ",\n{\"name\":" : "{\"name\":", out);
		recording_put_string(out, name);
		if (file) {
			fputs(",\"file\":", out);
			recording_put_string(out, r->text.data[file]);
			fprintf(out, ",\"line\":%" PRIu64,
				recording_get(r, RECORDING_FRAMES, i, FRAME_LINE));
		}
		putc('}', out);
	}
}

static void put_path(FILE *out, const struct recording *r, size_t leaf)
{
	VEC(uint64_t) frame = {0};

	for (uint64_t n = recording_get(r, RECORDING_LEAVES, leaf, LEAF_NODE); n > 0;
	     n = recording_get(r, RECORDING_NODES, n - 1, NODE_PARENT))
		*vec_add(&frame) = recording_get(r, RECORDING_NODES, n - 1, NODE_FRAME);
	putc('[', out);
	for (size_t i = frame.count; i-- > 0;)
		fprintf(out, "%" PRIu64 "%s", frame.data[i], i > 0 ? "," : "");
	putc(']', out);
	vec_deinit(&frame);
}

static void put_samples(FILE *out, const struct recording *r, const struct recording_view *v)
{
	bool is_first = true;

	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++) {
		if (!v->leaf[i].bytes)
			continue;
		if (!is_first)
			putc(',', out);
		is_first = false;
		put_path(out, r, i);
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

	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
	      "\"exporter\":\"ptmem-report\",\"name\":", out);
	recording_put_string(out, command ? command : "");
	fputs(",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[", out);
	put_frames(out, r);
	fputs("]},\n\"profiles\":[{\"type\":\"sampled\",\"name\":", out);
	recording_put_string(out, name);
	fprintf(out, ",\"unit\":\"bytes\",\"startValue\":0,\"endValue\":%" PRIu64,
		v->sum.bytes);
	fputs(",\n\"samples\":[", out);
	put_samples(out, r, v);
	fputs("],\n\"weights\":[", out);
	put_weights(out, r, v);
	fputs("]}]}\n", out);
}
