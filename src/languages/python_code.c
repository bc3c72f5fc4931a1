/*
 * Code objects of CPython: names, files, and the tables that lead from instructions to lines. What
 * is read is the program's, and may have been freed: everything is bounded, and checked as far as
 * it can be.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "languages/python.h"

#define CODE_BYTES 256u         /* of a code object: what is read of all versions is in these */
#define TEXT_MAX 4096u          /* characters */
#define TABLE_MAX (4u << 20)
#define CODE_UNITS_MAX (1u << 26)
#define LINE_MAX_NUMBER INT32_MAX

/* -- texts -- */

static size_t put_character(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | (c >> 18 & 7));
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* @data: @count characters of @kind bytes. Returns a visible text in UTF-8. */
static char *text_from(const uint8_t *data, size_t count, uint32_t kind)
{
	_cleanup_free_ char *text = xmalloc(4 * count + 1);
	size_t size = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t c = 0;

		memcpy(&c, data + i * kind, kind); /* little-endian, as the CPUs are */
		size += put_character(text + size, c);
	}
	return text_clean(text, size);
}

char *python_text_read(const struct python_layout *l, const struct language_memory *m, taddr_t addr)
{
	uint64_t length;
	uint32_t state;
	uint8_t data[4 * TEXT_MAX];

	if (addr % sizeof(addr) || !language_read_word(m, addr + l->text_length, &length) ||
	    !m->read(m->ctx, addr + l->text_state, &state, sizeof(state)))
		return NULL;
	uint32_t kind = state >> l->text_kind_bit & 7;
	bool is_compact = state >> (l->text_kind_bit + 3) & 1;
	bool is_ascii = state >> (l->text_kind_bit + 4) & 1;

	if (!is_compact || (kind != 1 && kind != 2 && kind != 4) || (is_ascii && kind != 1) ||
	    length >> 32)
		return NULL;
	length = MIN(length, TEXT_MAX);
	if (!m->read(m->ctx, addr + (is_ascii ? l->text_ascii : l->text_compact), data,
		     length * kind))
		return NULL;
	return text_from(data, length, kind);
}

/* -- code objects -- */

/* What is in the object itself. */
struct code_fields {
	taddr_t file, name, table;
	uint32_t line;
	uint64_t units;
	uint64_t stamp;
};

static uint64_t field(const uint8_t *object, uint32_t offset)
{
	uint64_t word = 0;

	if (offset <= CODE_BYTES - sizeof(word))
		memcpy(&word, object + offset, sizeof(word));
	return word;
}

static int read_fields(const struct python *p, const struct language_memory *m, taddr_t code,
		       struct code_fields *out)
{
	const struct python_layout *l = &p->layout;
	uint8_t object[CODE_BYTES] = {0};
	uint32_t size = MAX(l->code_start, l->code_table + 8);

	if (!code || code % sizeof(code) || size > CODE_BYTES ||
	    !m->read(m->ctx, code, object, size) || field(object, l->type) != p->code_type)
		return -EINVAL;
	*out = (struct code_fields){
		.file = field(object, l->code_file),
		.name = field(object, l->code_qualname ? l->code_qualname : l->code_name),
		.table = field(object, l->code_table),
		.line = (uint32_t)field(object, l->code_line),
		.units = l->positions == PYTHON_POINTER ? field(object, l->size) : 0,
	};
	out->stamp = virtual_stamp(&p->frames, m, code);
	return out->stamp ? 0 : -EINVAL;
}

/* The bytes object at @addr: the table of lines. Without it no line is known. */
static void read_table(const struct python_layout *l, const struct language_memory *m, taddr_t addr,
		       struct virtual_function *out)
{
	uint64_t size;

	if (addr % sizeof(addr) || !language_read_word(m, addr + l->size, &size) ||
	    size > TABLE_MAX || size == 0)
		return;
	_cleanup_free_ uint8_t *table = xmalloc(size);

	if (!m->read(m->ctx, addr + l->bytes_data, table, size))
		return;
	out->table = table;
	out->table_size = size;
	table = NULL;
}

int python_code_read(const struct python *p, const struct language_memory *m, taddr_t code,
		     struct virtual_function *out)
{
	struct code_fields f;

	if (read_fields(p, m, code, &f) != 0 || f.line > LINE_MAX_NUMBER ||
	    f.units > CODE_UNITS_MAX)
		return -EINVAL;
	_cleanup_free_ char *name = python_text_read(&p->layout, m, f.name);
	_cleanup_free_ char *file = python_text_read(&p->layout, m, f.file);

	if (!name || !file)
		return -EINVAL;
	/* what calls __init__ for the loop: in 3.12 a shim; later its file has that name */
	bool is_internal = strcmp(file, "<shim>") == 0 ||
			   (f.line == 0 && strcmp(file, "__init__") == 0);

	*out = (struct virtual_function){.name = name, .file = file, .first_line = f.line,
				    .stamp = f.stamp, .object = code,
				    .start = code + p->layout.code_start, .size = 2 * f.units,
				    .is_internal = is_internal};
	name = file = NULL;
	read_table(&p->layout, m, f.table, out);
	return 0;
}

/* -- positions -- */

#define COPIES_MAX 4096u /* one for each thread that ever ran */

/* Where the copy of the instructions that contains @position begins; 0 = in none. */
static taddr_t find_copy(const struct python *p, const struct language_memory *m,
			 const struct virtual_function *c, taddr_t position)
{
	uint64_t array, count, start;

	if (!m || !p->layout.code_copies ||
	    !language_read_word(m, c->object + p->layout.code_copies, &array) || !array ||
	    !language_read_word(m, array, &count))
		return 0;
	for (uint64_t i = 0; i < MIN(count, COPIES_MAX); i++)
		if (language_read_word(m, array + (i + 1) * sizeof(start), &start) && start &&
		    position - start < c->size)
			return start;
	return 0;
}

int64_t python_code_offset(const struct python *p, const struct language_memory *m,
			   const struct virtual_function *c, uint64_t position)
{
	int64_t index = (int64_t)position;

	if (p->layout.positions == PYTHON_BYTES)
		return index < 0 ? -1 : index;
	if (p->layout.positions == PYTHON_UNITS)
		return index < 0 || index > CODE_UNITS_MAX ? -1 : 2 * index;
	taddr_t copy = p->is_free_threaded && position - c->start >= c->size ?
			       find_copy(p, m, c, position) : 0;

	return (int64_t)(position - (copy ? copy : c->start));
}

/* -- lines -- */

/* Steps of (bytes of code, lines). */
static uint32_t lnotab_line(const struct virtual_function *c, int64_t offset)
{
	int64_t at = 0, line = c->first_line;

	for (size_t i = 0; i + 1 < c->table_size; i += 2) {
		at += c->table[i];
		if (at > offset)
			break;
		line += (int8_t)c->table[i + 1];
	}
	return line > 0 && line <= LINE_MAX_NUMBER ? (uint32_t)line : 0;
}

/* Ranges: (bytes of code, lines from the last one that had one; -128: it has none). */
static uint32_t linetable_line(const struct virtual_function *c, int64_t offset)
{
	int64_t end = 0, line = c->first_line;

	for (size_t i = 0; i + 1 < c->table_size; i += 2) {
		int8_t step = (int8_t)c->table[i + 1];

		end += c->table[i];
		line += step == INT8_MIN ? 0 : step;
		if (offset < end)
			return step == INT8_MIN || line <= 0 ? 0 : (uint32_t)line;
	}
	return 0;
}

/* A number of 6 bits in each byte, the lowest first; bit 6 says that another follows. */
static uint32_t take_varint(const struct virtual_function *c, size_t *i)
{
	uint32_t value = 0, shift = 0;

	while (*i < c->table_size) {
		uint8_t byte = c->table[(*i)++];

		if (shift < 32)
			value |= (uint32_t)(byte & 63) << shift;
		shift += 6;
		if (!(byte & 64))
			break;
	}
	return value;
}

static int64_t take_signed(const struct virtual_function *c, size_t *i)
{
	uint32_t value = take_varint(c, i);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

enum location { LOCATION_ONE_LINE = 10, LOCATION_NO_COLUMNS = 13, LOCATION_LONG, LOCATION_NONE };

/* Entries: a byte: bit 7, 4 bits of kind, 3 of length - 1 in instructions; then what it needs. */
static uint32_t location_line(const struct virtual_function *c, int64_t offset)
{
	int64_t end = 0, line = c->first_line;

	for (size_t i = 0; i < c->table_size;) {
		uint8_t first = c->table[i++], kind = first >> 3 & 15;

		end += 2 * ((first & 7) + 1);
		if (kind == LOCATION_LONG || kind == LOCATION_NO_COLUMNS)
			line += take_signed(c, &i);
		else if (kind >= LOCATION_ONE_LINE && kind < LOCATION_NO_COLUMNS)
			line += kind - LOCATION_ONE_LINE;
		if (offset < end)
			return kind == LOCATION_NONE || line <= 0 || line > LINE_MAX_NUMBER ?
				       0 : (uint32_t)line;
		/* what remains of the entry has bit 7 clear */
		while (i < c->table_size && !(c->table[i] & 0x80))
			i++;
	}
	return 0;
}

uint32_t python_code_line(const struct python_layout *l, const struct virtual_function *c,
			  int64_t offset)
{
	if (offset < 0)
		return c->first_line;
	switch (l->lines) {
	case PYTHON_LNOTAB:
		return lnotab_line(c, offset);
	case PYTHON_LINETABLE:
		return linetable_line(c, offset);
	case PYTHON_LOCATIONS:
		return location_line(c, offset);
	}
	return 0;
}
