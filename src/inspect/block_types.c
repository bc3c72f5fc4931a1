/*
 * Classifies blocks by their first words: types of C++ and Python objects are read from the
 * process.
 */
#include "inspect/block_types.h"

#include <endian.h>
#include <string.h>

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/text.h"
#include "base/utf8.h"

#define WORD sizeof(uint64_t)

bool python_is_likely(const struct maps *maps)
{
	for (size_t i = 0; i < maps->list.count; i++)
		if (strstr(maps->list.data[i].path, "python"))
			return true;
	return false;
}

static bool is_code(const struct type_reader *r, taddr_t addr)
{
	const struct map *m = maps_find(&r->memory->pages->maps, addr);

	return m && m->is_exec && vec_find(&r->objects, addr);
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

static bool is_letter(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Of a class: its name's length comes first, or what it is nested in; '*': known in one file. */
static bool is_mangled(uint8_t c, bool first)
{
	if (first)
		return text_is_digit(c) || c == 'N' || c == 'S' || c == 'Z' || c == '*';
	return text_is_digit(c) || is_letter(c) || c == '.' || c == '$';
}

/* Letters of other alphabets are bytes from 128 on. */
static bool is_python_name(uint8_t c, bool first)
{
	return is_letter(c) || c >= 128 || (!first && (text_is_digit(c) || c == '.' || c == '-' ||
							c == '<' || c == '>'));
}

/* -- C++ -- */

/*
 * The mangled name of the C++ type that has its table at @table, malloc'ed. NULL: it is none, or
 * does not say.
 */
static char *type_reader_cxx(struct type_reader *r, taddr_t table)
{
	uint64_t before[2], info[2];

	if (table % WORD || !memory_read(r->memory, table - sizeof(before), before, sizeof(before)))
		return NULL;
	if (before[0] != 0 || before[1] % WORD || !vec_find(&r->objects, before[1]) ||
	    !memory_read(r->memory, before[1], info, sizeof(info)))
		return NULL;
	if (info[0] % WORD || !vec_find(&r->objects, info[0]) ||
	    !vec_find(&r->objects, info[1]))
		return NULL;
	return read_name(r, info[1], is_mangled);
}

/* Whether @table, in an object, begins with a pointer to code of an object. */
static bool type_reader_is_table(struct type_reader *r, taddr_t table)
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

enum { AT_TYPE = 1, TYPE_WORDS = CLASS_FLAGS + 1 };

static bool read_type(struct type_reader *r, taddr_t type, uint64_t word[static TYPE_WORDS])
{
	return type % WORD == 0 &&
	       memory_read(r->memory, type, word, TYPE_WORDS * sizeof(*word)) && word[0] != 0 &&
	       word[CLASS_SIZE] >= 2 * WORD && word[CLASS_SIZE] <= OBJECT_MAX &&
	       word[CLASS_ITEM] <= OBJECT_MAX && word[CLASS_FLAGS] & IS_READY;
}

/* Whether @type is what types are objects of: the one that is its own type, or made from it. */
static bool is_type_of_types(struct type_reader *r, taddr_t type)
{
	uint64_t word[TYPE_WORDS], own[TYPE_WORDS];

	if (type && type == r->python_type)
		return true;
	if (!read_type(r, type, word) || !(word[CLASS_FLAGS] & IS_TYPE_OF_TYPES))
		return false;
	if (word[AT_TYPE] != type)
		return read_type(r, word[AT_TYPE], own) && own[AT_TYPE] == word[AT_TYPE] &&
		       is_type_of_types(r, word[AT_TYPE]);
	char *name = read_name(r, word[CLASS_NAME], is_python_name);
	bool is_it = name && strcmp(name, "type") == 0;

	if (is_it)
		r->python_type = type;
	free(name);
	return is_it;
}

/* The Python type at @type. False: it is none. */
static bool type_reader_python(struct type_reader *r, taddr_t type, struct python_type *out)
{
	uint64_t word[TYPE_WORDS];

	if (!r->has_python || !read_type(r, type, word) || !is_type_of_types(r, word[AT_TYPE]))
		return false;
	char *name = read_name(r, word[CLASS_NAME], is_python_name);

	if (!name)
		return false;
	*out = (struct python_type){
		.name = name, .size = word[CLASS_FLAGS] & IS_STRING ? STRING_MIN : word[CLASS_SIZE],
	};
	python_shape_find(r->memory, type, &out->shape);
	if (word[CLASS_FLAGS] & HAS_COLLECTOR)
		out->header += BEFORE + (word[CLASS_FLAGS] & HAS_DICTIONARY ? BEFORE : 0);
	return true;
}

#define KNOWN 8192u
#define AREA_SHIFT 21
#define AREAS (UINT64_C(1) << (ARCH_ADDRESS_BITS - AREA_SHIFT))
#define TEXT_MIN 4u
#define NO_TYPE UINT32_MAX
#define WORD sizeof(uint64_t)
#define REFERENCES_MAX UINT32_MAX

const char *const block_kind_name[KIND_COUNT] = {
	[KIND_ZEROS] = "zeros", [KIND_CXX] = "C++", [KIND_TABLE] = "table",
	[KIND_PYTHON] = "Python", [KIND_TEXT] = "text", [KIND_POINTERS] = "pointers",
	[KIND_SIZE] = "size",
};

/* What @word leads to. */
struct known_word {
	uint64_t word;
	uint32_t type;          /* NO_TYPE = no type */
	uint32_t header;        /* Python: bytes before the object */
	struct python_shape shape; /* Python */
	uint64_t size;          /* Python: of the object */
};

static void note_areas(uint64_t *areas, taddr_t start, taddr_t end)
{
	uint64_t last = MIN((end - 1) >> AREA_SHIFT, AREAS - 1);

	for (uint64_t a = start >> AREA_SHIFT; a <= last; a++)
		areas[a / 64] |= UINT64_C(1) << a % 64;
}

static bool is_in(const uint64_t *areas, uint64_t word)
{
	uint64_t area = word >> AREA_SHIFT;

	return area > 0 && area < AREAS && areas[area / 64] >> area % 64 & 1;
}

static void note_memory(struct block_types *t, const struct maps *maps)
{
	for (size_t i = 0; i < maps->list.count; i++)
		if (maps->list.data[i].is_read)
			note_areas(t->mapped, maps->list.data[i].start, maps->list.data[i].end);
}

void block_types_init(struct block_types *t, struct inspect_memory *m)
{
	*t = (struct block_types){0};
	t->reader = (struct type_reader){.memory = m,
					 .has_python = python_is_likely(&m->pages->maps)};
	t->mapped = xcalloc(AREAS / 64, sizeof(*t->mapped));
	t->objects = xcalloc(AREAS / 64, sizeof(*t->objects));
	note_memory(t, &m->pages->maps);
	t->known = xcalloc(KNOWN, sizeof(*t->known));
}

void block_types_add_object(struct block_types *t, taddr_t start, taddr_t end)
{
	*vec_add(&t->reader.objects) = (struct addr_range){start, end};
	if (start < end)
		note_areas(t->objects, start, end);
}

void block_types_finish(struct block_types *t)
{
	python_notes_deinit(&t->python);
	vec_deinit(&t->reader.objects);
	free(t->known);
	free(t->mapped);
	free(t->objects);
	hash_deinit(&t->by_key);
	t->known = NULL;
	t->mapped = t->objects = NULL;
}

void block_types_deinit(struct block_types *t)
{
	block_types_finish(t);
	vec_release(&t->list, e, free(e->name));
	vec_release(&t->fields, e, free(e->name));
}

/* -- the list -- */

static uint64_t hash_type(enum block_kind kind, uint64_t key, const char *name)
{
	uint64_t hash = hash_u64(key + kind);

	for (const char *c = name ? name : ""; *c; c++)
		hash = hash_u64(hash ^ (uint8_t)*c);
	return hash;
}

static bool is_same(const struct block_type *t, enum block_kind kind, uint64_t key,
		    const char *name)
{
	return t->kind == kind && t->key == key && !t->name == !name &&
	       (!name || strcmp(t->name, name) == 0);
}

/* The index of the type; added if it is new. Takes over @name, which may be NULL. */
static uint32_t get_type(struct block_types *t, enum block_kind kind, uint64_t key, char *name)
{
	uint64_t hash = hash_type(kind, key, name);

	const uint32_t *known =
		hash_find(&t->by_key, hash, i, is_same(&t->list.data[*i], kind, key, name));

	if (known) {
		free(name);
		return *known;
	}
	if (t->list.count >= TYPES_MAX && (name || kind == KIND_TABLE)) {
		free(name);
		return NO_TYPE;
	}
	*vec_add(&t->list) = (struct block_type){
		.kind = kind, .key = key, .name = name, .smallest = UINT64_MAX};
	return *hash_add(&t->by_key, hash) = (uint32_t)t->list.count - 1;
}

uint32_t block_types_python(struct block_types *t, uint64_t key, char *name)
{
	return get_type(t, KIND_PYTHON, key, name);
}

/* -- words that lead to a type -- */

static struct known_word *known_at(struct block_types *t, uint64_t word)
{
	return &t->known[hash_u64(word) % KNOWN];
}

/* Several objects may have a table for the same type. */
static uint32_t get_cxx(struct block_types *t, taddr_t table, char *name)
{
	size_t before = t->list.count;
	uint32_t type = get_type(t, KIND_CXX, 0, name);

	if (type == NO_TYPE)
		return type;
	struct block_type *e = &t->list.data[type];

	e->table = t->list.count > before || e->table == table ? table : 0;
	return type;
}

/* What the first word of a block leads to. */
static uint32_t type_of_table(struct block_types *t, uint64_t word)
{
	/* most words do not lead to an object, and each to another place */
	if (!is_in(t->objects, word))
		return NO_TYPE;
	struct known_word *k = known_at(t, word);

	if (k->word == word)
		return k->type;
	*k = (struct known_word){.word = word, .type = NO_TYPE};
	if (!vec_find(&t->reader.objects, word))
		return NO_TYPE;
	char *name = type_reader_cxx(&t->reader, word);

	if (name)
		k->type = get_cxx(t, word, name);
	else if (type_reader_is_table(&t->reader, word))
		k->type = get_type(t, KIND_TABLE, word, NULL);
	return k->type;
}

/* Several types may have the same name. */
static uint32_t get_python(struct block_types *t, taddr_t class, const struct python_type *found)
{
	size_t before = t->list.count;
	uint32_t type = get_type(t, KIND_PYTHON, 0, found->name);

	if (type == NO_TYPE)
		return type;
	struct block_type *e = &t->list.data[type];
	bool is_new = t->list.count > before;

	e->header = is_new ? found->header : MIN(e->header, found->header);
	e->class = is_new || e->class == class ? class : 0;
	e->role = is_new || e->role == found->shape.role ? found->shape.role : PYTHON_PLAIN;
	return type;
}

/* What the second word of a Python object leads to. */
static const struct known_word *python_type_of(struct block_types *t, uint64_t word)
{
	struct known_word *k = known_at(t, word | 1); /* no type is at an odd address */
	struct python_type found;

	if (k->word == (word | 1))
		return k;
	*k = (struct known_word){.word = word | 1, .type = NO_TYPE};
	if (type_reader_python(&t->reader, word, &found)) {
		k->type = get_python(t, word, &found);
		k->shape = found.shape;
		k->header = found.header;
		k->size = found.size;
	}
	return k;
}

/* -- one block -- */

/* How a block begins: whole words. */
struct start {
	const uint64_t *word;
	size_t words;
	uint64_t usable;
};

static bool is_mapped(const struct block_types *t, uint64_t word)
{
	return is_in(t->mapped, word);
}

static void note_python(struct block_types *t, const struct known_word *k, const struct start *s)
{
	const struct python_block b = {s->word, s->words, k->header};
	uint32_t words = python_shape_words(&k->shape, &b);

	t->words = words ? words + 1 : 0;
	python_notes_add(&t->python, k->shape.role, k->type, &b);
}

static uint32_t find_python(struct block_types *t, const struct start *s)
{
	for (size_t at = 0; at <= 4 && at + 1 < s->words; at += 2) {
		uint64_t references = s->word[at], type = s->word[at + 1];

		if (references > REFERENCES_MAX || (references == 0 && !t->wants_python) ||
		    !is_mapped(t, type))
			continue;
		const struct known_word *k = python_type_of(t, type);

		if (k->type == NO_TYPE || k->header != at * WORD ||
		    k->header + k->size > s->usable)
			continue;
		if (references > 0 && t->wants_python)
			note_python(t, k, s);
		if (references > 0)
			return k->type;
		/* each function keeps a frame for the next time: what it had is left in it */
		if (k->shape.role == PYTHON_FRAME) {
			t->words = 1;
			return block_types_python(t, 0, xstrdup("frame, unused"));
		}
	}
	return NO_TYPE;
}

/* Four words at once: which of them is the first that is not zero can rarely be predicted. */
static bool is_zero(const struct start *s)
{
	const uint64_t *w = s->word, *end = w + s->words;

	if (*w)
		return false;
	for (; end - w >= 4; w += 4)
		if (w[0] | w[1] | w[2] | w[3])
			return false;
	uint64_t rest = 0;

	while (w < end)
		rest |= *w++;
	return rest == 0;
}

static bool are_pointers(const struct block_types *t, const struct start *s)
{
	size_t count = 0;

	for (size_t i = 0; i < s->words; i++) {
		if (s->word[i] && !is_mapped(t, s->word[i]))
			return false;
		count += s->word[i] != 0;
	}
	return count >= 2;
}

#define EACH_BYTE UINT64_C(0x0101010101010101)
#define HIGH_BITS (EACH_BYTE * 0x80)

/*
 * The highest bits of bytes of @word that are not printable or not of ASCII; those after the first
 * such byte may be wrong.
 */
static uint64_t not_plain(uint64_t word)
{
	/* below 32 borrows, 127 carries, into the highest bit of a byte */
	return (word | (word - EACH_BYTE * ' ') | (word + EACH_BYTE)) & HIGH_BITS;
}

static bool is_control(uint8_t c)
{
	return (c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 127;
}

static bool is_text(const struct start *s)
{
	const char *text = (const char *)s->word;
	size_t size = s->words * WORD, n, at = 0;
	uint64_t other = 0;

	for (; at < size && (other = not_plain(le64toh(s->word[at / WORD]))) == 0; at += WORD)
		;
	n = at + (other ? (size_t)__builtin_ctzll(other) / 8 : 0);
	/* the usual text ends here */
	if (n == size || text[n] == '\0')
		return n >= TEXT_MIN;
	if (is_control((uint8_t)*text))
		return false;
	n = at + strnlen(text + at, size - at);
	if (n < TEXT_MIN)
		return false;
	while (at < n) {
		uint8_t c = (uint8_t)text[at];
		size_t length = utf8_character(&text[at], n - at);

		if (c < 128 ? is_control(c) : length == 0 && !(n == size && n - at < 4))
			return false;
		at += MAX(length, (size_t)1);
	}
	return true;
}

/* Multiples of 16 up to 4096, then powers of two, of the block's size in the allocator. */
static uint64_t size_number(uint64_t usable)
{
	uint64_t size = ROUND_UP(usable + WORD, UINT64_C(16));

	return size <= 4096 ? size / 16 : 4096 / 16 + 64 - (uint64_t)__builtin_clzll(size - 1);
}

/* The type of all blocks of @kind. */
static uint32_t get_kind(struct block_types *t, enum block_kind kind)
{
	if (t->of_kind[kind] == 0)
		t->of_kind[kind] = get_type(t, kind, 0, NULL) + 1;
	return t->of_kind[kind] - 1;
}

static uint32_t get_size(struct block_types *t, uint64_t usable)
{
	uint64_t number = size_number(usable);

	if (t->of_size[number] == 0)
		t->of_size[number] = get_type(t, KIND_SIZE, number, NULL) + 1;
	return t->of_size[number] - 1;
}

static uint32_t find_type(struct block_types *t, const struct start *s)
{
	uint32_t type = NO_TYPE;

	if (s->words == 0)
		return NO_TYPE;
	if (is_zero(s))
		return get_kind(t, KIND_ZEROS);
	if (s->word[0] % WORD == 0 && is_mapped(t, s->word[0]))
		type = type_of_table(t, s->word[0]);
	if (type == NO_TYPE && t->reader.has_python)
		type = find_python(t, s);
	if (type == NO_TYPE && are_pointers(t, s))
		type = get_kind(t, KIND_POINTERS);
	if (type == NO_TYPE && !is_mapped(t, s->word[0]) && is_text(s))
		type = get_kind(t, KIND_TEXT);
	return type;
}

uint32_t block_types_add(struct block_types *t, taddr_t addr, uint64_t usable)
{
	bool is_aligned = addr % WORD == 0;
	struct start s = {.words = is_aligned ? MIN(usable, TYPE_BYTES) / WORD : 0,
			  .usable = usable};

	t->words = 0;
	s.word = memory_peek(t->reader.memory, addr, s.words * WORD);
	if (t->reader.has_python && s.words > PYTHON_HOOK_WORDS && python_has_hook(s.word)) {
		s.word += PYTHON_HOOK_WORDS;
		s.words -= PYTHON_HOOK_WORDS;
		s.usable -= PYTHON_HOOK_WORDS * WORD;
	}
	uint32_t type = find_type(t, &s);

	if (type == NO_TYPE)
		type = get_size(t, usable);
	struct block_type *e = &t->list.data[type];

	e->blocks++;
	e->bytes += usable;
	e->smallest = MIN(e->smallest, usable);
	e->largest = MAX(e->largest, usable);
	return type;
}
