/* See embedded_sources.h. Files with the largest peaks come first. */
#include "recording/embedded_sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/json_write.h"
#include "base/log.h"
#include "base/text.h"
#include "recording/recording_site.h"
#include "recording/source_file.h"

#define FILE_MAX_BYTES ((size_t)1 << 20)
#define ALL_MAX_BYTES ((size_t)4 << 20) /* of all files that are embedded */
#define FILES_MAX 500u
#define TAB 8u

struct embedded_file {
	const char *name;   /* a text of a recording */
	uint64_t bytes;     /* sum of the peaks of call paths through it */
	uint64_t leaf;      /* the last one that was added, of embedded.leaves; 0 = none */
	const char *problem;/* NULL = it is embedded */
	struct source_text source;
};

struct embedded {
	VEC(struct embedded_file) file;
	HASH(uint32_t) by_name; /* indexes of files */
	uint64_t leaves;        /* of all recordings, so far */
	long long start;        /* s since 1970, of the first recording to begin; 0 = unknown */
};

/*
 * Whether a file of that name is a source. The page is made to be given away, and names come from
 * the recording: one of another origin must not make it carry a key, or a table of passwords.
 */
static bool is_source_name(const char *path)
{
	static const char *const ends[] = {
		"ada", "adb", "ads", "c", "c++", "cc", "cpp", "cs", "cu", "cxx", "cython", "d",
		"def", "erl", "f", "f03", "f08", "f90", "f95", "for", "go", "h", "h++", "hh", "hpp",
		"hs", "hxx", "inc", "inl", "ipp", "java", "jl", "js", "kt", "l", "ll", "lua", "m",
		"mjs", "ml", "mm", "nim", "pas", "php", "pl", "pm", "pxd", "pxi", "py", "pyx", "rb",
		"rs", "s", "scala", "scm", "swift", "tcc", "ts", "v", "vala", "y", "yy", "zig",
	};
	const char *base = text_base_name(path), *dot = strrchr(base, '.');
	size_t size = dot ? strlen(dot + 1) : 0;
	char end[8] = "";

	if (!size || dot == base || size >= sizeof(end))
		return false;
	for (size_t i = 0; i < size; i++)
		end[i] = dot[1 + i] >= 'A' && dot[1 + i] <= 'Z' ? (char)(dot[1 + i] + 32) :
								  dot[1 + i];
	return text_is_among(end, ends, ARRAY_SIZE(ends));
}

/* -- which files -- */

static bool is_own_code(const struct recording *r, size_t frame)
{
	const struct frame_text text = recording_frame_text(r, frame);

	/* "<frozen os>" and "<internal:kernel>" of interpreters are no files */
	return text.file && *text.file != '<' &&
	       recording_get(r, RECORDING_FRAMES, frame, FRAME_LINE) &&
	       standard_library(&text) == STANDARD_NONE;
}

static uint32_t file_of(struct embedded *e, const char *name)
{
	uint64_t hash = hash_bytes(name, strlen(name));
	const uint32_t *known =
		hash_find(&e->by_name, hash, i, strcmp(e->file.data[*i].name, name) == 0);

	if (known)
		return *known;
	*vec_add(&e->file) = (struct embedded_file){.name = name};
	return *hash_add(&e->by_name, hash) = (uint32_t)e->file.count - 1;
}

/* @file: by frame, + 1; 0 = none. */
static void add_leaf(struct embedded *e, const struct recording *r, size_t leaf,
		     const uint32_t *file)
{
	uint64_t bytes = recording_get(r, RECORDING_LEAVES, leaf, LEAF_MAX_BYTES);

	e->leaves++;
	for (uint64_t n = recording_get(r, RECORDING_LEAVES, leaf, LEAF_NODE); n > 0;
	     n = recording_get(r, RECORDING_NODES, n - 1, NODE_PARENT)) {
		uint32_t at = file[recording_get(r, RECORDING_NODES, n - 1, NODE_FRAME)];
		struct embedded_file *own = at ? &e->file.data[at - 1] : NULL;

		if (own && own->leaf != e->leaves) {
			own->bytes += bytes;
			own->leaf = e->leaves;
		}
	}
}

static void add_recording(struct embedded *e, const struct recording *r)
{
	size_t frames = recording_rows(r, RECORDING_FRAMES);
	_cleanup_free_ uint32_t *file = xcalloc(frames + 1, sizeof(*file));
	const char *text = recording_meta(r, "start");
	long long start = text ? strtoll(text, NULL, 10) : 0;

	e->start = e->start && start ? MIN(e->start, start) : MAX(e->start, start);
	for (size_t i = 0; i < frames; i++)
		if (is_own_code(r, i))
			file[i] = file_of(e, recording_frame_text(r, i).file) + 1;
	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++)
		add_leaf(e, r, i, file);
}

static int compare_files(const void *a, const void *b)
{
	const struct embedded_file *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* Those that a call path goes through, in their order. */
static void sort_files(struct embedded *e)
{
	size_t count = 0;

	for (size_t i = 0; i < e->file.count; i++)
		if (e->file.data[i].leaf)
			e->file.data[count++] = e->file.data[i];
	e->file.count = count;
	vec_sort(&e->file, compare_files);
}

/* -- their text -- */

static void read_file(struct embedded_file *file, const struct option_strings *dirs, size_t room)
{
	struct source_text *s = &file->source;

	if (!is_source_name(file->name)) {
		file->problem = "its name is not that of a source file";
		return;
	}
	source_file_find(s, file->name, dirs, FILE_MAX_BYTES);
	if (s->error)
		file->problem = s->error == EFBIG ? "it is larger than 1 MiB" :
						    source_file_problem(s);
	else if (s->size > room)
		file->problem = "the page has 4 MiB of sources already";
}

/* A line with blanks for tabs. The caller frees it. */
static char *expand_tabs(const char *line)
{
	VEC(char) out = {0};

	for (; *line && !(line[0] == '\r' && !line[1]); line++) {
		size_t blanks = *line == '\t' ? TAB - out.count % TAB : 0;

		for (size_t i = 0; i < blanks; i++)
			*vec_add(&out) = ' ';
		if (!blanks)
			*vec_add(&out) = *line;
	}
	*vec_add(&out) = '\0';
	return out.data;
}

static void put_lines(struct json_writer *w, const struct embedded_file *file)
{
	json_write_open(json_write_line(w, 0), NULL, '[');
	for (size_t i = 0; !file->problem && i < file->source.line.count; i++) {
		_cleanup_free_ char *line = expand_tabs(file->source.line.data[i]);

		json_write_text(w, NULL, line);
	}
	json_write_close(w, 1);
}

static void put_sources(FILE *out, const struct embedded *e)
{
	struct json_writer w = {.out = out};

	putc(',', out); /* it is a further member of the whole */
	json_write_open(json_write_line(&w, 0), "sources", '{');
	json_write_open(&w, "file", '[');
	for (size_t i = 0; i < e->file.count; i++)
		json_write_text(&w, NULL, e->file.data[i].name);
	json_write_close(&w, 1);
	json_write_open(json_write_line(&w, 0), "problem", '[');
	for (size_t i = 0; i < e->file.count; i++)
		json_write_text(&w, NULL, e->file.data[i].problem);
	json_write_close(&w, 1);
	json_write_open(json_write_line(&w, 0), "changed", '[');
	for (size_t i = 0; i < e->file.count; i++)
		json_write_bool(&w, NULL, !e->file.data[i].problem && e->start &&
			(long long)e->file.data[i].source.changed > e->start);
	json_write_close(&w, 1);
	json_write_open(json_write_line(&w, 0), "lines", '[');
	for (size_t i = 0; i < e->file.count; i++)
		put_lines(&w, &e->file.data[i]);
	json_write_close(&w, 2);
}

static void warn_of_missing(const struct embedded *e)
{
	const struct embedded_file *first = NULL;
	size_t missing = 0;

	for (size_t i = 0; i < e->file.count; i++) {
		missing += e->file.data[i].problem != NULL;
		first = first || !e->file.data[i].problem ? first : &e->file.data[i];
	}
	if (!e->file.count) {
		log_warn("--embed-sources: no function of the program's own has a known line");
	} else if (first) {
		_cleanup_free_ char *clean = text_clean(first->name, strlen(first->name));

		log_warn("%zu of %zu source files are not in the page, %s the first: %s "
			 "(--source=DIR says where sources are)",
			 missing, e->file.count, clean, first->problem);
	}
}

char *embedded_sources_json(const struct recording *const *r, size_t count,
			    const struct option_strings *dirs)
{
	struct embedded e = {0};
	size_t size, used = 0;
	char *json;
	FILE *out = open_memstream(&json, &size);

	CHECK(out);
	for (size_t i = 0; i < count; i++)
		add_recording(&e, r[i]);
	sort_files(&e);
	for (size_t i = 0; i < e.file.count; i++) {
		struct embedded_file *file = &e.file.data[i];

		if (i < FILES_MAX)
			read_file(file, dirs, ALL_MAX_BYTES - used);
		else
			file->problem = "the page has 500 source files already";
		used += file->problem ? 0 : file->source.size;
	}
	put_sources(out, &e);
	CHECK(!fclose(out));
	warn_of_missing(&e);
	for (size_t i = 0; i < e.file.count; i++)
		source_file_deinit(&e.file.data[i].source);
	vec_deinit(&e.file);
	hash_deinit(&e.by_name);
	return json;
}
