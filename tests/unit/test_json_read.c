/* Correct documents and broken ones: each prefix of a correct one, and changed bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "report/input.h"

#define MUTATIONS 20000u

static struct json *read_text(const char *text)
{
	return json_read(text, strlen(text));
}

static void test_values(void **state)
{
	struct json *j = read_text(" { \"a\" : [1, -2.5e1, true, null, \"x\\n\\u00e9\\\"\"], \"b\":{},"
				   "\"c\": \"\", \"d\": 18014398509481984 } ");
	const struct json *a;

	(void)state;
	assert_non_null(j);
	a = json_member(j, "a");
	assert_int_equal(a->count, 5);
	assert_true(a->part[0].number == 1 && a->part[1].number == -25 && a->part[2].number == 1);
	assert_int_equal(a->part[3].kind, JSON_NULL);
	assert_string_equal(a->part[4].text, "x\n\xc3\xa9\"");
	assert_int_equal(json_member(j, "b")->kind, JSON_OBJECT);
	assert_string_equal(json_text(j, "c"), "");
	assert_true(json_number(j, "d") == 18014398509481984.0);
	assert_null(json_member(j, "e"));
	assert_true(json_number(j, "a") == 0);
	assert_string_equal(json_text(NULL, "a"), "");
	json_free(j);
}

static void test_refused(void **state)
{
	static const char *const texts[] = {
		"", "{", "[1,]", "{\"a\"}", "{\"a\":1,}", "[1] 2", "\"a", "\"\\x\"", "\"\\u12\"",
		"nul", "tru", "+", "1e", "{1:2}", "\"\n\"", "]", "[1 2]",
	};
	char deep[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (read_text(texts[i]))
			fail_msg("'%s' was taken", texts[i]);
	memset(deep, '[', sizeof(deep));
	assert_null(json_read(deep, sizeof(deep)));
}

#define DOCUMENT                                                                           \
	"{\n  \"format\": \"ptmem-inspect\", \"pid\": 7, \"command\": \"a b\",\n"          \
	"\"rows\": {\"live\": {\"resident\": 4096, \"swapped\": 0}},\n"                    \
	"\"arenas\": [{\"address\": \"0x7f00\", \"main\": true, \"live_bytes\": 5,\n"      \
	"\"memory\": {\"resident\": 8192}}, {\"address\": \"0x8000\", \"main\": false}],\n" \
	"\"map\": {\"pages_per_cell\": 2, \"heaps\": [\n"                                  \
	"{\"arena\": 0, \"start\": \"0x10000\", \"cells\": [[2,5,1],[0,0,0]]},\n"          \
	"{\"arena\": 9, \"start\": \"0x20000\", \"cells\": [[2,5,1]]}]}}\n"

static int parse(const char *text, size_t size, struct inspect_file **out)
{
	char *copy = malloc(size + 1), *why = NULL;

	memcpy(copy, text, size);
	int rc = inspect_file_parse(copy, size, out, &why);

	assert_true((rc != 0) == (why != NULL));
	free(why);
	return rc;
}

static void test_inspect_file(void **state)
{
	struct inspect_file *f;

	(void)state;
	assert_true(inspect_file_is(DOCUMENT, strlen(DOCUMENT)));
	assert_false(inspect_file_is("{\"a\": 1}", 8));
	assert_int_equal(parse(DOCUMENT, strlen(DOCUMENT), &f), 0);
	assert_string_equal(f->title, "process 7, a b");
	assert_true(f->row[ROW_LIVE] == 4096 && f->sum == 4096);
	assert_int_equal(f->pages_per_cell, 2);
	assert_int_equal(f->arenas.count, 2);
	assert_string_equal(f->arenas.data[0].name, "main arena");
	assert_int_equal(f->arenas.data[0].cells.count, 2);
	assert_int_equal(f->arenas.data[0].cells.data[1].start, 0x12000);
	assert_true(f->arenas.data[0].cells.data[0].live == 5);
	inspect_file_free(f);
}

static void test_mutations(void **state)
{
	char text[] = DOCUMENT;
	size_t size = strlen(text);
	struct inspect_file *f;

	(void)state;
	for (size_t i = 0; i < size - 2; i++)
		assert_int_not_equal(parse(text, i, &f), 0);
	srand(1);
	for (unsigned i = 0; i < MUTATIONS; i++) {
		size_t at = (size_t)rand() % size;
		char old = text[at];

		text[at] = (char)rand();
		if (parse(text, size, &f) == 0)
			inspect_file_free(f);
		if (i % 4)
			text[at] = old;
		if (i % 64 == 0)
			memcpy(text, DOCUMENT, size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_inspect_file), cmocka_unit_test(test_mutations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
