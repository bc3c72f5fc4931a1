/*
 * Names in Ruby: Strings, texts of IDs, by which methods are called, and names of classes. The
 * table of symbols has no name in stripped libraries, so it is found by what it has:
 *
 *	number of the last symbol, a table of texts, an Array of Arrays of texts (512 pairs in each)
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "languages/ruby.h"

/* An object's flags: its type, and where its data is. */
#define TYPE_MASK 0x1fu
enum { TYPE_CLASS = 2, TYPE_MODULE = 3, TYPE_STRING = 5, TYPE_ARRAY = 7 };
#define STRING_IS_OUTSIDE (1u << 13)
#define ARRAY_IS_INSIDE (1u << 13)

/* -- texts -- */

#define TEXT_MAX 4096u

char *ruby_read_text(const struct ruby *r, const struct language_memory *m, taddr_t addr)
{
	uint64_t object[4];
	char data[TEXT_MAX];

	if (!addr || addr % sizeof(addr) || !m->read(m->ctx, addr, object, sizeof(object)) ||
	    (object[0] & TYPE_MASK) != TYPE_STRING)
		return NULL;
	bool is_outside = object[0] & STRING_IS_OUTSIDE;
	uint64_t size = is_outside || r->layout.has_long_texts ? object[2] : object[0] >> 14 & 31;
	taddr_t at = is_outside ? object[3] : addr + (r->layout.has_long_texts ? 24 : 16);

	if (size >> 32)
		return NULL;
	size = MIN(size, sizeof(data));
	return m->read(m->ctx, at, data, size) ? text_clean(data, size) : NULL;
}

bool ruby_read_array(const struct language_memory *m, taddr_t addr, taddr_t *elements_out,
		     uint64_t *count_out)
{
	uint64_t object[5];

	if (!addr || addr % sizeof(addr) || !m->read(m->ctx, addr, object, sizeof(object)) ||
	    (object[0] & TYPE_MASK) != TYPE_ARRAY)
		return false;
	bool is_inside = object[0] & ARRAY_IS_INSIDE;

	*elements_out = is_inside ? addr + 16 : object[4];
	*count_out = is_inside ? object[0] >> 15 & 127 : object[2];
	return true;
}

/* -- symbols -- */

#define UNIT 512u        /* symbols in an Array, two words for each */
#define OPERATORS 170u   /* IDs up to it are the numbers themselves; others have 4 bits of kind */
#define SYMBOLS_MIN 1000u
#define SYMBOLS_MAX (1u << 24)
#define DATA_MAX (4u << 20)
#define DATA_STEP 4096u
#define PLUS '+'

static taddr_t symbol_text(const struct language_memory *m, taddr_t symbols, uint64_t number)
{
	taddr_t units, unit, texts, text;
	uint64_t count;

	if (!ruby_read_array(m, symbols, &units, &count) || number / UNIT >= count ||
	    !language_read_word(m, units + number / UNIT * sizeof(unit), &unit) ||
	    !ruby_read_array(m, unit, &texts, &count) || number % UNIT * 2 >= count ||
	    !language_read_word(m, texts + number % UNIT * 2 * sizeof(text), &text))
		return 0;
	return text;
}

/* Whether @word begins the table of symbols. */
static bool is_table(const struct ruby *r, const struct language_memory *m, const uint64_t *word)
{
	taddr_t units;
	uint64_t count;

	if (word[0] < SYMBOLS_MIN || word[0] > SYMBOLS_MAX || !word[1] || word[1] % 8 ||
	    !ruby_read_array(m, word[2], &units, &count) || count != word[0] / UNIT + 1)
		return false;
	_cleanup_free_ char *plus = ruby_read_text(r, m, symbol_text(m, word[2], PLUS));

	return plus && plus[0] == PLUS && !plus[1];
}

void ruby_find_symbols(struct ruby *r, const struct language_memory *m)
{
	uint64_t word[DATA_STEP / sizeof(uint64_t) + 2];
	size_t words = DATA_STEP / sizeof(uint64_t);

	r->symbols = 0;
	if (r->data.end - r->data.start > DATA_MAX)
		return;
	for (taddr_t at = r->data.start; at + sizeof(word) <= r->data.end; at += DATA_STEP) {
		if (!m->read(m->ctx, at, word, sizeof(word)))
			continue;
		for (size_t i = 0; i < words; i++) {
			if (!is_table(r, m, &word[i]))
				continue;
			r->symbols = word[i + 2];
			return;
		}
	}
}

char *ruby_read_id(const struct ruby *r, const struct language_memory *m, uint64_t id)
{
	uint64_t number = id > OPERATORS ? id >> 4 : id;

	if (!r->symbols || number > SYMBOLS_MAX)
		return NULL;
	return ruby_read_text(r, m, symbol_text(m, r->symbols, number));
}

/* -- classes -- */

enum { CLASS_PART = 24, PART_VARIABLES = 8 };
enum { TABLE_BOUND = 40, TABLE_ENTRIES = 48, ENTRY_BYTES = 24, ENTRY_KEY = 8, ENTRY_VALUE = 16 };
#define VARIABLES_MAX 1024u

/* The variable @name of the class, in its table of them; 0: none. */
static uint64_t find_variable(const struct ruby *r, const struct language_memory *m, taddr_t class,
			      const char *name)
{
	taddr_t part, table, entries, value;
	uint64_t bound, key;

	if (!language_read_word(m, class + CLASS_PART, &part) ||
	    !language_read_word(m, part + PART_VARIABLES, &table) || !table ||
	    !language_read_word(m, table + TABLE_BOUND, &bound) ||
	    !language_read_word(m, table + TABLE_ENTRIES, &entries))
		return 0;
	for (uint64_t i = 0; i < MIN(bound, VARIABLES_MAX); i++) {
		taddr_t entry = entries + i * ENTRY_BYTES;

		if (!language_read_word(m, entry + ENTRY_KEY, &key))
			return 0;
		_cleanup_free_ char *text = ruby_read_id(r, m, key);

		if (text && strcmp(text, name) == 0)
			return language_read_word(m, entry + ENTRY_VALUE, &value) ? value : 0;
	}
	return 0;
}

#define CLASS_FIRST 32u /* from 3.2 on the class's own words follow it */
#define CLASS_END 200u

/* Of the words of the class, the one that is a text is its name. */
static char *find_name(const struct ruby *r, const struct language_memory *m, taddr_t class)
{
	for (taddr_t at = CLASS_FIRST; at < CLASS_END; at += sizeof(at)) {
		taddr_t word;

		if (!language_read_word(m, class + at, &word))
			return NULL;
		char *text = ruby_read_text(r, m, word);

		if (text && isupper((unsigned char)text[0]))
			return text;
		free(text);
	}
	return NULL;
}

#define CLASS_ATTACHED 128u /* from 3.3 on, in a singleton class: whose it is */

/* The class or module that has @class for its own methods; 0: it is no such class. */
static taddr_t find_attached(const struct ruby *r, const struct language_memory *m, taddr_t class)
{
	taddr_t attached;
	uint64_t flags;

	if (r->layout.version < RUBY_VERSION(3, 2))
		return find_variable(r, m, class, "__attached__");
	if (r->layout.version < RUBY_VERSION(3, 3) ||
	    !language_read_word(m, class + CLASS_ATTACHED, &attached) || !attached ||
	    attached % sizeof(attached) || !language_read_word(m, attached, &flags))
		return 0;
	flags &= TYPE_MASK;
	return flags == TYPE_CLASS || flags == TYPE_MODULE ? attached : 0;
}

static char *class_name(const struct ruby *r, const struct language_memory *m, taddr_t class)
{
	if (r->layout.version >= RUBY_VERSION(3, 2))
		return find_name(r, m, class);
	return ruby_read_text(r, m, find_variable(r, m, class, "__classpath__"));
}

char *ruby_read_class(const struct ruby *r, const struct language_memory *m, taddr_t class)
{
	if (!class || class % sizeof(class))
		return NULL;
	taddr_t attached = find_attached(r, m, class);
	_cleanup_free_ char *name = class_name(r, m, attached ? attached : class);

	if (!name || !*name || (!attached && strcmp(name, "Object") == 0))
		return NULL;
	return xasprintf("%s%c", name, attached ? '.' : '#');
}
