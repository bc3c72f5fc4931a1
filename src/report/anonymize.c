/* See anonymize.h. A column of texts that is not in a table here becomes words. */
#include "report/anonymize.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "output/outfile.h"
#include "recording/recording_format.h"
#include "recording/recording_site.h"

/* -- SipHash-2-4 (Aumasson and Bernstein, 2012) -- */

struct key {
	uint64_t k[2];
};

static uint64_t rotate(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static void sip_rounds(uint64_t v[static 4], int rounds)
{
	while (rounds-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static uint64_t sip_hash(const struct key *key, const char *data, size_t size)
{
	uint64_t v[4] = {key->k[0] ^ 0x736f6d6570736575, key->k[1] ^ 0x646f72616e646f6d,
			 key->k[0] ^ 0x6c7967656e657261, key->k[1] ^ 0x7465646279746573};

	for (size_t at = 0; at <= size; at += 8) {
		uint64_t word = size - at < 8 ? (uint64_t)size << 56 : 0;

		for (size_t i = 0; i < 8 && at + i < size; i++)
			word |= (uint64_t)(uint8_t)data[at + i] << 8 * i;
		v[3] ^= word;
		sip_rounds(v, 2);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static struct key make_key(const char *text)
{
	struct key key = {{0, 1}}, other = {{2, 3}};

	if (text) {
		uint64_t a = sip_hash(&key, text, strlen(text));

		return (struct key){{a, sip_hash(&other, text, strlen(text))}};
	}
	CHECK(getrandom(&key, sizeof(key), 0) == (ssize_t)sizeof(key));
	return key;
}

/* -- words -- */

struct word {
	char *of, *word; /* owned */
};

struct dictionary {
	struct key key;
	HASH(struct word) word;   /* by what they are of */
	HASH(char *) used;        /* owned by `word` */
};

static char *make_word(struct dictionary *w, const char *name, size_t size)
{
	static const char consonant[] = "bdfgklmnprstvwz", vowel[] = "aeiou";
	uint64_t hash = sip_hash(&w->key, name, size);
	char word[16];
	size_t n = 0;

	for (size_t i = 0; i < 5; i++) {
		word[n++] = consonant[hash % 15];
		word[n++] = vowel[hash / 15 % 5];
		hash /= 75;
	}
	word[n] = '\0';
	return xstrdup(word);
}

static bool is_used(const struct dictionary *w, const char *word)
{
	return hash_find(&w->used, hash_bytes(word, strlen(word)), e, !strcmp(*e, word));
}

/* The word for the @size bytes at @name. Of two names with the same hash, the second has "x". */
static const char *word_for(struct dictionary *w, const char *name, size_t size)
{
	uint64_t hash = hash_bytes(name, size);
	const struct word *known = hash_find(&w->word, hash, e,
					     strlen(e->of) == size && !memcmp(e->of, name, size));

	if (known)
		return known->word;
	char *word = make_word(w, name, size);

	while (is_used(w, word)) {
		_cleanup_free_ char *before = word;

		word = xasprintf("%sx", before);
	}
	*hash_add(&w->word, hash) = (struct word){xstrndup(name, size), word};
	*hash_add(&w->used, hash_bytes(word, strlen(word))) = word;
	return word;
}

static void dictionary_deinit(struct dictionary *w)
{
	for (size_t i = 0; hash_next(&w->word.index, &i); i++) {
		free(w->word.slot[i].of);
		free(w->word.slot[i].word);
	}
	hash_deinit(&w->word);
	hash_deinit(&w->used);
}

/* -- names of functions and types -- */

static bool is_identifier(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 128;
}

/* The length of the qualified name at @s: a::b::c. */
static size_t chain_length(const char *s)
{
	size_t n = 0;

	while (is_identifier(s[n]) || (s[n] == ':' && s[n + 1] == ':' && is_identifier(s[n + 2])))
		n += s[n] == ':' ? 2 : 1;
	return n;
}

static bool is_among(const char *s, size_t size, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == size && !memcmp(list[i], s, size))
			return true;
	return false;
}

static bool is_keyword(const char *s, size_t size)
{
	static const char *const words[] = {
		"auto", "bool", "char", "char16_t", "char32_t", "char8_t", "class", "const",
		"decltype", "delete", "double", "enum", "float", "int", "long", "lambda", "nullptr",
		"new", "operator", "short", "signed", "struct", "template", "typename", "union",
		"unsigned", "void", "volatile", "wchar_t", "anonymous", "namespace", "clone",
		"constprop", "isra", "part", "cold", "main", "true", "false",
		/* Rust */
		"as", "closure", "dyn", "extern", "fn", "for", "impl", "mut", "self", "Self",
		"str", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64",
		"i128", "isize", "f32", "f64", "vtable", "shim",
		/* Python */
		"module", "listcomp", "genexpr", "dictcomp", "setcomp", "locals",
	};

	return is_among(s, size, words, ARRAY_SIZE(words));
}

/* Of frames that are no functions: "[file NAME]", "[allocated before attach]". */
static bool is_of_pseudo(const char *s, size_t size)
{
	static const char *const words[] = {
		"Python", "allocated", "before", "attach", "other", "call", "paths", "below",
		"stack", "shared", "memory", "moved", "or", "grown", "major", "fault", "native",
		"frames", "unknown", "Java", "method", "file", "ignored", "anonymous",
	};

	return is_among(s, size, words, ARRAY_SIZE(words));
}

static bool is_standard_chain(const char *s, size_t size)
{
	static const char *const starts[] = {"std::", "core::", "alloc::", "hashbrown::",
					     "__gnu_cxx::", "__cxxabiv1::"};

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		if (size > strlen(starts[i]) && !memcmp(s, starts[i], strlen(starts[i])))
			return true;
	return false;
}

static void put_identifier(FILE *out, struct dictionary *w, const char *s, size_t size)
{
	_cleanup_free_ char *name = xstrndup(s, size);

	if (is_keyword(s, size) || isdigit((unsigned char)*s)) {
		fwrite(s, 1, size, out);
		return;
	}
	const char *word = word_for(w, s, size);

	if (isupper((unsigned char)*s))
		fprintf(out, "%c%s", toupper((unsigned char)*word), word + 1);
	else
		fputs(word, out);
	if (wrapper_is_malloc_like(name)) /* so that call sites stay what they are */
		fputs("_alloc", out);
}

static void put_chain(FILE *out, struct dictionary *w, const char *s, size_t size)
{
	if (is_standard_chain(s, size)) {
		fwrite(s, 1, size, out);
		return;
	}
	for (size_t n; size > 0; s += n, size -= n) {
		n = 0;
		while (n < size && s[n] != ':')
			n++;
		put_identifier(out, w, s, n);
		while (n < size && s[n] == ':')
			putc(s[n++], out);
	}
}

/* With @is_public, only what is in brackets becomes words: arguments of templates, parameters. */
static char *name_of(struct dictionary *w, const char *name, bool is_public)
{
	char *text;
	size_t size, n;
	FILE *out = open_memstream(&text, &size);
	int depth = 0;

	CHECK(out);
	if (!wrapper_is_named(name)) {
		fputs(name, out);
		name = "";
	}
	for (const char *s = name; *s; s += n) {
		n = chain_length(s);
		if (n && *name == '[' && is_of_pseudo(s, n)) {
			fwrite(s, 1, n, out);
		} else if (!n) {
			n = 1;
			depth += (*s == '<' || *s == '(') -
				 ((*s == '>' && s > name && s[-1] != '-') || *s == ')');
			putc(*s, out);
		} else if (is_public && depth <= 0) {
			fwrite(s, 1, n, out);
		} else {
			put_chain(out, w, s, n);
		}
	}
	CHECK(!fclose(out));
	return text;
}

/* -- paths -- */

static bool is_public_directory(const char *s, size_t size)
{
	static const char *const names[] = {"usr", "local", "include", "lib", "lib64", "src", "bin",
					    "share", "nix", "gnu", "store", "home", "tmp", "opt"};

	return is_among(s, size, names, ARRAY_SIZE(names));
}

/* The length of the part of a file's name that becomes a word: ".so.1", ".cpp" and "*" stay. */
static size_t stem_length(const char *s, size_t size)
{
	const char *so = memmem(s, size, ".so", 3);
	const char *dot = memrchr(s, '.', size);
	size_t end = size;

	if (so && so > s && (so + 3 == s + size || so[3] == '.'))
		end = (size_t)(so - s);
	else if (dot && dot > s && s + size - dot <= 5)
		end = (size_t)(dot - s);
	for (size_t i = end; i < size; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '.')
			return size;
	return end;
}

static char *path_of(struct dictionary *w, const char *path)
{
	char *text;
	size_t size, n;
	FILE *out = open_memstream(&text, &size);

	CHECK(out);
	for (const char *s = path; *s; s += n) {
		n = strcspn(s, "/");
		if (!n) {
			n = strspn(s, "/");
			fwrite(s, 1, n, out);
			continue;
		}
		size_t stem = stem_length(s, n);
		bool is_wild = stem == strspn(s, "*?") || !strncmp(s, "..", n);

		if (is_wild || (s[n] && is_public_directory(s, n)))
			fwrite(s, 1, n, out);
		else
			fprintf(out, "%s%.*s", word_for(w, s, stem), (int)(n - stem), s + stem);
	}
	CHECK(!fclose(out));
	return text;
}

/* -- a recording -- */

struct anonymous_copy {
	struct dictionary words;
	const struct recording *from;
	struct recording *to;
};

enum treatment { AS_WORDS, AS_FUNCTION, AS_SOURCE, AS_OBJECT, AS_BUILD_ID, AS_VALUE, AS_IS };

/* Columns of texts that are treated in another way than others. */
static const struct {
	enum recording_table_id id;
	unsigned column;
	enum treatment treatment;
} treated[] = {
	{RECORDING_META, META_KEY, AS_IS},
	{RECORDING_META, META_VALUE, AS_VALUE},
	{RECORDING_OBJECTS, OBJECT_PATH, AS_OBJECT},
	{RECORDING_OBJECTS, OBJECT_BUILD_ID, AS_BUILD_ID},
	{RECORDING_FRAMES, FRAME_FUNCTION, AS_FUNCTION},
	{RECORDING_FRAMES, FRAME_FILE, AS_SOURCE},
	{RECORDING_CALLS, CALL_FUNCTION, AS_IS},
	{RECORDING_MARKERS, MARKER_KIND, AS_IS},
	{RECORDING_LEAKS, LEAK_KIND, AS_IS},
	{RECORDING_LEAK_AGES, LEAK_AGE_KIND, AS_IS},
	{RECORDING_LEAK_HOLDERS, LEAK_HOLDER_KIND, AS_IS},
	{RECORDING_INSPECTION, INSPECTION_MALLOC, AS_IS},
	{RECORDING_RESIDENT, RESIDENT_NAME, AS_IS},
};

static enum treatment treatment_of(enum recording_table_id id, unsigned column)
{
	for (size_t i = 0; i < ARRAY_SIZE(treated); i++)
		if (treated[i].id == id && treated[i].column == column)
			return treated[i].treatment;
	return AS_WORDS;
}

/* Values of META that say nothing of the program. */
static bool is_public_value(const char *key)
{
	static const char *const keys[] = {
		"pid", "parent", "ptmem", "start", "start_monotonic", "duration", "exit",
		"overhead", "attached", "lost", "times", "heap_sample", "heap_sample_max",
		"leak_check", "free_stacks", "part", "lead", "peak_resident", "corrupt",
		"temporary_below",
	};

	return text_is_among(key, keys, ARRAY_SIZE(keys));
}

/* "Linux 6.1.0-17-acme CPU" without what follows the version: it may name an organization. */
static char *kernel_of(const char *value)
{
	size_t name = strcspn(value, " ");
	size_t version = value[name] ? strspn(value + name + 1, "0123456789.") : 0;
	const char *machine = strrchr(value, ' ');

	return !strncmp(value, "Linux ", 6) && version && machine > value + name ?
		       xasprintf("Linux %.*s%s", (int)version, value + name + 1, machine) :
		       xstrdup("");
}

static char *value_of(struct anonymous_copy *c, const char *key, const char *value)
{
	if (is_public_value(key))
		return xstrdup(value);
	if (!strcmp(key, "options"))
		return xstrdup("");
	if (!strcmp(key, "kernel"))
		return kernel_of(value);
	if (!strcmp(key, "command")) { /* without arguments, which may be secrets */
		_cleanup_free_ char *program = xstrndup(value, strcspn(value, " "));

		return path_of(&c->words, text_base_name(program));
	}
	if (!strcmp(key, MY_CODE_META) && *value) {
		_cleanup_free_ char *pattern = path_of(&c->words, value + 1);

		return xasprintf("%c%s", *value, pattern);
	}
	return name_of(&c->words, value, false);
}

static char *text_of_frame(struct anonymous_copy *c, size_t row, enum treatment treatment,
			   const char *text)
{
	struct frame_text frame = recording_frame_text(c->from, row);
	uint64_t kind = recording_get(c->from, RECORDING_FRAMES, row, FRAME_KIND);
	bool is_start = kind == KIND_STANDARD && !strstr(text, "::");

	frame.my_code = NULL;
	enum standard_library library = standard_library(&frame);
	bool is_known = library != STANDARD_NONE && library != STANDARD_PACKAGE;

	if (treatment == AS_SOURCE)
		return is_known ? xstrdup(text) : path_of(&c->words, text);
	return name_of(&c->words, text, *text != '[' && (is_known || (is_start && !library)));
}

static char *text_of(struct anonymous_copy *c, enum recording_table_id id, size_t row,
		     unsigned column, const char *text)
{
	const struct recording *r = c->from;
	enum treatment treatment = treatment_of(id, column);

	switch (treatment) {
	case AS_IS:
		return xstrdup(text);
	case AS_VALUE:
		return value_of(c, r->text.data[recording_get(r, id, row, META_KEY)], text);
	case AS_OBJECT:
		return standard_is_library(text) ? xstrdup(text) : path_of(&c->words, text);
	case AS_BUILD_ID: {
		const char *path = r->text.data[recording_get(r, id, row, OBJECT_PATH)];

		return xstrdup(standard_is_library(path) ? text : "");
	}
	case AS_FUNCTION:
	case AS_SOURCE:
		return text_of_frame(c, row, treatment, text);
	case AS_WORDS:
		break;
	}
	return name_of(&c->words, text, false);
}

static void copy_rows(struct anonymous_copy *c, enum recording_table_id id)
{
	const struct recording_table_info *info = &recording_table_info[id];
	uint64_t row[RECORDING_MAX_COLUMNS];

	for (size_t i = 0; i < recording_rows(c->from, id); i++) {
		for (unsigned k = 0; k < info->columns; k++) {
			row[k] = recording_get(c->from, id, i, k);
			if (info->column[k].unit != UNIT_TEXT || !row[k])
				continue;
			_cleanup_free_ char *text =
				text_of(c, id, i, k, c->from->text.data[row[k]]);

			row[k] = recording_string(c->to, text);
		}
		recording_add(c->to, id, row);
	}
}

static int put_copy(FILE *file, const void *recording)
{
	return recording_write(file, recording);
}

int anonymize(const char *data, size_t size, const char *key, const char *path, char **why_out)
{
	struct anonymous_copy c = {.words = {.key = make_key(key)}};
	struct recording *from;
	int rc = recording_read_rows(data, size, &from, why_out);

	if (rc)
		return rc;
	c.from = from;
	c.to = recording_new();
	c.to->interval = from->interval;
	c.to->is_copy = from->is_copy;
	for (int id = 0; id < RECORDING_TABLES; id++)
		copy_rows(&c, (enum recording_table_id)id);
	rc = outfile_put(path, put_copy, c.to);
	recording_free(c.to);
	recording_free(from);
	dictionary_deinit(&c.words);
	return rc;
}
