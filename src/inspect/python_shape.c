/* Classes are known by the names of the ones that C code defines, which no program can change. */
#include "inspect/python_shape.h"

#include <string.h>

#define WORD sizeof(uint64_t)
#define BASES_MAX 16u
#define NAME_MAX_BYTES 32u
#define WORDS_BEFORE_3_12 10u   /* of str */
#define TUPLE_BEHIND 2u         /* a dictionary and weak references, of classes made from it */
#define IS_HEAP_CLASS (UINT64_C(1) << 9)

/* -- classes -- */

bool python_class_read(struct inspect_memory *m, taddr_t class,
		       uint64_t word[static CLASS_WORDS])
{
	return class % WORD == 0 && memory_read(m, class, word, CLASS_WORDS * WORD);
}

/* Whether the text at @addr is @text. */
static bool is_text(struct inspect_memory *m, taddr_t addr, const char *text)
{
	char found[NAME_MAX_BYTES];
	size_t size = strlen(text) + 1;

	return size <= sizeof(found) && memory_read(m, addr, found, size) &&
	       memcmp(found, text, size) == 0;
}

/* Whether both are in one file: of the interpreter, if one is the class "object". */
static bool are_neighbours(const struct inspect_memory *m, taddr_t a, taddr_t b)
{
	const struct map *x = maps_find(&m->pages->maps, a), *y = maps_find(&m->pages->maps, b);

	return x && y && *x->path && strcmp(x->path, y->path) == 0;
}

/* As struct python_shape has it. @is_plain: no class in an extension module is among its bases. */
static uint32_t words_of(enum python_role role, bool is_plain, const uint64_t *class)
{
	uint64_t words = class[CLASS_SIZE] / WORD;
	bool is_made = class[CLASS_FLAGS] & IS_HEAP_CLASS;

	if (role == PYTHON_TUPLE)
		return AT_TUPLE_ITEMS + (is_made ? TUPLE_BEHIND : 0);
	if (role == PYTHON_DATA && !is_made)
		return MIN(words, AT_SIZE + 1u);
	if (role == PYTHON_FRAME || role == PYTHON_FILE || words > UINT32_MAX / 2 ||
	    (class[CLASS_ITEM] && (is_made || !is_plain)) || (role == PYTHON_PLAIN && !is_plain))
		return 0;
	return (uint32_t)words;
}

static enum python_role role_of(struct inspect_memory *m, const uint64_t *class)
{
	static const struct {
		const char *name;
		enum python_role role;
	} known[] = {
		{"dict", PYTHON_DICT}, {"list", PYTHON_LIST}, {"tuple", PYTHON_TUPLE},
		{"set", PYTHON_SET}, {"frozenset", PYTHON_SET}, {"bytearray", PYTHON_BYTEARRAY},
		{"numpy.ndarray", PYTHON_ARRAY}, {"module", PYTHON_MODULE},
		/* with the module since 3.12 */
		{"weakref", PYTHON_WEAK}, {"weakref.ReferenceType", PYTHON_WEAK},
		{"weakproxy", PYTHON_WEAK}, {"weakref.ProxyType", PYTHON_WEAK},
		{"weakcallableproxy", PYTHON_WEAK}, {"weakref.CallableProxyType", PYTHON_WEAK},
		{"frame", PYTHON_FRAME}, {"str", PYTHON_TEXT}, {"int", PYTHON_DATA},
		{"float", PYTHON_DATA}, {"complex", PYTHON_DATA}, {"bytes", PYTHON_DATA},
		{"_io.BufferedReader", PYTHON_FILE}, {"_io.BufferedWriter", PYTHON_FILE},
		{"_io.BufferedRandom", PYTHON_FILE}};

	bool is_made = class[CLASS_FLAGS] & IS_HEAP_CLASS;
	char first;

	if (!memory_read(m, class[CLASS_NAME], &first, 1))
		return PYTHON_PLAIN;
	/* a program's class may have any name, but without its module */
	for (size_t k = 0; k < ARRAY_SIZE(known); k++)
		if (known[k].name[0] == first && (!is_made || known[k].role == PYTHON_FILE) &&
		    is_text(m, class[CLASS_NAME], known[k].name))
			return known[k].role;
	return PYTHON_PLAIN;
}

void python_shape_find(struct inspect_memory *m, taddr_t class, struct python_shape *out)
{
	uint64_t own[CLASS_WORDS], word[CLASS_WORDS];
	VEC(taddr_t) fixed = {0}; /* bases that no program has made */
	taddr_t at = class;

	*out = (struct python_shape){0};
	if (!python_class_read(m, class, own))
		return;
	for (uint32_t i = 0; at && i < BASES_MAX && python_class_read(m, at, word); i++) {
		out->role = role_of(m, word);
		if (!(word[CLASS_FLAGS] & IS_HEAP_CLASS))
			*vec_add(&fixed) = at;
		if (out->role != PYTHON_PLAIN)
			break;
		at = word[CLASS_BASE];
	}
	bool is_plain = at == 0 && fixed.count > 0;

	for (size_t i = 0; i < fixed.count && is_plain; i++)
		is_plain = are_neighbours(m, fixed.data[i], fixed.data[fixed.count - 1]);
	out->words = words_of(out->role, is_plain, own);
	out->item = out->role == PYTHON_TUPLE ? WORD : out->role == PYTHON_PLAIN ?
		(uint32_t)MIN(own[CLASS_ITEM], UINT64_C(1) << 16) : 0;
	out->is_made = own[CLASS_FLAGS] & IS_HEAP_CLASS;
	out->has_values = own[CLASS_FLAGS] & CLASS_INLINE_VALUES;
	vec_deinit(&fixed);
}

/* Words before the characters of a text of a class with @words. */
static uint64_t words_of_text(uint64_t words, uint64_t state)
{
	enum { IS_COMPACT = 1 << 5, IS_ASCII = 1 << 6 };

	if (!(state & IS_COMPACT))
		return words;
	/* without a pointer to characters; and, in versions before 3.12, to wide ones */
	return state & IS_ASCII ? (words == WORDS_BEFORE_3_12 ? 6 : 5) : words - 1;
}

uint32_t python_shape_words(const struct python_shape *s, const struct python_block *b)
{
	const uint64_t *object = b->word + b->header / WORD;
	size_t words = b->words - b->header / WORD;
	uint64_t all = s->words, items = 0;

	if (!all || (s->item && words <= AT_SIZE) ||
	    (s->role == PYTHON_TEXT && words <= AT_TEXT_STATE))
		return 0;
	if (s->item)
		items = object[AT_SIZE] + (s->role == PYTHON_TUPLE ? 0 : 1);
	if (items > UINT32_MAX / 2 || (s->has_values && all >= words))
		return 0;
	/* a byte says how many */
	if (s->has_values)
		all += 1 + (object[all] & 0xff);
	if (s->role == PYTHON_TEXT && !s->is_made)
		all = words_of_text(all, object[AT_TEXT_STATE]);
	all += b->header / WORD + (items * s->item + WORD - 1) / WORD;
	return (uint32_t)MIN(all, (uint64_t)UINT32_MAX - 1);
}

/* -- notes -- */

static void note_part(struct python_notes *n, struct python_part part)
{
	if (part.addr)
		*vec_add(&n->parts) = part;
}

/* As struct python_part has it. */
static uint64_t words_of_items(enum python_role role, const uint64_t *object)
{
	return role == PYTHON_LIST ? object[AT_SIZE] + 1 :
	       role == PYTHON_BYTEARRAY || role == PYTHON_FILE ? 1 :
	       role == PYTHON_SET ? 2 * (object[AT_SET_MASK] + 1) + 1 : 0;
}

void python_notes_add(struct python_notes *n, enum python_role role, uint32_t of,
		      const struct python_block *b)
{
	static const uint8_t part[PYTHON_ROLES] = {
		[PYTHON_DICT] = AT_DICT_KEYS, [PYTHON_LIST] = AT_LIST_ITEMS,
		[PYTHON_SET] = AT_SET_ENTRIES, [PYTHON_BYTEARRAY] = AT_BYTES,
		[PYTHON_ARRAY] = AT_ARRAY, [PYTHON_FILE] = AT_FILE_BUFFER};
	const uint64_t *word = b->word, *object = word + b->header / WORD;
	size_t words = b->words - b->header / WORD;

	/* they are in the place of the references to weak ones, or of the dictionary */
	if (b->header == PYTHON_MANAGED)
		note_part(n, (struct python_part){
			.addr = word[1] & 1 ? word[1] + 1 : word[0], .of = of,
			.is_attributes = true});
	if (part[role] && part[role] < words)
		note_part(n, (struct python_part){
			.addr = object[part[role]], .of = of,
			.words = words_of_items(role, object)});
	if (role == PYTHON_DICT && AT_DICT_VALUES < words)
		note_part(n, (struct python_part){.addr = object[AT_DICT_VALUES], .of = of,
						  .keys = object[AT_DICT_KEYS]});
	if (role == PYTHON_MODULE && AT_MODULE_NAME < words)
		*vec_add(&n->modules) = (struct python_module){object[AT_MODULE_DICT],
							       object[AT_MODULE_NAME]};
}

void python_notes_deinit(struct python_notes *n)
{
	vec_deinit(&n->parts);
	vec_deinit(&n->modules);
}
