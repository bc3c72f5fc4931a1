/* Reads memusage's data, samples and --inspect's results, and tells the kinds of input apart. */
#include "report/input.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/json.h"
#include "base/text.h"
#include "recording/graph_file.h"
#include "recording/recording_format.h"
#include "report/massif_paths.h"

/*
 * Reads memusage's data files. They have no magic number, so only the size is checked, and that
 * record 0 has no heap.
 *
 * memusage writes through a buffer of two halves and, when it ends just after it wrote the first
 * half, writes that half again. The file does not contain the size of the halves, but only a size
 * whose double divides the number of records qualifies.
 */

#define HEADER_RECORDS 2
#define MAX_HALF 32768

static uint64_t read_u64(const char *at)
{
	uint64_t value = 0;

	for (size_t i = 8; i-- > 0;)
		value = value << 8 | (uint8_t)at[i];
	return value;
}

static struct memusage_record read_record(const char *at)
{
	return (struct memusage_record){.heap = read_u64(at),
					.stack = read_u64(at + 8),
					.time = read_u64(at + 16)};
}

/* How many of the @count records at @data are a second copy of the last half. */
static size_t count_duplicates(const char *data, size_t count)
{
	for (size_t half = 1; half <= MAX_HALF && 2 * half <= count; half++) {
		const char *last = data + (count - half) * MEMUSAGE_RECORD_SIZE;
		size_t size = half * MEMUSAGE_RECORD_SIZE;

		if (count % (2 * half) == 0 && !memcmp(last, last - size, size))
			return half;
	}
	return 0;
}

static void find_peaks(struct memusage_file *f)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct memusage_record *r = &f->record[i];

		f->peak_heap = MAX(f->peak_heap, r->heap);
		f->peak_stack = MAX(f->peak_stack, r->stack);
		f->peak_total = MAX(f->peak_total, r->heap + r->stack);
	}
}

static void read_records(struct memusage_file *f, const char *data)
{
	f->record = xcalloc(MAX(f->count, 1), sizeof(*f->record));
	for (size_t i = 0; i < f->count; i++) {
		f->record[i] = read_record(data + i * MEMUSAGE_RECORD_SIZE);
		f->start = MIN(f->start, f->record[i].time);
		f->end = MAX(f->end, f->record[i].time);
	}
}

static int parse_memusage(const char *data, size_t size, struct memusage_file **file_out,
			  char **why_out)
{
	if (size % MEMUSAGE_RECORD_SIZE || size < HEADER_RECORDS * MEMUSAGE_RECORD_SIZE) {
		*why_out = xasprintf(
			"not a memusage data file: %zu bytes are not two or more 24-byte records",
			size);
		return -EINVAL;
	}
	struct memusage_record total = read_record(data),
			       peaks = read_record(data + MEMUSAGE_RECORD_SIZE);

	if (total.heap) {
		*why_out = xstrdup("not a memusage data file: its first record has a heap");
		return -EINVAL;
	}
	struct memusage_file *f = xcalloc(1, sizeof(*f));
	const char *records = data + HEADER_RECORDS * MEMUSAGE_RECORD_SIZE;

	f->count = size / MEMUSAGE_RECORD_SIZE - HEADER_RECORDS;
	f->count -= count_duplicates(records, f->count);
	f->start = total.time;
	f->end = MAX(peaks.time, total.time);
	f->peak_heap = peaks.heap;
	f->peak_stack = peaks.stack;
	f->peak_total = total.stack;
	f->is_complete = peaks.heap || peaks.stack || total.stack || !f->count;
	read_records(f, records);
	if (!f->is_complete)
		find_peaks(f);
	*file_out = f;
	return 0;
}

int memusage_file_parse(char *data, size_t size, struct memusage_file **file_out, char **why_out)
{
	int err = parse_memusage(data, size, file_out, why_out);

	free(data);
	return err;
}

void memusage_file_free(struct memusage_file *file)
{
	if (!file)
		return;
	free(file->record);
	free(file);
}

/*
 * Reads sampler files: the grammar is in input.h. Lines and words are split in place; an
 * invalid number is an error with its line number.
 */

/* Splits off the word that ends at a tab from *@rest, which becomes NULL after the last one. */
static char *next_word(char **rest)
{
	return strsep(rest, "\t");
}

static bool parse_u64(const char *word, uint64_t *out)
{
	char *end;

	errno = 0;
	unsigned long long value = strtoull(word, &end, 10);

	if (*word < '0' || *word > '9' || *end || errno)
		return false;
	*out = value;
	return true;
}

static bool parse_seconds(const char *word, double *out)
{
	if (!*word || word[strspn(word, "0123456789.")])
		return false;
	char *end;
	double value = strtod(word, &end);

	if (*end || end == word || !isfinite(value))
		return false;
	*out = value;
	return true;
}

static char *parse_header(struct samples_file *f, char *line)
{
	const char *time = next_word(&line), *pid = line ? next_word(&line) : "";

	if (strcmp(time, "time") != 0 || strcmp(pid, "pid") != 0)
		return xstrdup("expected \"time\" and \"pid\" as the first columns");
	while (line) {
		f->field =
			xgrow(f->field, &f->field_capacity, f->field_count + 1, sizeof(*f->field));
		f->field[f->field_count++] = next_word(&line);
	}
	return f->field_count ? NULL : xstrdup("no fields after \"time\" and \"pid\"");
}

static char *parse_values(struct samples_file *f, char *rest)
{
	f->value = xgrow(f->value, &f->value_capacity, (f->row_count + 1) * f->field_count,
			 sizeof(*f->value));
	for (size_t i = 0; i < f->field_count; i++) {
		const char *word = rest ? next_word(&rest) : NULL;
		uint64_t *value = &f->value[f->row_count * f->field_count + i];

		if (!word)
			return xasprintf("no value for %s", f->field[i]);
		*value = SAMPLES_NONE;
		if (strcmp(word, "-") != 0 && !parse_u64(word, value))
			return xasprintf("%s is not a number: '%s'", f->field[i], word);
	}
	return rest ? xstrdup("more values than columns") : NULL;
}

static char *parse_row(struct samples_file *f, char *line)
{
	const char *time = next_word(&line), *pid = line ? next_word(&line) : "";
	double seconds;
	uint64_t number;

	if (!parse_seconds(time, &seconds))
		return xasprintf("no time in seconds: '%s'", time);
	if (!parse_u64(pid, &number) || number > UINT32_MAX)
		return xasprintf("no process: '%s'", pid);
	char *why = parse_values(f, line);

	if (why)
		return why;
	f->time = xgrow(f->time, &f->time_capacity, f->row_count + 1, sizeof(*f->time));
	f->pid = xgrow(f->pid, &f->pid_capacity, f->row_count + 1, sizeof(*f->pid));
	f->time[f->row_count] = seconds;
	f->pid[f->row_count++] = (uint32_t)number;
	return NULL;
}

/* The error in the first invalid line; NULL if there is none. */
static char *parse_lines(struct samples_file *f, char *end)
{
	size_t number = 0;

	for (char *line = f->data, *stop; (stop = memchr(line, '\n', (size_t)(end - line)));
	     line = stop + 1) {
		*stop = '\0';
		char *why = number++ ? parse_row(f, line) : parse_header(f, line);

		if (why) {
			char *out = xasprintf("Line %zu: %s", number, why);

			free(why);
			return out;
		}
	}
	return number ? NULL : xstrdup("Line 1: expected a header line");
}

int samples_file_parse(char *data, size_t size, struct samples_file **file_out, char **why_out)
{
	struct samples_file *f = xcalloc(1, sizeof(*f));

	f->data = data;
	char *why = parse_lines(f, data + size);

	if (why) {
		samples_file_free(f);
		*why_out = why;
		return -EINVAL;
	}
	*file_out = f;
	return 0;
}

void samples_file_free(struct samples_file *file)
{
	if (!file)
		return;
	free(file->data);
	free(file->field);
	free(file->time);
	free(file->pid);
	free(file->value);
	free(file);
}

size_t samples_file_field(const struct samples_file *file, const char *name)
{
	for (size_t i = 0; i < file->field_count; i++)
		if (!strcmp(file->field[i], name))
			return i;
	return SIZE_MAX;
}

uint64_t samples_file_bytes(const struct samples_file *file, size_t row, size_t field)
{
	uint64_t kib = file->value[row * file->field_count + field], bytes;

	return kib == SAMPLES_NONE || __builtin_mul_overflow(kib, 1024, &bytes) ? SAMPLES_NONE :
										  bytes;
}

/* Converts the JSON document. Missing numbers are 0, missing texts "". See input.h. */

#define FORMAT "\"format\": \"ptmem-inspect\""
#define FORMAT_AT 16u /* only "{" and whitespace may precede it */
#define CELLS_MAX 1000000u

bool inspect_file_is(const char *data, size_t size)
{
	size_t most = FORMAT_AT + strlen(FORMAT);

	return size > 0 && *data == '{' &&
	       memmem(data, MIN(size, most), FORMAT, strlen(FORMAT));
}

static double resident_of(const struct json *j, const char *name)
{
	return MAX(json_number(json_member(j, name), "resident"), 0);
}

static void take_rows(const struct json *j, struct inspect_file *f)
{
	const struct json *rows = json_member(j, "rows");

	for (size_t i = 0; i < ROW_COUNT; i++) {
		f->row[i] = resident_of(rows, inspect_row_name[i]);
		f->sum += f->row[i];
	}
}

static void take_arena(const struct json *j, struct inspect_file *f)
{
	struct inspect_arena *a = vec_add(&f->arenas);
	const char *address = json_text(j, "address");
	_cleanup_free_ char *clean = text_clean(address, strlen(address));

	*a = (struct inspect_arena){
		.name = json_number(j, "main") ? xstrdup("main arena")
					       : xasprintf("arena %s", clean),
		.resident = resident_of(j, "memory"), .live = json_number(j, "live_bytes"),
		.free = resident_of(j, "free"), .trim = resident_of(j, "trim")};
}

/* They follow malloc's; their heaps have the next number. */
static void take_python(struct inspect_file *f)
{
	double live = f->row[ROW_PYTHON_LIVE];
	double free = f->row[ROW_PYTHON_FREE] + f->row[ROW_PYTHON_POOLS];

	if (live > 0)
		*vec_add(&f->arenas) = (struct inspect_arena){
			.name = xstrdup("Python's arenas"), .is_python = true, .live = live,
			.resident = live + free + f->row[ROW_PYTHON_OWN], .free = free};
}

static double item(const struct json *cell, size_t i)
{
	return i < cell->count ? MAX(cell->part[i].number, 0) : 0;
}

static void take_heap(const struct json *j, struct inspect_file *f)
{
	const struct json *cells = json_member(j, "cells");
	double arena = json_number(j, "arena");
	taddr_t at = strtoull(json_text(j, "start"), NULL, 16);

	if (!(arena >= 0 && arena < (double)f->arenas.count))
		return;
	struct inspect_arena *a = &f->arenas.data[(size_t)arena];

	for (size_t i = 0; cells && i < cells->count && a->cells.count < CELLS_MAX; i++) {
		const struct json *c = &cells->part[i];

		*vec_add(&a->cells) = (struct inspect_cell){at, item(c, 0), item(c, 1), item(c, 2)};
		at += f->pages_per_cell * (taddr_t)PAGE_SIZE_MIN;
	}
}

static int compare_arenas(const void *a, const void *b)
{
	const struct inspect_arena *x = a, *y = b;

	return x->resident > y->resident ? -1 : x->resident < y->resident;
}

static void take_map(const struct json *j, struct inspect_file *f)
{
	const struct json *arenas = json_member(j, "arenas"), *map = json_member(j, "map");
	const struct json *heaps = json_member(map, "heaps");
	double pages = json_number(map, "pages_per_cell");

	f->pages_per_cell = pages >= 1 && pages <= 1 << 30 ? (unsigned)pages : 1;
	for (size_t i = 0; arenas && i < arenas->count; i++)
		take_arena(&arenas->part[i], f);
	take_python(f);
	for (size_t i = 0; heaps && i < heaps->count; i++)
		take_heap(&heaps->part[i], f);
	vec_sort(&f->arenas, compare_arenas);
}

static char *make_title(const struct json *j, const char *core)
{
	const char *command = json_text(j, "command");
	_cleanup_free_ char *text =
		xasprintf("%s %.0f, %s", *core ? "core of process" : "process",
			  json_number(j, "pid"), command);

	return text_clean(text, strlen(text));
}

int inspect_file_parse(char *data, size_t size, struct inspect_file **out, char **why_out)
{
	_cleanup_free_ char *text = data;
	struct json *j = json_read(text, size);
	const char *core = json_text(json_member(j, "core"), "file");

	if (!j || !json_member(j, "rows")) {
		json_free(j);
		*why_out = xstrdup("not what --inspect writes: its JSON is damaged");
		return -EINVAL;
	}
	struct inspect_file *f = xcalloc(1, sizeof(*f));

	f->title = make_title(j, core);
	f->all = xstrdup(*core ? "memory in the core that is not zeros"
			       : "resident memory (VmRSS)");
	take_rows(j, f);
	take_map(j, f);
	json_free(j);
	*out = f;
	return 0;
}

void inspect_file_free(struct inspect_file *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->arenas.count; i++) {
		free(f->arenas.data[i].name);
		vec_deinit(&f->arenas.data[i].cells);
	}
	vec_deinit(&f->arenas);
	free(f->title);
	free(f->all);
	free(f);
}

/* Reads input files, and determines their kind. */

static int read_stream(FILE *stream, char **data_out, size_t *size_out)
{
	VEC(char) data = {0};
	size_t n;

	do {
		vec_reserve(&data, data.count + 65536);
		n = fread(data.data + data.count, 1, data.capacity - data.count, stream);
		data.count += n;
	} while (n);
	if (ferror(stream)) {
		int err = errno ? -errno : -EIO;

		vec_deinit(&data);
		return err;
	}
	*data_out = data.data;
	*size_out = data.count;
	return 0;
}

int input_read(const char *path, char **data_out, size_t *size_out)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *stream = is_stdin ? stdin : fopen(path, "re");

	if (!stream)
		return -errno;
	int err = read_stream(stream, data_out, size_out);

	if (!is_stdin)
		fclose(stream);
	return err;
}

enum input_kind input_kind(const char *data, size_t size)
{
	static const char zero[8];

	if (recording_is(data, size))
		return INPUT_RECORDING;
	if (inspect_file_is(data, size))
		return INPUT_INSPECT;
	if (graph_file_is(data, size))
		return INPUT_GRAPH;
	if (size >= 5 && !memcmp(data, "time\t", 5))
		return INPUT_SAMPLES;
	if (size >= sizeof(zero) && !memcmp(data, zero, sizeof(zero)))
		return INPUT_MEMUSAGE;
	return INPUT_MASSIF;
}

/* -- what is not read, by how it begins -- */

static const struct foreign_kind {
	const char *start;
	uint8_t size;
	const char *what;
} foreign_kinds[] = {
#define KIND(text, what) {text, sizeof(text) - 1, what}
	KIND("\x1f\x8b", "it is compressed: unpack it by gunzip first"),
	KIND("\xfd""7zXZ", "it is compressed: unpack it by unxz first"),
	KIND("\x28\xb5\x2f\xfd", "it is compressed: unpack it by unzstd first"),
	KIND("BZh", "it is compressed: unpack it by bunzip2 first"),
	KIND("PK\3\4", "it is an archive: unpack it by unzip first"),
	KIND("\x7f" "ELF", "it is a program, which ptmem profiles, or a core file, which ptmem "
			   "--inspect=FILE reads"),
	KIND("\x89PNG", "it is a picture"),
	KIND("<svg", "it is a picture, which a browser shows"),
	KIND("<?xml", "it is a picture or another XML file"),
	KIND("<!DOCTYPE html", "it is a page, which a browser shows"),
	KIND("# callgrind format", "it is for kcachegrind and callgrind_annotate"),
	KIND("ptmem-recording ", "it is of another version of ptmem, whose ptmem-report reads it"),
	KIND("ptmem-events ", "it has events: ptmem --replay=FILE profiles them"),
	KIND("ptmem-baseline ", "it is a baseline: ptmem-report --baseline=FILE compares with it"),
	KIND("# What the program needs, by ptmem-report --write-baseline",
	     "it is a baseline: ptmem-report --baseline=FILE compares with it"),
	KIND("{", "it is JSON"),
	KIND("[", "it is JSON"),
#undef KIND
};

/* Lines of "main;f;g 12". */
static bool is_folded(const char *data, size_t size)
{
	size_t line = MIN(size, 4096), end = 0;

	while (end < line && data[end] != '\n')
		end++;
	size_t digits = end;

	while (digits > 0 && data[digits - 1] >= '0' && data[digits - 1] <= '9')
		digits--;
	return digits < end && digits > 1 && data[digits - 1] == ' ' && memchr(data, ';', digits);
}

static const char *foreign_what(const char *data, size_t size)
{
	static const char pprof[] = "it is a profile for pprof: go tool pprof reads it";
	char start[3] = "";

	/* the first field, of a message that begins with the number of a text */
	if (size > sizeof(start) && !memcmp(data, "\x1f\x8b", 2))
		gzip_peek(data, size, start, sizeof(start));
	else if (size > sizeof(start))
		memcpy(start, data, sizeof(start));
	if (start[0] == 0x0a && start[1] > 0 && start[1] < 16 && start[2] == 0x08)
		return pprof;
	for (size_t i = 0; i < ARRAY_SIZE(foreign_kinds); i++) {
		const struct foreign_kind *k = &foreign_kinds[i];

		if (size >= k->size && !memcmp(data, k->start, k->size))
			return k->what;
	}
	if (is_folded(data, size))
		return "it has folded stacks, which flamegraph.pl and speedscope read";
	return memchr(data, '\0', MIN(size, 4096)) ? "it is of a kind that is not known here" :
						     "it is a text; ptmem --record=FILE "
						     "PROGRAM makes a recording";
}

/* Comments may come before the head of a massif file. */
static bool has_massif_head(const char *data, size_t size)
{
	return (size >= 5 && !memcmp(data, "desc:", 5)) ||
	       (size >= 4 && !memcmp(data, "cmd:", 4)) ||
	       ((*data == '#' || *data == '\n') && memmem(data, size, "\ntime_unit:", 11));
}

/* For a file whose start is not that of a massif file a line number would not help. */
static int open_massif(char *data, size_t size, struct massif_file **out, char **why_out)
{
	const char *what = has_massif_head(data, size) ? NULL : foreign_what(data, size);
	int err = massif_file_parse(data, size, out, why_out);

	if (err == -EINVAL && what) {
		free(*why_out);
		*why_out = xasprintf("not a massif profile nor a recording of ptmem --record: %s",
				     what);
	}
	return err;
}

static int open_recording(char *data, size_t size, struct recording **out, char **why_out)
{
	int err = recording_read(data, size, out, why_out);
	const char *why = err || !graph_file_is_in(*out) ? NULL : graph_file_check(*out);

	free(data);
	if (!why)
		return err;
	recording_free(*out);
	*out = NULL;
	*why_out = xasprintf("damaged heap graph: %s", why);
	return -EINVAL;
}

static int open_graph(char *data, size_t size, struct graph_file **out, char **why_out)
{
	int err = graph_file_read(data, size, out, why_out);

	free(data);
	return err;
}

int input_open(const char *path, struct input *out, char **why_out)
{
	char *data;
	size_t size;
	int err = input_read(path, &data, &size);

	if (err)
		return err;
	struct input input = {.kind = input_kind(data, size)};

	if (!size) {
		free(data);
		*why_out = xstrdup("the file is empty");
		return -EINVAL;
	}
	if (input.kind == INPUT_SAMPLES)
		err = samples_file_parse(data, size, &input.samples, why_out);
	else if (input.kind == INPUT_MEMUSAGE)
		err = memusage_file_parse(data, size, &input.memusage, why_out);
	else if (input.kind == INPUT_RECORDING)
		err = open_recording(data, size, &input.recording, why_out);
	else if (input.kind == INPUT_INSPECT)
		err = inspect_file_parse(data, size, &input.inspect, why_out);
	else if (input.kind == INPUT_GRAPH)
		err = open_graph(data, size, &input.graph, why_out);
	else
		err = open_massif(data, size, &input.massif, why_out);
	if (!err)
		*out = input;
	return err;
}

void input_deinit(struct input *input)
{
	massif_paths_free(input->massif);
	massif_file_free(input->massif);
	memusage_file_free(input->memusage);
	samples_file_free(input->samples);
	recording_free(input->recording);
	inspect_file_free(input->inspect);
	graph_file_free(input->graph);
	*input = (struct input){0};
}

/* -- profiles -- */

const struct recording *input_paths(const struct input *input)
{
	return input->massif ? massif_paths(input->massif)->recording : input->recording;
}

char *input_command(const struct input *input)
{
	if (input->recording)
		return xstrdup(recording_meta(input->recording, "command") ?: "");
	return xasprintf("%.*s", MASSIF_TEXT(input->massif->command));
}

char *input_program(const struct input *input)
{
	_cleanup_free_ char *command = input_command(input);

	command[strcspn(command, " ")] = '\0';
	return xstrdup(text_base_name(command));
}

uint64_t input_interval(const struct input *input)
{
	return input->recording ? input->recording->interval :
				  massif_sampling_interval(input->massif);
}

const char *input_gap(const struct input *input)
{
	const struct recording *r = input->recording;

	if (r && recording_meta(r, "corrupt"))
		return RECORDING_CORRUPT;
	if (!r || r->is_complete)
		return NULL;
	if (!r->is_copy)
		return RECORDING_INCOMPLETE;
	return recording_meta(r, "exit") ? NULL : RECORDING_SO_FAR;
}

enum input_lines input_lines(const struct input *input)
{
	const struct recording *r = input->recording;
	enum input_lines found = INPUT_NO_FUNCTIONS;

	for (size_t i = 0; r && i < recording_rows(r, RECORDING_FRAMES); i++) {
		if (recording_get(r, RECORDING_FRAMES, i, FRAME_KIND) != KIND_PROGRAM)
			continue;
		if (recording_get(r, RECORDING_FRAMES, i, FRAME_LINE))
			return INPUT_HAS_LINES;
		found = INPUT_NO_LINES;
	}
	return found;
}

/* -- functions that were inlined -- */

/* What the frames of an object tell of it. */
struct object_lines {
	char *name; /* "" = the program; a library without its version; owned */
	bool has_functions, has_lines;
	bool is_reduced; /* the other recording has no lines of it: inlined functions go */
};

typedef VEC(struct object_lines) object_lines_vec;

/* By row of OBJECTS, of which the first is the program. */
static void read_objects(const struct recording *r, object_lines_vec *out)
{
	for (size_t i = 0; i < recording_rows(r, RECORDING_OBJECTS); i++) {
		const char *path = recording_get_text(r, RECORDING_OBJECTS, i, OBJECT_PATH);
		const char *base = i && path ? text_base_name(path) : "", *so = strstr(base, ".so");

		*vec_add(out) = (struct object_lines){
			.name = so ? xstrndup(base, (size_t)(so - base)) : xstrdup(base)};
	}
	for (size_t i = 0; i < recording_rows(r, RECORDING_FRAMES); i++) {
		uint64_t object = recording_get(r, RECORDING_FRAMES, i, FRAME_OBJECT);

		/* Rust's standard library has lines in programs that have none */
		if (!object ||
		    recording_get(r, RECORDING_FRAMES, i, FRAME_KIND) == KIND_STANDARD)
			continue;
		struct object_lines *o = &out->data[object - 1];

		o->has_functions |= recording_get(r, RECORDING_FRAMES, i, FRAME_FUNCTION) != 0;
		o->has_lines |= recording_get(r, RECORDING_FRAMES, i, FRAME_LINE) != 0;
	}
}

/* Whether any object of @o is reduced, since @other has functions of it, and no lines. */
static bool find_reduced(object_lines_vec *o, const object_lines_vec *other)
{
	bool any = false;

	for (size_t i = 0; i < o->count; i++) {
		bool has_functions = false, has_lines = false;

		for (size_t k = 0; k < other->count; k++) {
			const struct object_lines *x = &other->data[k];
			bool is_same = strcmp(x->name, o->data[i].name) == 0;

			has_functions |= is_same && x->has_functions;
			has_lines |= is_same && x->has_lines;
		}
		o->data[i].is_reduced = o->data[i].has_lines && has_functions && !has_lines;
		any |= o->data[i].is_reduced;
	}
	return any;
}

/* Functions that are not inlined, sorted by name: whether any frame of it has a line. */
struct function_lines {
	const char *name; /* the recording's */
	bool has_lines;
};

typedef VEC(struct function_lines) function_lines_vec;

static int compare_functions(const void *a, const void *b)
{
	const struct function_lines *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static bool merge_function(struct function_lines *to, const struct function_lines *from)
{
	if (strcmp(to->name, from->name) != 0)
		return false;
	to->has_lines |= from->has_lines;
	return true;
}

static void read_functions(const struct recording *r, function_lines_vec *out)
{
	for (size_t i = 0; i < recording_rows(r, RECORDING_FRAMES); i++) {
		const char *name = recording_get_text(r, RECORDING_FRAMES, i, FRAME_FUNCTION);

		if (name && !recording_get(r, RECORDING_FRAMES, i, FRAME_INLINED))
			*vec_add(out) = (struct function_lines){
				name, recording_get(r, RECORDING_FRAMES, i, FRAME_LINE) != 0};
	}
	vec_sort(out, compare_functions);
	vec_merge(out, merge_function);
}

/* Whether functions inlined in that of @frame are unknown to a recording of @functions. */
static bool is_unknown_in(const function_lines_vec *functions, const struct recording *r,
			  uint64_t frame, bool is_by_default)
{
	const struct function_lines key = {
		recording_get_text(r, RECORDING_FRAMES, frame, FRAME_FUNCTION), false};
	const struct function_lines *found =
		key.name && functions->count ? bsearch(&key, functions->data, functions->count,
						       sizeof(key), compare_functions) :
					       NULL;

	return found ? !found->has_lines : is_by_default;
}

/* Replaces nodes in a column, which are rows + 1. */
static void renumber(struct recording *r, enum recording_table_id id, unsigned column,
		     const uint64_t *number)
{
	for (size_t i = 0; i < recording_rows(r, id); i++)
		r->table[id].column[column][i] = number[r->table[id].column[column][i]];
}

/*
 * Nodes of inlined functions stay in the table, without a path through them. @other: functions of
 * the other recording; of those that it lacks, and of all if it is NULL, the object decides.
 */
static void reduce_objects(struct recording *r, const object_lines_vec *o,
			   const function_lines_vec *other)
{
	static const function_lines_vec none;
	size_t rows = recording_rows(r, RECORDING_NODES);
	_cleanup_free_ uint64_t *number = xcalloc(rows + 1, sizeof(*number));
	_cleanup_free_ bool *is_reduced = xcalloc(rows + 1, sizeof(*is_reduced));

	for (size_t i = 0; i < rows; i++) { /* a parent precedes its children */
		uint64_t frame = recording_get(r, RECORDING_NODES, i, NODE_FRAME);
		uint64_t object = recording_get(r, RECORDING_FRAMES, frame, FRAME_OBJECT);
		uint64_t parent = recording_get(r, RECORDING_NODES, i, NODE_PARENT);
		bool is_inlined = parent &&
				  recording_get(r, RECORDING_FRAMES, frame, FRAME_INLINED);

		is_reduced[i + 1] =
			is_inlined ? is_reduced[parent] :
				     is_unknown_in(other ?: &none, r, frame,
						   object && o->data[object - 1].is_reduced);
		number[i + 1] = is_inlined && is_reduced[i + 1] ? number[parent] : i + 1;
	}
	renumber(r, RECORDING_NODES, NODE_PARENT, number);
	renumber(r, RECORDING_LEAVES, LEAF_NODE, number);
	renumber(r, RECORDING_RELEASES, RELEASE_NODE, number);
}

static void free_objects(object_lines_vec *o)
{
	vec_release(o, e, free(e->name));
}

void input_merge_inlined(struct input *input)
{
	object_lines_vec objects = {0};

	if (!input->recording)
		return;
	read_objects(input->recording, &objects);
	if (objects.count)
		objects.data->is_reduced = true;
	reduce_objects(input->recording, &objects, NULL);
	free_objects(&objects);
}

void input_match_inlined(struct input *a, struct input *b)
{
	object_lines_vec of_a = {0}, of_b = {0};

	if (!a->recording || !b->recording)
		return;
	function_lines_vec in_a = {0}, in_b = {0};

	read_objects(a->recording, &of_a);
	read_objects(b->recording, &of_b);
	read_functions(a->recording, &in_a);
	read_functions(b->recording, &in_b);
	if (find_reduced(&of_a, &of_b))
		reduce_objects(a->recording, &of_a, &in_b);
	if (find_reduced(&of_b, &of_a))
		reduce_objects(b->recording, &of_b, &in_a);
	vec_deinit(&in_a);
	vec_deinit(&in_b);
	free_objects(&of_a);
	free_objects(&of_b);
}
