/*
 * Notes are taken while blocks are classified, whose first words are at hand. What they lead to is
 * found once all blocks are known, by one pass over both in the order of addresses.
 */
#include "inspect/python_objects.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "languages/python.h"

#define WORD sizeof(uint64_t)
#define ENTRIES_MAX (1u << 20)  /* of all modules */
#define NAMES_MAX (64u << 20)   /* bytes of the names of their variables */
#define FIELDS_MAX (1u << 20)   /* of all types */
#define MEMBERS_ALL (1u << 20)  /* of all classes, those of a base again for each */
#define BASES_MAX 16u
#define MEMBERS_MAX 256u        /* of a class */
#define ATTRIBUTES_MAX 64u
#define NAME_MAX_BYTES 128u
#define SET_ENTRIES 8u          /* in an object */
#define TUPLE_WORDS 32u         /* items that have names */

#define CLASS_KEYS 100u         /* words of a class among which its keys are */
#define CLASS_KEYS_END 124u

/* -- texts -- */

static bool read_for_language(void *ctx, taddr_t addr, void *buf, size_t size)
{
	return memory_read(ctx, addr, buf, size);
}

/* The str object at @addr, visible; NULL: it is none. The caller frees it. */
static char *read_text(struct inspect_memory *m, taddr_t addr)
{
	const struct language_memory memory = {read_for_language, m};
	uint64_t word[2], class[CLASS_WORDS];
	struct python_layout layout;

	if (addr % WORD || !memory_read(m, addr, word, sizeof(word)) ||
	    !python_class_read(m, word[1], class) ||
	    !python_text_layout(class[CLASS_SIZE], &layout))
		return NULL;
	return python_text_read(&layout, &memory, addr);
}

/* -- keys of dictionaries -- */

struct python_keys {
	taddr_t entries;
	uint64_t count;         /* of entries that were used */
	uint64_t places;
	uint32_t each;          /* words of an entry: the last two are key and value */
	bool is_split;          /* it has no values: they are elsewhere, in this order */
};

/* How many entries a table for @size has. */
static uint64_t usable_of(uint64_t size)
{
	return (size << 1) / 3;
}

static uint32_t index_bytes(uint64_t size)
{
	return size <= UINT8_MAX ? 1 : size <= UINT16_MAX ? 2 : size <= UINT32_MAX ? 4 : 8;
}

static bool read_new_keys(taddr_t at, const uint64_t *word, struct python_keys *out)
{
	enum { KIND_GENERAL, KIND_UNICODE, KIND_SPLIT };
	uint32_t size = word[1] & 0xff, bytes = word[1] >> 8 & 0xff, kind = word[1] >> 16 & 0xff;

	if (size < 3 || size > 40 || bytes < size || bytes > size + 3 || kind > KIND_SPLIT ||
	    word[2] > UINT64_C(1) << size || word[3] > UINT64_C(1) << size ||
	    word[2] + word[3] > usable_of(UINT64_C(1) << size))
		return false;
	*out = (struct python_keys){
		.entries = at + 4 * WORD + (UINT64_C(1) << bytes), .count = word[3],
		.places = word[2] + word[3], .each = kind == KIND_GENERAL ? 3 : 2,
		.is_split = kind == KIND_SPLIT};
	return true;
}

static bool read_old_keys(taddr_t at, const uint64_t *word, struct python_keys *out)
{
	uint64_t size = word[1];

	if (size < 8 || size > UINT64_C(1) << 40 || (size & (size - 1)) || !word[2] ||
	    word[3] > size || word[4] > size || word[3] + word[4] > usable_of(size))
		return false;
	*out = (struct python_keys){.entries = at + 5 * WORD + size * index_bytes(size),
				    .count = word[4], .places = word[3] + word[4], .each = 3};
	return true;
}

static bool read_keys(struct inspect_memory *m, taddr_t at, struct python_keys *out)
{
	uint64_t word[5];

	return at && at % WORD == 0 && memory_read(m, at, word, sizeof(word)) && word[0] > 0 &&
	       (read_new_keys(at, word, out) || read_old_keys(at, word, out));
}

/* -- modules -- */

struct python_search {
	struct inspect_memory *memory;
	struct block_types *types;
	struct block_holders *holders;
	uint64_t entries;       /* of modules, that may still be read */
	uint64_t names;         /* bytes of names */
	uint64_t members;       /* of classes, that were read */
	taddr_t class;          /* the last one whose attributes were counted */
	uint64_t attributes;
};

/* Adds what is in @k, a dictionary's of the module @module. */
static void add_globals(struct python_search *s, const char *module, const struct python_keys *k)
{
	uint64_t entry[3];

	for (uint64_t i = 0; i < k->count && s->entries > 0; i++, s->entries--) {
		taddr_t at = k->entries + i * k->each * WORD;

		if (!memory_read(s->memory, at, entry, k->each * WORD))
			return;
		uint64_t key = entry[k->each - 2], value = entry[k->each - 1];
		_cleanup_free_ char *name = key && value ? read_text(s->memory, key) : NULL;

		if (!name)
			continue;
		char *whole = xasprintf("%s: %s", module, name);

		s->names += strlen(whole);
		*vec_add(&s->holders->globals) = (struct holder_global){
			.word = at + (k->each - 1) * WORD, .name = whole};
		if (s->names > NAMES_MAX)
			return;
	}
}

static void add_module(struct python_search *s, const struct python_module *module)
{
	uint64_t word[AT_DICT_VALUES + 1];
	struct python_keys k;
	_cleanup_free_ char *name = read_text(s->memory, module->name);

	if (name && module->dict % WORD == 0 &&
	    memory_read(s->memory, module->dict, word, sizeof(word)) &&
	    !word[AT_DICT_VALUES] && read_keys(s->memory, word[AT_DICT_KEYS], &k) && !k.is_split)
		add_globals(s, name, &k);
}

static int compare_globals(const void *a, const void *b)
{
	const struct holder_global *x = a, *y = b;

	return x->word < y->word ? -1 : x->word > y->word;
}

/* Two modules may have the same dictionary. */
static bool is_same_global(const struct holder_global *to, struct holder_global *from)
{
	if (to->word != from->word)
		return false;
	free(from->name);
	return true;
}

static void add_modules(struct python_search *s)
{
	for (size_t i = 0; i < s->types->python.modules.count && s->names <= NAMES_MAX; i++)
		add_module(s, &s->types->python.modules.data[i]);
	vec_sort(&s->holders->globals, compare_globals);
	vec_merge(&s->holders->globals, is_same_global);
}

/* -- parts -- */

static int compare_parts(const void *a, const void *b)
{
	const struct python_part *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* The type of @part, which begins @offset bytes into its block. */
static uint32_t type_of_part(struct python_search *s, const struct python_part *part,
			     uint64_t offset)
{
	static const char *const name[PYTHON_ROLES] = {
		[PYTHON_DICT] = "dict entry[]", [PYTHON_LIST] = "list item[]",
		[PYTHON_SET] = "set entry[]", [PYTHON_BYTEARRAY] = "bytearray data",
		[PYTHON_ARRAY] = "numpy.ndarray data", [PYTHON_FILE] = "file buffer"};
	const struct block_type *of = &s->types->list.data[part->of];

	if (part->is_attributes)
		return block_types_python(s->types, offset / WORD + 1,
					  xasprintf("%s attributes", of->name));
	return name[of->role] ? block_types_python(s->types, 0, xstrdup(name[of->role])) :
				UINT32_MAX;
}

/* How many words of the block at @block, a dictionary's, have references, + 1. 0 = not known. */
static uint64_t words_of_dict(struct python_search *s, taddr_t block, const struct python_part *p)
{
	struct python_keys k;

	if (!read_keys(s->memory, p->keys ? p->keys : p->addr, &k))
		return 0;
	return (p->keys ? k.count : (k.entries + k.places * k.each * WORD - block) / WORD) + 1;
}

/* The keys of the attributes of objects of @class. */
static bool find_attributes(struct python_search *s, taddr_t class, struct python_keys *out)
{
	uint64_t word[CLASS_KEYS_END - CLASS_KEYS];

	if (!memory_read(s->memory, class + CLASS_KEYS * WORD, word, sizeof(word)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(word); i++)
		if (read_keys(s->memory, word[i], out) && out->is_split)
			return true;
	return false;
}

/* Likewise: values of attributes, @offset bytes after its start, of an object of @class. */
static uint64_t words_of_attributes(struct python_search *s, taddr_t class, uint64_t offset)
{
	struct python_keys k;

	if (s->class != class) {
		s->class = class;
		s->attributes = class && find_attributes(s, class, &k) ? k.count : 0;
	}
	return s->attributes ? offset / WORD + s->attributes + 1 : 0;
}

static void move_block(struct python_search *s, struct leakcheck_block *b, uint32_t type,
		       const struct python_part *part)
{
	struct block_type *from = &s->types->list.data[b->leaf], *to = &s->types->list.data[type];
	const struct block_type *of = &s->types->list.data[part->of];
	uint64_t words = part->words;

	from->blocks--;
	from->bytes -= b->size;
	to->blocks++;
	to->bytes += b->size;
	to->smallest = MIN(to->smallest, (uint64_t)b->size);
	to->largest = MAX(to->largest, (uint64_t)b->size);
	if (part->is_attributes) {
		to->class = of->class;
		words = words_of_attributes(s, of->class, part->addr - b->addr);
	} else if (of->role == PYTHON_DICT)
		words = words_of_dict(s, b->addr, part);
	b->leaf = type;
	b->time = (uint32_t)MIN(words, (uint64_t)UINT32_MAX);
}

static void move_parts(struct python_search *s)
{
	struct block_holders *h = s->holders;
	struct python_notes *notes = &s->types->python;
	size_t at = 0;

	vec_sort(&notes->parts, compare_parts);
	block_order_sort(h->blocks.data, h->blocks.count);
	for (size_t i = 0; i < notes->parts.count; i++) {
		const struct python_part *part = &notes->parts.data[i];

		while (at < h->blocks.count &&
		       leakcheck_block_end(&h->blocks.data[at]) <= part->addr)
			at++;
		if (at == h->blocks.count)
			return;
		struct leakcheck_block *b = &h->blocks.data[at];
		enum block_kind kind = s->types->list.data[b->leaf].kind;

		/* what says itself what it is, is no part of another object */
		if (b->addr > part->addr || kind == KIND_PYTHON || kind == KIND_CXX)
			continue;
		uint32_t type = type_of_part(s, part, part->addr - b->addr);

		if (type != UINT32_MAX)
			move_block(s, b, type, part);
	}
}

/* -- names of words -- */

static void add_field(struct python_search *s, uint32_t type, uint64_t word, const char *name)
{
	if (word < UINT32_MAX && s->types->fields.count < FIELDS_MAX)
		*vec_add(&s->types->fields) = (struct block_field){
			.type = type, .word = (uint32_t)word, .name = xstrdup(name)};
}

/* Members that C code declares, and __slots__: those that are references. */
static void add_members(struct python_search *s, uint32_t type, uint32_t header, taddr_t member)
{
	enum { T_OBJECT = 6, T_OBJECT_EX = 16 };
	uint64_t word[3];

	for (uint32_t i = 0; member % WORD == 0 && i < MEMBERS_MAX; i++, member += 5 * WORD) {
		char name[NAME_MAX_BYTES];

		if (s->members++ >= MEMBERS_ALL ||
		    !memory_read(s->memory, member, word, sizeof(word)) || !word[0])
			return;
		if (((uint32_t)word[1] != T_OBJECT && (uint32_t)word[1] != T_OBJECT_EX) ||
		    word[2] % WORD || !memory_read(s->memory, word[0], name, sizeof(name)))
			continue;
		size_t n = strnlen(name, sizeof(name));

		if (n == 0 || n == sizeof(name))
			continue;
		_cleanup_free_ char *clean = text_clean(name, n);

		add_field(s, type, (header + word[2]) / WORD, clean);
	}
}

/* @first: the word of the first value. */
static void add_attributes(struct python_search *s, uint32_t type, taddr_t class, uint64_t first)
{
	struct python_keys k;
	uint64_t entry[2];

	if (!find_attributes(s, class, &k))
		return;
	for (uint64_t i = 0; i < MIN(k.count, (uint64_t)ATTRIBUTES_MAX); i++) {
		if (!memory_read(s->memory, k.entries + i * sizeof(entry), entry, sizeof(entry)))
			return;
		_cleanup_free_ char *name = read_text(s->memory, entry[0]);

		if (name)
			add_field(s, type, first + i, name);
	}
}

/* What objects of a role have in their words. */
static void add_role(struct python_search *s, uint32_t type, enum python_role role,
		     uint32_t header)
{
	static const struct {
		enum python_role role;
		uint32_t word;
		const char *name;
	} words[] = {{PYTHON_DICT, AT_DICT_KEYS, "[*]"}, {PYTHON_DICT, AT_DICT_VALUES, "[*]"},
		     {PYTHON_LIST, AT_LIST_ITEMS, "[*]"}, {PYTHON_SET, AT_SET_ENTRIES, "[*]"},
		     {PYTHON_BYTEARRAY, AT_BYTES, "data"}, {PYTHON_ARRAY, AT_ARRAY, "data"},
		     {PYTHON_FILE, AT_FILE_BUFFER, "buffer"},
		     {PYTHON_MODULE, AT_MODULE_DICT, "__dict__"}};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].role == role)
			add_field(s, type, header / WORD + words[i].word, words[i].name);
	/* a small one has its entries in the object */
	for (uint32_t i = 0; role == PYTHON_SET && i < SET_ENTRIES; i++)
		add_field(s, type, header / WORD + AT_SET_SMALL + 2 * i, "[*]");
	for (uint32_t i = 0; role == PYTHON_TUPLE && i < TUPLE_WORDS; i++)
		add_field(s, type, header / WORD + AT_TUPLE_ITEMS + i, "[*]");
}

/* The words of objects of type number @type, of the class @class. */
static void add_words(struct python_search *s, uint32_t type, taddr_t class)
{
	const struct block_type t = s->types->list.data[type];
	uint64_t word[CLASS_WORDS], base[CLASS_WORDS];

	if (!python_class_read(s->memory, class, word))
		return;
	memcpy(base, word, sizeof(base));
	add_role(s, type, t.role, t.header);
	for (uint32_t i = 0; i < BASES_MAX; i++) {
		add_members(s, type, t.header, base[CLASS_MEMBERS]);
		if (!base[CLASS_BASE] || !python_class_read(s->memory, base[CLASS_BASE], base))
			break;
	}
	if (word[CLASS_DICT_OFFSET] > 0 && word[CLASS_DICT_OFFSET] <= word[CLASS_SIZE])
		add_field(s, type, (t.header + word[CLASS_DICT_OFFSET]) / WORD, "__dict__");
	if (t.header != PYTHON_MANAGED)
		return;
	add_field(s, type, 0, "__dict__");
	add_field(s, type, 1, "__dict__");
	if (word[CLASS_FLAGS] & CLASS_INLINE_VALUES)
		add_attributes(s, type, class, (t.header + word[CLASS_SIZE]) / WORD + 1);
}

static int compare_fields(const void *a, const void *b)
{
	const struct block_field *x = a, *y = b;

	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	return x->word < y->word ? -1 : x->word > y->word;
}

static bool is_same_field(const struct block_field *to, struct block_field *from)
{
	if (compare_fields(to, from) != 0)
		return false;
	free(from->name);
	return true;
}

static void set_weak(struct python_search *s, uint32_t type, uint64_t word, uint64_t before)
{
	block_holders_set_weak(s->holders, type,
			       (struct holder_weak){(uint32_t)word, (uint32_t)before});
}

static void name_words(struct python_search *s)
{
	for (uint32_t i = 0; i < s->types->list.count; i++) {
		const struct block_type t = s->types->list.data[i];

		if (t.kind != KIND_PYTHON)
			continue;
		if (t.role == PYTHON_WEAK)
			set_weak(s, i, t.header / WORD + AT_WEAK, 0);
		/* half of it is not set */
		if (t.role == PYTHON_TEXT)
			set_weak(s, i, t.header / WORD + AT_TEXT_STATE, 0);
		if (t.key)
			set_weak(s, i, 0, t.key - 1);
		if (t.key && t.class)
			add_attributes(s, i, t.class, t.key - 1);
		else if (t.class)
			add_words(s, i, t.class);
		else if (!t.key && text_ends_in(t.name, "[]"))
			add_field(s, i, 0, "[*]");
	}
	vec_sort(&s->types->fields, compare_fields);
	vec_merge(&s->types->fields, is_same_field);
}

void python_objects_find(struct inspect_memory *m, struct block_types *t, struct block_holders *h)
{
	struct python_search s = {.memory = m, .types = t, .holders = h, .entries = ENTRIES_MAX};

	add_modules(&s);
	move_parts(&s);
	name_words(&s);
}
