/*
 * Recordings, whatever they hold: refused with a reason, or good enough for every report. Chunks are
 * packed again and their checksums are made right, or hardly a mutation would get beyond them: an
 * input here is a list of unpacked chunks.
 *
 *	name (4 bytes), size (2 bytes, little-endian), content
 *
 * "smpl" of no bytes comes first if it is a recording of samples.
 */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/log.h"
#include "output/graph/graph_page.h"
#include "profile/cells.h"
#include "recording/graph_file.h"
#include "recording/graph_pprof.h"
#include "recording/recording_format.h"
#include "recording/recording_json.h"
#include "recording/recording_pprof.h"
#include "recording/recording_reduce.h"
#include "recording/recording_view.h"
#include "report/diff_output.h"
#include "report/diff_paths.h"
#include "report/gates/measure.h"
#include "report/recording_output.h"

const struct fuzz_seed fuzz_seeds[] = {
	FUZZ_TEXT("text\x17\0" "\x04" "\x03pid" "\x01" "7" "\x03" "f()" "\x0b" "free_stacks"
		  "meta\x06\0" "\x02\x02" "\x02\x06" "\x04\0"
		  "objs\x07\0" "\x05\x01" "\x02\0\x02\x04\0"
		  "frms\x09\0" "\x07\x01" "\x06\0\x02\x02\0\0\x06"
		  "node\x04\0" "\x02\x01" "\0\0"
		  "leaf\x0b\0" "\x09\x01" "\x02\x04\x10\x02\0\0\x08\x02\x02"
		  "size\x05\0" "\x03\x01" "\x02\x04\x04"
		  "life\x05\0" "\x03\x01" "\x02\x02\x02"
		  "thrd\x04\0" "\x02\x01" "\0\x06"
		  "shar\x06\0" "\x04\x01" "\x02\0\x04\x10"
		  "time\x16\0" "\x0a\x02" "\0\0\0\x02\x08\0\x02\0\x08\0\x04\0\x10\0\0\0\0\0\0\0"
		  "cell\x15\0" "\x06\x03" "\0\0\0" "\0\x02\0" "\0\0\0" "\0\x02\xfc\x0f" "\0\x02\x02" "\0\x08\x08"
		  "pkat\x05\0" "\x03\x01" "\x02\x08\x02"
		  "peak\x06\0" "\x04\x01" "\0\x02\x08\x02"
		  "mark\x05\0" "\x03\x01" "\x02\x02\x04"
		  "leak\x06\0" "\x04\x01" "\x02\x02\x02\x08"
		  "rels\x05\0" "\x03\x01" "\x02\x04\x10"
		  "end.\x0d\0" "\x0b\x01" "\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02"
		  "insp\x08\0" "\x06\x01" "\x02\x02\x08\0\x02\x02"
		  "doub\x03\0" "\x01\x01" "\x02"
		  "resi\x05\0" "\x03\x01" "\x02\x08\0"
		  "aren\x0d\0" "\x0b\x01" "\x20\x02\x02\x08\x08\0\x02\x08\x02\x02\x02"
		  "pind\x05\0" "\x03\x01" "\0\x02\x02"
		  "heap\x05\0" "\x03\x01" "\0\x20\x40"
		  "hmap\x0a\0" "\x04\x02" "\0\0" "\x02\0" "\x08\0" "\x02\x01"
		  "type\x06\0" "\x04\x01" "\x02\x02\x08\x02"
		  "pins\x04\0" "\x02\x01" "\x02\x02"
		  "advc\x05\0" "\x03\x01" "\x02\x08\x02"
		  "grph\x05\0" "\x03\x01" "\x18\x02\x10"
		  "gtyp\x03\0" "\x01\x01" "\x02"
		  "gblo\x0a\0" "\x04\x02" "\x20\x40" "\x10\0" "\x02\x01" "\x02\x01"
		  "gown\x09\0" "\x07\x01" "\0\0\0\x20\x02\x02\x02"
		  "gedg\x08\0" "\x03\x02" "\x02\x01" "\0\0" "\0\0"
		  "sync\0\0"),
	FUZZ_TEXT("time\x0c\0" "\x0a\x01" "\x02\0\0\0\0\0\0\0\0\0"
		  "leaf\x0b\0" "\x09\x01" "\0\x04\x10\x02\0\0\x08\x02\x02"
		  "cell\x09\0" "\x06\x01" "\0\x02\0\xfe\x0f\x02\x02"
		  "sync\0\0"),
	FUZZ_TEXT("smpl\0\0"
		  "text\x1c\0" "\x04\x0b" "heap_sample" "\x05" "65536" "\x03" "f()" "\x04" "free"
		  "meta\x04\0" "\x02\x01" "\x02\x04"
		  "frms\x09\0" "\x07\x01" "\x06\0\x02\0\0\0\x06"
		  "node\x04\0" "\x02\x01" "\0\0"
		  "leaf\x0d\0" "\x0b\x01" "\x02\x04\x10\x02\0\0\x08\x02\x02\x08\x08"
		  "size\x05\0" "\x03\x01" "\x02\x04\x04"
		  "thrd\x04\0" "\x02\x01" "\0\x06"
		  "shar\x07\0" "\x05\x01" "\x02\0\x04\x10\x08"
		  "time\x0e\0" "\x0c\x01" "\0\0\x08\x02\x08\x02\x08\x02\0\0\x08\x08"
		  "cell\x09\0" "\x07\x01" "\0\x02\0\xfe\x0f\x02\x08\x08"
		  "pkat\x06\0" "\x04\x01" "\x02\x08\x02\x08"
		  "peak\x07\0" "\x05\x01" "\0\x02\x08\x02\x08"
		  "call\x05\0" "\x03\x01" "\x08\x04\x10"
		  "end.\x0f\0" "\x0d\x01" "\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x08\x08"
		  "sync\0\0"),
	/* T[] -> T[] -> f() -> T[], from a variable and a frame; names of words, and call paths */
	FUZZ_TEXT("text\x0e\0" "\x03" "\x03" "T[]" "\x03" "f()" "\x04" "main"
		  "grph\x05\0" "\x03\x01" "\x18\x02\x10"
		  "gtyp\x04\0" "\x01\x02" "\x02\x02"
		  "gblo\x16\0" "\x04\x04" "\x80\x40\x80\x01\x80\x01\x80\x01" "\x40\0\x20\x1f"
		  "\x02\x02\x03\x02" "\x02\0\0\x01"
		  "gown\x1a\0" "\x07\x03" "\0\x06\x02" "\0\0\x04" "\0\x18\0" "\x80\x20\x80\x04\xff\x22"
		  "\x04\x03\x06" "\0\0\x06" "\x02\x01\x02"
		  "gedg\x11\0" "\x03\x05" "\x02\x02\x03\0\x06" "\0\0\0\0\x02" "\0\x02\x01\x04\x03"
		  "gwrd\x04\0" "\x01\x02" "\x02\x01"
		  "gfld\x08\0" "\x03\x02" "\0\0" "\0\x02" "\x06\x03"
		  "gfun\x04\0" "\x01\x02" "\x04\x02"
		  "gcal\x06\0" "\x02\x02" "\0\x02" "\0\x02"
		  "gpth\x06\0" "\x02\x02" "\x02\x02" "\x02\0"
		  "gall\x06\0" "\x01\x04" "\x02\x02\x03\x02"
		  "sync\0\0"),
	{0},
};

static void put_u32(FILE *f, size_t value)
{
	for (int i = 0; i < 4; i++)
		putc((int)(value >> (8 * i) & 255), f);
}

static void put_chunk(FILE *f, const uint8_t *name, const uint8_t *content, size_t size)
{
	uLongf packed = compressBound(size);
	uint8_t *data = malloc(packed);

	CHECK(compress2(data, &packed, content, size, 1) == Z_OK);
	fwrite(name, 4, 1, f);
	put_u32(f, packed);
	put_u32(f, size);
	put_u32(f, crc32(0, data, (uInt)packed));
	fwrite(data, packed, 1, f);
	free(data);
}

static bool is_sampled(const uint8_t *data, size_t size)
{
	return size >= 6 && memcmp(data, "smpl\0\0", 6) == 0;
}

static void put_chunks(FILE *f, const uint8_t *data, size_t size)
{
	fputs(is_sampled(data, size) ? RECORDING_HEAD_SAMPLED : RECORDING_HEAD, f);
	for (size_t at = is_sampled(data, size) ? 6 : 0; size - at >= 6;) {
		size_t n = data[at + 4] | (size_t)data[at + 5] << 8;

		if (n > size - at - 6)
			n = size - at - 6;
		put_chunk(f, data + at, data + at + 6, n);
		at += 6 + n;
	}
}

/* The graph in it, in each form. */
static void use_graph(FILE *out, const struct recording *r)
{
	static const char *const subjects[] = {NULL, "0x1040", "T[]", "function:f", "type:f()"};
	struct graph_file *f = NULL;
	char *why = NULL;

	if (!graph_file_is_in(r) || graph_file_take(r, &f, &why) != 0) {
		free(why);
		return;
	}
	const struct graph_title title = graph_file_title(f);

	for (size_t i = 0; i < ARRAY_SIZE(subjects); i++) {
		const struct graph_wish wish = {.depth = 3, .holds = subjects[i]};

		graph_report_print(out, &title, &f->graph, &wish);
		graph_report_write_json(out, &title, &f->graph, &wish);
	}
	graph_page_write(out, &title, &f->graph);
	graph_pprof_write(out, &f->graph, title.command);
	graph_file_free(f);
}

static void use_massif(FILE *out, const struct recording *r)
{
	struct recording_view v;

	recording_massif_write(out, r, NULL, 1);
	recording_view_of(&v, r, VIEW_TOTAL);
	recording_massif_write(out, r, &v, 1);
	recording_view_deinit(&v);
}

static void use_view(FILE *out, const struct recording *r, const struct recording_question *q)
{
	struct recording_view v, total;
	char *why = NULL;

	char *json = NULL;

	CHECK(recording_view_json(r, q, &json, &why) == 0);
	recording_json_write(out, r, json);
	free(json);
	CHECK(recording_view_init(&v, r, q, &why) == 0);
	recording_view_of(&total, r, VIEW_TOTAL);
	recording_csv_write(out, r, &v);
	recording_speedscope_write(out, r, &v, "f");
	struct pprof_value *value = recording_pprof_values(r, &v, &total);

	recording_pprof_write(out, r, value, false);
	free(value);
	recording_view_deinit(&v);
	recording_view_deinit(&total);
}

static void use_metric(struct diff_pair *pair, enum limit_metric metric)
{
	struct gate g = {0};
	struct measured m;
	double value[2];

	if (!measure_knows(pair->input, metric))
		return;
	measure_select(pair, metric, value);
	measured_init(&m, pair, metric, NULL);
	measured_sort(&m, false);
	CHECK(value[0] == value[1] && m.sum[0] == m.sum[1]);
	for (size_t i = 0; i < m.site.count; i++)
		measured_add_site(&m, i, &g.site);
	measured_deinit(&m);
	gate_deinit(&g);
}

/* Against itself: nothing changes. */
static void use_diff(FILE *out, struct recording *r)
{
	const struct input input[2] = {{.kind = INPUT_RECORDING, .recording = r},
				       {.kind = INPUT_RECORDING, .recording = r}};
	static const struct recording_question all = {0};
	struct diff_pair pair = {.input = input, .match = diff_pair_match(input, false)};
	struct diff_rows rows;
	char *why = NULL;

	for (int i = 0; i < 2; i++)
		CHECK(recording_view_init(&pair.view[i], r, &all, &why) == 0);
	for (int order = DIFF_CALLER_FIRST; order <= DIFF_TABLE; order++) {
		struct path_tree *t = diff_pair_tree(&pair, (enum diff_order)order);

		CHECK(path_tree_node(t, 0)->total[PATH_OLD] == path_tree_node(t, 0)->total[PATH_NEW]);
		diff_rows_init(&rows, t);
		diff_json_write(out, input, (char *[]){"", ""}, pair.match,
				&(struct diff_json_rows){{"a", "b"}, &rows, NULL});
		diff_rows_deinit(&rows);
		path_tree_free(t);
	}
	for (enum limit_metric m = 0; m < LIMIT_METRICS; m++)
		use_metric(&pair, m);
	recording_view_deinit(&pair.view[PATH_OLD]);
	recording_view_deinit(&pair.view[PATH_NEW]);
	frame_match_free(pair.match);
}

static void use(struct recording *r)
{
	static const struct recording_question all = {0}, at = {.at = "50%"},
						 range = {.range = "0..end"};
	const struct recording_question *questions[] = {&all, &at, &range};
	const struct row_limits limits = {10, 1};
	FILE *null = fopen("/dev/null", "w");
	char *why = NULL;

	use_diff(null, r);
	use_graph(null, r);
	use_massif(null, r);
	for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
		if (recording_text_print(null, r, questions[i], &limits, &why) != 0) {
			CHECK(why && *why);
			free(why);
			continue;
		}
		use_view(null, r, questions[i]);
	}
	fclose(null);
}

/* As it is written: cells that never died have those that died, too. */
static void undo_reading(struct recording *r)
{
	struct recording_table *t = &r->table[RECORDING_CELLS];
	size_t rows = t->rows;

	for (size_t i = 0; i < rows; i++) {
		uint64_t row[CELL_COLUMNS];

		for (int c = 0; c < CELL_COLUMNS; c++)
			row[c] = t->column[c][i];
		row[CELL_DIED] = CELL_NEVER;
		if (t->column[CELL_DIED][i] != CELL_NEVER)
			recording_add(r, RECORDING_CELLS, row);
	}
}

static struct recording *reread(const struct recording *r)
{
	struct recording *back = NULL;
	char *data = NULL, *why = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&data, &size);

	CHECK(recording_write(file, r) == 0 && fclose(file) == 0);
	CHECK(recording_read(data, size, &back, &why) == 0);
	free(data);
	return back;
}

/* Sums of larger ones do not fit into 64 bits. */
static bool has_small_cells(const struct recording *r)
{
	const struct recording_table *t = &r->table[RECORDING_CELLS];

	for (size_t i = 0; i < t->rows; i++)
		if (t->column[CELL_BLOCKS][i] >> 48 || t->column[CELL_BYTES][i] >> 48 ||
		    t->column[CELL_VARIANCE][i] >> 48)
			return false;
	return true;
}

/* Any detail may be left out of it. */
static void thin(struct recording *r, uint8_t how)
{
	const struct recording_detail detail = {
		.merges = how % 4, .leaves = how / 4 % 4, .threads = how / 16 % 4,
		.releases = how / 64, .markers = how % 2, .has_inspection = how % 3,
		.text_size = 1 + how % 5};

	undo_reading(r);
	struct recording *thinned = recording_reduce(r, &detail);
	struct recording *back = reread(thinned);

	CHECK(recording_rows(back, RECORDING_LEAVES) <= detail.leaves + 1);
	use(back);
	recording_free(back);
	recording_free(thinned);
}

static void read_one(const char *data, size_t size)
{
	struct recording *r = NULL;
	char *why = NULL;

	if (recording_read(data, size, &r, &why) != 0) {
		CHECK(why && *why && !r);
		free(why);
		return;
	}
	use(r);
	if (size % 2 && has_small_cells(r)) {
		thin(r, (uint8_t)(size / 2));
		recording_free(r);
		return;
	}
	CHECK(recording_keep_matches(r, "f|lib", &why) == 0);
	use(r);
	recording_free(r);
}

void fuzz_one(const uint8_t *data, size_t size)
{
	char *file = NULL;
	size_t file_size = 0;
	FILE *f = open_memstream(&file, &file_size);

	put_chunks(f, data, size);
	fclose(f);
	read_one(file, file_size);
	/* and the bytes of the file itself: cut, or with one of them wrong */
	if (size > 1 && file_size > 20) {
		read_one(file, file_size - data[0] % 20);
		file[18 + data[1] % (file_size - 18)] ^= 1;
		read_one(file, file_size);
	}
	free(file);
}
