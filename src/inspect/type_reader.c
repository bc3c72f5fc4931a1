/* See type_reader.h. */
#include "inspect/type_reader.h"

#include <string.h>

#include "base/alloc.h"

#define WORD sizeof(uint64_t)

bool python_is_likely(const struct maps *maps)
{
	for (size_t i = 0; i < maps->list.count; i++)
		if (strstr(maps->list.data[i].path, "python"))
			return true;
	return false;
}

void type_reader_init(struct type_reader *r, struct inspect_memory *m)
{
	*r = (struct type_reader){.memory = m, .has_python = python_is_likely(&m->pages->maps)};
}

void type_reader_add_object(struct type_reader *r, taddr_t start, taddr_t end)
{
	*vec_add(&r->objects) = (struct heap_part){start, end};
}

void type_reader_deinit(struct type_reader *r)
{
	vec_deinit(&r->objects);
}

bool type_reader_is_in_object(const struct type_reader *r, taddr_t addr)
{
	size_t i = vec_search(&r->objects, e, e->end <= addr);

	return i < r->objects.count && r->objects.data[i].start <= addr;
}

static bool is_code(const struct type_reader *r, taddr_t addr)
{
	const struct map *m = maps_find(&r->memory->pages->maps, addr);

	return m && m->is_exec && type_reader_is_in_object(r, addr);
}

/* -- names -- */

/* The text at @addr, ended by a zero, malloc'ed; NULL if @is_good is false of one of its bytes. */
static char *read_name(struct type_reader *r, taddr_t addr, bool (*is_good)(uint8_t c, bool first))
{
	char text[TYPE_NAME_MAX];
	size_t n = 0;

	for (; n < sizeof(text); n++) {
		if (!memory_read(r->memory, addr + n, &text[n], 1))
			return NULL;
		if (!text[n])
			break;
		if (!is_good((uint8_t)text[n], n == 0))
			return NULL;
	}
	return n > 0 && n < sizeof(text) ? xstrdup(text) : NULL;
}

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Of a class: its name's length comes first, or what it is nested in; '*': known in one file. */
static bool is_mangled(uint8_t c, bool first)
{
	if (first)
		return is_digit(c) || c == 'N' || c == 'S' || c == 'Z' || c == '*';
	return is_digit(c) || is_letter(c) || c == '.' || c == '$';
}

/* Letters of other alphabets are bytes from 128 on. */
static bool is_python_name(uint8_t c, bool first)
{
	return is_letter(c) || c >= 128 || (!first && (is_digit(c) || c == '.' || c == '-' ||
							c == '<' || c == '>'));
}

/* -- C++ -- */

char *type_reader_cxx(struct type_reader *r, taddr_t table)
{
	uint64_t before[2], info[2];

	if (table % WORD || !memory_read(r->memory, table - sizeof(before), before, sizeof(before)))
		return NULL;
	if (before[0] != 0 || before[1] % WORD || !type_reader_is_in_object(r, before[1]) ||
	    !memory_read(r->memory, before[1], info, sizeof(info)))
		return NULL;
	if (info[0] % WORD || !type_reader_is_in_object(r, info[0]) ||
	    !type_reader_is_in_object(r, info[1]))
		return NULL;
	return read_name(r, info[1], is_mangled);
}

bool type_reader_is_table(struct type_reader *r, taddr_t table)
{
	uint64_t first;

	return table % WORD == 0 && !is_code(r, table) &&
	       memory_read_word(r->memory, table, &first) && is_code(r, first);
}

/* -- Python -- */

#define IS_READY (UINT64_C(1) << 12)
#define HAS_COLLECTOR (UINT64_C(1) << 14)
#define HAS_DICTIONARY (UINT64_C(3) << 3)
#define IS_STRING (UINT64_C(1) << 28)
#define STRING_MIN 40u          /* its type's size is that of the largest form */
#define IS_TYPE_OF_TYPES (UINT64_C(1) << 31)
#define OBJECT_MAX (UINT64_C(1) << 24)
#define BEFORE 16u

enum { AT_TYPE = 1, AT_NAME = 3, AT_SIZE = 4, AT_ITEM = 5, AT_FLAGS = 21, TYPE_WORDS = 22 };

static bool read_type(struct type_reader *r, taddr_t type, uint64_t word[static TYPE_WORDS])
{
	return type % WORD == 0 &&
	       memory_read(r->memory, type, word, TYPE_WORDS * sizeof(*word)) && word[0] != 0 &&
	       word[AT_SIZE] >= 2 * WORD && word[AT_SIZE] <= OBJECT_MAX &&
	       word[AT_ITEM] <= OBJECT_MAX && word[AT_FLAGS] & IS_READY;
}

/* Whether @type is what types are objects of: the one that is its own type, or made from it. */
static bool is_type_of_types(struct type_reader *r, taddr_t type)
{
	uint64_t word[TYPE_WORDS], own[TYPE_WORDS];

	if (type && type == r->python_type)
		return true;
	if (!read_type(r, type, word) || !(word[AT_FLAGS] & IS_TYPE_OF_TYPES))
		return false;
	if (word[AT_TYPE] != type)
		return read_type(r, word[AT_TYPE], own) && own[AT_TYPE] == word[AT_TYPE] &&
		       is_type_of_types(r, word[AT_TYPE]);
	char *name = read_name(r, word[AT_NAME], is_python_name);
	bool is_it = name && strcmp(name, "type") == 0;

	if (is_it)
		r->python_type = type;
	free(name);
	return is_it;
}

bool type_reader_python(struct type_reader *r, taddr_t type, struct python_type *out)
{
	uint64_t word[TYPE_WORDS];

	if (!r->has_python || !read_type(r, type, word) || !is_type_of_types(r, word[AT_TYPE]))
		return false;
	char *name = read_name(r, word[AT_NAME], is_python_name);

	if (!name)
		return false;
	*out = (struct python_type){
		.name = name, .size = word[AT_FLAGS] & IS_STRING ? STRING_MIN : word[AT_SIZE]};
	if (word[AT_FLAGS] & HAS_COLLECTOR)
		out->header += BEFORE + (word[AT_FLAGS] & HAS_DICTIONARY ? BEFORE : 0);
	return true;
}
