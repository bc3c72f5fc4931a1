/* Tables of functions of Go programs in their four formats, and what is wrong in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/go_table.h"

enum format { F_1_2, F_1_16, F_1_18, F_1_20, FORMATS };

/* A table with main.main at 0x401000, runtime.goexit at 0x401040; the end is 0x401080. */
struct table {
	uint8_t data[1024];
	size_t size;
	enum format format;
	size_t entry[2]; /* where the descriptions are */
};

#define TEXT 0x401000u

static void put(struct table *t, size_t at, uint64_t value, size_t size)
{
	memcpy(t->data + at, &value, size);
	t->size = at + size > t->size ? at + size : t->size;
}

static void put_text(struct table *t, size_t at, const char *text)
{
	memcpy(t->data + at, text, strlen(text) + 1);
	t->size = at + strlen(text) + 1 > t->size ? at + strlen(text) + 1 : t->size;
}

/*
 * Offsets of the parts. The values: 24 bytes for the frame up to +0x20, then 0; file 0; line 7 up to
 * +0x10, then 9.
 */
enum { NAMES = 128, UNITS = 192, FILES = 224, VALUES = 320, FUNCTIONS = 400 };

static void put_parts(struct table *t)
{
	static const uint8_t frames[] = {50, 0x20, 47, 0x20, 0}, files[] = {2, 0x40, 0},
			     lines[] = {16, 0x10, 4, 0x30, 0};

	put_text(t, NAMES, "main.main");
	put_text(t, NAMES + 16, "runtime.goexit");
	put(t, UNITS, 0, 4);
	put_text(t, FILES, "/src/main.go");
	memcpy(t->data + VALUES + 1, frames, sizeof(frames));
	memcpy(t->data + VALUES + 16, files, sizeof(files));
	memcpy(t->data + VALUES + 32, lines, sizeof(lines));
}

static void put_function(struct table *t, size_t at, uint64_t entry, uint32_t name, uint8_t flags)
{
	size_t base = t->format == F_1_2 ? VALUES : 0, n = t->format >= F_1_18 ? 4 : 8;
	uint32_t words[] = {name + (t->format == F_1_2 ? NAMES : 0), 0, 0, (uint32_t)base + 1,
			    (uint32_t)base + 16, (uint32_t)base + 32, 0, 0};

	put(t, at, entry - (t->format >= F_1_18 ? TEXT : 0), n);
	memcpy(t->data + at + n, words, sizeof(words));
	at += n + sizeof(words);
	put(t, at, 0, 8);
	if (t->format != F_1_2)
		put(t, at + (t->format == F_1_20 ? 4 : 0) + 1, flags, 1);
}

static struct table make(enum format format)
{
	static const uint32_t magic[] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};
	struct table t = {.format = format};
	size_t list = format == F_1_2 ? 16 : FUNCTIONS, each = format >= F_1_18 ? 4 : 8, n = 8;
	size_t base = format == F_1_2 ? 0 : FUNCTIONS;
	const uint64_t parts[] = {NAMES, UNITS, FILES, VALUES, FUNCTIONS};

	put(&t, 0, magic[format], 4);
	t.data[6] = 1;
	t.data[7] = 8;
	put(&t, n, 2, 8);
	n += 16;
	if (format >= F_1_18)
		put(&t, n, TEXT, 8), n += 8;
	for (size_t i = 0; i < 5 && format != F_1_2; i++)
		put(&t, n + 8 * i, parts[i], 8);
	put_parts(&t);
	t.entry[0] = 512;
	t.entry[1] = 640;
	for (size_t i = 0; i < 3; i++) {
		put(&t, list + 2 * i * each, format >= F_1_18 ? 0x40 * i : TEXT + 0x40 * i, each);
		if (i < 2)
			put(&t, list + (2 * i + 1) * each, t.entry[i] - base, each);
	}
	if (format == F_1_2) { /* where the list of files is, whose names are offsets */
		put(&t, list + 5 * each, 80, 4);
		put(&t, 80, FILES, 4);
	}
	put_function(&t, t.entry[0], TEXT, 0, 0);
	put_function(&t, t.entry[1], TEXT + 0x40, 16, 1);
	return t;
}

static struct go_table *parse(const struct table *t)
{
	/* exactly as large: a sanitizer sees reads beyond it */
	return go_table_parse(&(struct go_bytes){t->data, t->size, 0x500000}, 0);
}

static void test_formats(void **state)
{
	for (enum format format = 0; format < FORMATS; format++) {
		struct table t = make(format);
		struct go_table *go = parse(&t);
		struct go_function f;
		const char *file;
		uint32_t n;

		assert_non_null(go);
		assert_false(go_table_find(go, TEXT - 1, &f));
		assert_false(go_table_find(go, TEXT + 0x80, &f));
		assert_true(go_table_find(go, TEXT + 0x3f, &f));
		assert_string_equal(f.name, "main.main");
		assert_int_equal(f.entry, TEXT);
		assert_int_equal(f.end, TEXT + 0x40);
		assert_false(f.is_outermost);
		assert_true(go_table_frame(go, &f, TEXT + 0x1f, &n));
		assert_int_equal(n, 24);
		assert_true(go_table_frame(go, &f, TEXT + 0x20, &n));
		assert_int_equal(n, 0);
		assert_true(go_table_line(go, &f, TEXT + 0xf, &file, &n));
		assert_string_equal(file, "/src/main.go");
		assert_int_equal(n, 7);
		assert_true(go_table_line(go, &f, TEXT + 0x10, &file, &n));
		assert_int_equal(n, 9);
		assert_true(go_table_find_name(go, "runtime.goexit", &f));
		assert_true(f.is_outermost);
		assert_false(go_table_find_name(go, "main.none", &f));
		free(go);
	}
}

/* A function that sets its stack pointer has no frame that can be left; calls into Go have one. */
static void test_flags(void **state)
{
	struct table t = make(F_1_20);
	struct go_function f;
	uint32_t n;

	put_function(&t, t.entry[0], TEXT, 0, 2);
	struct go_table *go = parse(&t);

	assert_true(go_table_find(go, TEXT, &f));
	assert_true(f.sets_sp);
	assert_false(go_table_frame(go, &f, TEXT + 1, &n));
	free(go);
	put_text(&t, NAMES + 32, "runtime.cgocallback");
	put_function(&t, t.entry[0], TEXT, 32, 2);
	go = parse(&t);
	assert_true(go_table_find(go, TEXT, &f));
	assert_false(f.sets_sp);
	free(go);
}

/* The word before a return address that is the entry of systemstack_switch is its own. */
static void test_caller(void **state)
{
	struct table t = make(F_1_18);
	struct go_function f;

	put_text(&t, NAMES + 16, "runtime.systemstack_switch");
	struct go_table *go = parse(&t);

	assert_true(go_table_find_caller(go, TEXT + 0x3f, &f));
	assert_int_equal(f.entry, TEXT + 0x40);
	assert_true(go_table_find_caller(go, TEXT + 0x3e, &f));
	assert_int_equal(f.entry, TEXT);
	free(go);
}

static void look_everywhere(const struct go_table *go)
{
	struct go_function f;
	const char *text;
	uint32_t n;
	uint64_t at;

	for (uint64_t vaddr = TEXT - 8; vaddr < TEXT + 0x90; vaddr += 4) {
		if (!go_table_find_caller(go, vaddr, &f))
			continue;
		at = vaddr;
		go_table_frame(go, &f, vaddr, &n);
		go_table_line(go, &f, vaddr, &text, &n);
		go_table_inlined(go, &f, &at, &text);
	}
}

/* Each byte changed, and each length: nothing is read beyond the end (asan), nothing fails. */
static void test_damaged(void **state)
{
	for (enum format format = 0; format < FORMATS; format++) {
		struct table good = make(format);

		for (size_t i = 0; i < good.size * 3; i++) {
			struct table t = good;
			size_t size = i < good.size ? i : good.size;
			uint8_t *copy = malloc(size + 1);

			if (i >= good.size)
				t.data[i % good.size] = i % 2 ? 0xff : (uint8_t)(i * 37);
			memcpy(copy, t.data, size);
			struct go_table *go =
				go_table_parse(&(struct go_bytes){copy, size, 0}, TEXT);

			if (go)
				look_everywhere(go);
			free(go);
			free(copy);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats), cmocka_unit_test(test_flags),
		cmocka_unit_test(test_caller), cmocka_unit_test(test_damaged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
