/*
 * Names and lines of functions, from V8's objects. They are the program's memory, and other threads
 * of a collector may be moving them: each number is bounded, and what is no such object is unknown.
 *
 *	SharedFunctionInfo   name, or ScopeInfo; Script
 *	ScopeInfo            flags, parameters, locals; their names; infos; function's name and a
 *	                     number; maybe an inferred name; start and end in the source, which from
 *	                     V8 13 on are before the names of locals
 *	String               characters, or parts of other strings
 */
#include "languages/v8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define TAG 1u
#define TAG_MASK 3u
#define WORD ((int32_t)sizeof(uint64_t))

#define NAME_MAX_BYTES 1024u
#define SOURCE_MAX (UINT32_C(32) << 20) /* characters; a line in a longer one is unknown */
#define DEPTH_MAX 32u                   /* of strings that consist of others */
#define PARTS_MAX 65536u
#define LOCALS_MAX 65536u
#define LOCALS_INLINED 75u              /* more have their names in a table of its own */

/* Of the type of a string. */
#define STRING_LIMIT 128u
#define STRING_FORM 7u
#define STRING_ONE_BYTE 8u
#define EXTERNAL_UNCACHED 16u           /* where its characters are is not in the object */
enum string_form {
	FORM_SEQ = 0,
	FORM_CONS = 1,
	FORM_EXTERNAL = 2,
	FORM_SLICED = 3,
	FORM_THIN = 5,
};

struct object_reader {
	const struct v8_layout *layout;
	const struct language_memory *memory;
};

static bool is_object(uint64_t word)
{
	return (word & TAG_MASK) == TAG;
}

static bool is_number(uint64_t word)
{
	return !(word & 1);
}

/* The value of a small integer: its upper half. */
static uint32_t number_of(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

static taddr_t address_of(uint64_t word, int32_t offset)
{
	return word - TAG + (uint64_t)(int64_t)offset;
}

/* The word at @offset of the object @word. */
static bool read_word(const struct object_reader *r, uint64_t word, int32_t offset, uint64_t *out)
{
	return is_object(word) && language_read_word(r->memory, address_of(word, offset), out);
}

/*
 * The type of the object *word. If it was moved, the word of its map leads to its new place, which
 * *word becomes.
 */
static bool read_type(const struct object_reader *r, uint64_t *word, uint16_t *out)
{
	uint64_t map;

	if (!read_word(r, *word, r->layout->map, &map))
		return false;
	if (!(map & TAG_MASK) && map) {
		*word = map + TAG;
		if (!read_word(r, *word, r->layout->map, &map))
			return false;
	}
	return is_object(map) &&
	       r->memory->read(r->memory->ctx, address_of(map, r->layout->map_type), out,
			       sizeof(*out));
}

static bool has_type(const struct object_reader *r, uint64_t *word, int32_t type)
{
	uint16_t found;

	return read_type(r, word, &found) && found == type;
}

/* -- strings -- */

/* A part of a string's characters. False: enough. */
typedef bool chars_fn(void *ctx, const uint8_t *data, uint32_t count, bool is_one_byte);

struct string_walk {
	const struct object_reader *reader;
	chars_fn *fn;
	void *ctx;
	uint32_t parts; /* that were met */
};

/* A string, or characters of it. */
struct string_part {
	uint64_t word;
	uint32_t from, count;
};

static bool read_string(const struct object_reader *r, uint64_t *word, uint16_t *type,
			uint32_t *length)
{
	return read_type(r, word, type) && *type < STRING_LIMIT &&
	       r->memory->read(r->memory->ctx, address_of(*word, r->layout->string_length), length,
			       sizeof(*length));
}

#define CHUNK 4096u /* bytes */

static bool give_chars(const struct string_walk *w, taddr_t at, uint32_t count, bool is_one_byte)
{
	const struct language_memory *m = w->reader->memory;
	uint32_t width = is_one_byte ? 1 : 2;
	uint8_t data[CHUNK];

	while (count > 0) {
		uint32_t n = MIN(count, CHUNK / width);

		if (!m->read(m->ctx, at, data, (size_t)n * width) ||
		    !w->fn(w->ctx, data, n, is_one_byte))
			return false;
		at += (taddr_t)n * width;
		count -= n;
	}
	return true;
}

/* The characters of a string that has its own. */
static bool give_own(const struct string_walk *w, const struct string_part *part, uint16_t type)
{
	const struct v8_layout *l = w->reader->layout;
	bool is_one_byte = type & STRING_ONE_BYTE;
	uint64_t at = address_of(part->word, is_one_byte ? l->one_byte : l->two_byte);

	if ((type & STRING_FORM) == FORM_EXTERNAL &&
	    (type & EXTERNAL_UNCACHED ||
	     !read_word(w->reader, part->word, l->external_resource + WORD, &at)))
		return false;
	return give_chars(w, at + (uint64_t)part->from * (is_one_byte ? 1 : 2), part->count,
			  is_one_byte);
}

/* What @part, of the given type, consists of, in @out. Their number, -1 if it cannot be read. */
static int read_parts(const struct object_reader *r, const struct string_part *part, uint16_t type,
		      struct string_part *out)
{
	const struct v8_layout *l = r->layout;
	uint64_t first, second, offset;
	uint32_t length, from = part->from, count = part->count;
	uint16_t other;

	switch (type & STRING_FORM) {
	case FORM_THIN:
		if (!read_word(r, part->word, l->thin_actual, &first))
			return -1;
		out[0] = (struct string_part){first, from, count};
		return 1;
	case FORM_SLICED:
		if (!read_word(r, part->word, l->sliced_parent, &first) ||
		    !read_word(r, part->word, l->sliced_offset, &offset) || !is_number(offset) ||
		    number_of(offset) > UINT32_MAX - from)
			return -1;
		out[0] = (struct string_part){first, from + number_of(offset), count};
		return 1;
	case FORM_CONS:
		if (!read_word(r, part->word, l->cons_first, &first) ||
		    !read_word(r, part->word, l->cons_second, &second) ||
		    !read_string(r, &first, &other, &length))
			return -1;
		out[0] = (struct string_part){first, MIN(from, length), 0};
		out[0].count = MIN(count, length - out[0].from);
		out[1] = (struct string_part){second, from - out[0].from, count - out[0].count};
		return 2;
	default:
		return -1;
	}
}

/* Gives all characters of @word, a string of at most @max. False: something cannot be read. */
static bool walk_string(struct string_walk *w, uint64_t word, uint32_t max)
{
	struct string_part stack[DEPTH_MAX + 2] = {{.word = word}};
	uint32_t depth = 1;
	uint16_t type;

	if (!read_string(w->reader, &stack[0].word, &type, &stack[0].count) ||
	    stack[0].count > max)
		return false;
	while (depth > 0) {
		struct string_part part = stack[--depth], inner[2];
		uint32_t length;

		if (!part.count)
			continue;
		if (w->parts++ >= PARTS_MAX || depth > DEPTH_MAX ||
		    !read_string(w->reader, &part.word, &type, &length) || part.from > length ||
		    part.count > length - part.from)
			return false;
		if ((type & STRING_FORM) == FORM_SEQ || (type & STRING_FORM) == FORM_EXTERNAL) {
			if (!give_own(w, &part, type))
				return false;
			continue;
		}
		int n = read_parts(w->reader, &part, type, inner);

		if (n < 0)
			return false;
		while (n-- > 0)
			stack[depth++] = inner[n];
	}
	return true;
}

struct text_buffer {
	char data[NAME_MAX_BYTES];
	size_t size;
	uint32_t high; /* the first half of a character; 0 = none */
};

static void add_character(struct text_buffer *b, uint32_t c)
{
	char *to = b->data + b->size;

	if (b->size + 4 > sizeof(b->data))
		return;
	if (c < 0x80) {
		*to = (char)c;
		b->size += 1;
	} else if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		b->size += 2;
	} else if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		b->size += 3;
	} else {
		to[0] = (char)(0xf0 | c >> 18);
		to[1] = (char)(0x80 | (c >> 12 & 63));
		to[2] = (char)(0x80 | (c >> 6 & 63));
		to[3] = (char)(0x80 | (c & 63));
		b->size += 4;
	}
}

static bool add_text(void *ctx, const uint8_t *data, uint32_t count, bool is_one_byte)
{
	struct text_buffer *b = ctx;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t c = is_one_byte ? data[i] : data[2 * i] | (uint32_t)data[2 * i + 1] << 8;

		if (c >= 0xd800 && c < 0xdc00) {
			b->high = c;
			continue;
		}
		if (c >= 0xdc00 && c < 0xe000 && b->high)
			c = 0x10000 + ((b->high - 0xd800) << 10) + (c - 0xdc00);
		b->high = 0;
		add_character(b, c);
	}
	return true;
}

/* The text of the string @word, cut off if it is long; NULL if it is none, or empty. */
static char *read_text(const struct object_reader *r, uint64_t word)
{
	struct text_buffer b = {.size = 0};
	struct string_walk w = {.reader = r, .fn = add_text, .ctx = &b};

	if (!walk_string(&w, word, NAME_MAX_BYTES) || !b.size)
		return NULL;
	return text_clean(b.data, b.size);
}

/* -- lines -- */

struct line_scan {
	struct v8_lines *lines;
	uint32_t position;
};

static bool add_lines(void *ctx, const uint8_t *data, uint32_t count, bool is_one_byte)
{
	struct line_scan *s = ctx;
	uint32_t width = is_one_byte ? 1 : 2;

	for (uint32_t i = 0; i < count; i++)
		if (data[i * width] == '\n' && (is_one_byte || !data[2 * i + 1]))
			*vec_add(&s->lines->end) = s->position + i;
	s->position += count;
	return true;
}

/* The lines of @script; NULL if its source cannot be read. */
static const struct v8_lines *find_lines(struct v8 *v, const struct object_reader *r,
					 uint64_t script)
{
	uint64_t source;
	uint32_t length;
	uint16_t type;

	if (!read_word(r, script, r->layout->script_source, &source) ||
	    !read_string(r, &source, &type, &length))
		return NULL;
	for (size_t i = 0; i < V8_LINES; i++)
		if (v->lines[i].script == script && v->lines[i].source == source &&
		    v->lines[i].length == length)
			return &v->lines[i];
	struct v8_lines *l = &v->lines[v->next_lines++ % V8_LINES];
	struct line_scan s = {.lines = l};
	struct string_walk w = {.reader = r, .fn = add_lines, .ctx = &s};

	l->end.count = 0;
	l->script = 0;
	if (!walk_string(&w, source, SOURCE_MAX))
		return NULL;
	l->script = script;
	l->source = source;
	l->length = length;
	return l;
}

static uint32_t find_line(struct v8 *v, const struct object_reader *r, uint64_t script,
			  uint32_t position)
{
	const struct v8_lines *l = find_lines(v, r, script);

	if (!l || position > l->length)
		return 0;
	return (uint32_t)vec_search(&l->end, e, *e < position) + 1;
}

/* -- functions -- */

/* What a ScopeInfo says. */
struct scope {
	char *name;     /* NULL = none */
	uint32_t start; /* in the source; UINT32_MAX = unknown */
};

#define TAIL 6u /* words that are looked at behind the locals */

static bool is_range(const uint64_t *word)
{
	return is_number(word[0]) && is_number(word[1]) &&
	       number_of(word[0]) <= number_of(word[1]) && number_of(word[1]) < SOURCE_MAX;
}

static void read_scope(const struct object_reader *r, uint64_t scope, struct scope *out)
{
	const struct v8_layout *l = r->layout;
	uint64_t locals, word[TAIL + 2] = {0};
	size_t at = 0;

	*out = (struct scope){.start = UINT32_MAX};
	if (!read_word(r, scope, WORD * (1 + l->scope_locals), &locals) || !is_number(locals) ||
	    number_of(locals) > LOCALS_MAX)
		return;
	uint32_t n = number_of(locals), names = n < LOCALS_INLINED ? n : 1;
	taddr_t tail = address_of(scope, WORD * (1 + l->scope_names)) +
		       (uint64_t)WORD * ((uint64_t)names + n);

	if (!r->memory->read(r->memory->ctx, tail, word, TAIL * sizeof(*word)))
		return;
	/* the name, and the number of its variable: those of functions always have them */
	if ((is_object(word[0]) || !word[0]) && is_number(word[1]) && !is_range(&word[0])) {
		out->name = read_text(r, word[0]);
		at = 2;
	} else if (!word[0] && is_number(word[1]) && (is_object(word[2]) || is_range(&word[2]))) {
		at = 2;
	}
	if (at && is_object(word[at])) {
		char *inferred = read_text(r, word[at]);

		if (out->name)
			free(inferred);
		else
			out->name = inferred;
		at++;
	}
	/* behind the number of locals, or here */
	if (l->scope_names > l->scope_locals + 1 &&
	    r->memory->read(r->memory->ctx,
			    address_of(scope, WORD * (2 + l->scope_locals)), word,
			    2 * sizeof(*word)))
		at = 0;
	if (is_range(&word[at]))
		out->start = number_of(word[at]);
}

static char *read_path(const struct object_reader *r, uint64_t script)
{
	static const char scheme[] = "file://";
	uint64_t name;

	if (!read_word(r, script, r->layout->script_name, &name))
		return NULL;
	char *path = read_text(r, name);

	if (path && strncmp(path, scheme, sizeof(scheme) - 1) == 0)
		memmove(path, path + sizeof(scheme) - 1, strlen(path) - sizeof(scheme) + 2);
	return path;
}

int v8_function_read(struct v8 *v, const struct language_memory *m, uint64_t at,
		     struct v8_function *out)
{
	const struct object_reader r = {.layout = &v->layout, .memory = m};
	uint64_t function = at + TAG, name, script;
	struct scope scope = {.start = UINT32_MAX};

	if (at % sizeof(at) || !has_type(&r, &function, v->layout.type_function) ||
	    !read_word(&r, function, v->layout.function_name, &name) ||
	    !read_word(&r, function, v->layout.function_script, &script))
		return -EINVAL;
	*out = (struct v8_function){0};
	if (has_type(&r, &name, v->layout.type_scope))
		read_scope(&r, name, &scope);
	else
		scope.name = read_text(&r, name);
	out->name = scope.name ? scope.name : xstrdup("(anonymous)");
	if (!has_type(&r, &script, v->layout.type_script))
		return 0;
	out->path = read_path(&r, script);
	if (scope.start != UINT32_MAX)
		out->line = find_line(v, &r, script, scope.start);
	return 0;
}

void v8_function_deinit(struct v8_function *f)
{
	free(f->name);
	free(f->path);
}
