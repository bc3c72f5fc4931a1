/* See diff_json.h. */
#include "report/diff_json.h"

#include <inttypes.h>
#include <string.h>

#include "base/json_text.h"
#include "recording/recording_json.h"
#include "report/massif_json.h"

static const char *const side_names[] = {[PATH_OLD] = "old", [PATH_NEW] = "new"};

/* Writes a profile. @frames_out: the matched number of each of its frames. */
static void put_profile(FILE *out, const struct input *input, const char *more,
			struct massif_json_frames *frames_out)
{
	*frames_out = (struct massif_json_frames){0};
	if (input->kind != INPUT_RECORDING) {
		massif_json_write(out, input->massif, frames_out);
		return;
	}
	recording_json_write(out, input->recording, more);
	frames_out->count = recording_rows(input->recording, RECORDING_FRAMES);
}

typedef uint32_t number_fn(const struct frame_match *m, enum path_side side, size_t frame);

static void put_numbers(FILE *out, const struct frame_match *m, enum path_side side,
			const struct massif_json_frames *frames, number_fn *number)
{
	putc('[', out);
	for (size_t i = 0; i < frames->count; i++)
		fprintf(out, "%s%" PRIu32, i ? "," : "",
			number(m, side, frames->node ? frames->node[i] : i));
	putc(']', out);
}

static void put_match(FILE *out, const struct frame_match *m,
		      const struct massif_json_frames frames[2])
{
	fputs(",\n\"match\":{\"functions\":[", out);
	for (uint32_t i = 0; i < frame_match_function_count(m); i++) {
		const char *name = frame_match_name(m, i);

		fputs(i ? "," : "", out);
		json_put_text(out, name, strlen(name));
	}
	putc(']', out);
	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		fprintf(out, ",\n\"%s\":{\"function\":", side_names[side]);
		put_numbers(out, m, (enum path_side)side, &frames[side], frame_match_function);
		fputs(",\n\"site\":", out);
		put_numbers(out, m, (enum path_side)side, &frames[side], frame_match_site);
		putc('}', out);
	}
	putc('}', out);
}

static void put_rows(FILE *out, const struct diff_json_rows *r, bool has_blocks)
{
	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		fprintf(out, ",\n\"%s_view\":", side_names[side]);
		json_put_text(out, r->view[side], strlen(r->view[side]));
	}
	fputs(",\n\"changes\":", out);
	diff_rows_write_json(out, r->rows, has_blocks);
}

void diff_json_write(FILE *out, const struct input *input, char *const more[2],
		     const struct frame_match *match, const struct diff_json_rows *rows)
{
	struct massif_json_frames frames[2];

	fputs("{\"format\":\"ptmem-report-diff\",\"version\":1", out);
	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		fprintf(out, ",\n\"%s\":", side_names[side]);
		put_profile(out, &input[side], more[side], &frames[side]);
	}
	put_match(out, match, frames);
	if (rows)
		put_rows(out, rows, input->kind == INPUT_RECORDING);
	fputs("}\n", out);
	free(frames[PATH_OLD].node);
	free(frames[PATH_NEW].node);
}
