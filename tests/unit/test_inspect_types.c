/* Names of types in the tables of --inspect. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "output/inspect_report.h"

#define LONG 20000u
#define LINE_MAX_BYTES 300u

/* A name of @size bytes: @first, then characters of two bytes each. */
static char *make_name(const char *first, size_t size)
{
	char *name = xcalloc(size + 1, 1);

	strcpy(name, first);
	for (size_t at = strlen(first); at + 2 <= size; at += 2)
		memcpy(name + at, "\u00e4", 2);
	return name;
}

static bool is_utf8(const char *text)
{
	for (const uint8_t *p = (const uint8_t *)text; *p; p++) {
		bool is_lead = *p == 0xc3, is_cut = is_lead && (p[1] & 0xc0) != 0x80;

		if (is_cut || (*p >= 0x80 && !is_lead))
			return false;
		p += is_lead;
	}
	return true;
}

static struct block_types make_types(const char *first)
{
	struct block_types types = {0};

	*vec_add(&types.list) = (struct block_type){
		.kind = KIND_CXX, .name = make_name(first, LONG), .blocks = 3, .bytes = 120,
		.smallest = 40, .largest = 40, .pages = 2};
	return types;
}

/* Both parities, so that the limit is once within a character. */
static void expect_short(const char *first)
{
	struct block_types types = make_types(first);
	struct block_holders holders = {0};
	char name[INSPECT_TYPE_SIZE], *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	inspect_type_text(types.list.data, name);
	assert_true(strlen(name) < sizeof(name) && is_utf8(name));
	assert_string_equal(name + strlen(name) - 3, "...");
	inspect_types_print(file, &types, &holders, 5);
	inspect_types_print_pins(file, &types, 5);
	fclose(file);
	assert_true(is_utf8(text));
	assert_non_null(strstr(text, "..., 40 bytes each\n"));
	assert_non_null(strstr(text, "... (3 of them in all)\n"));
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) < LINE_MAX_BYTES);
	free(text);
	block_types_deinit(&types);
}

static void long_names(void **state)
{
	expect_short("a");
	expect_short("ab");
}

/* JSON has the whole name. */
static void whole_name(void **state)
{
	struct block_types types = make_types("a");
	struct block_holders holders = {0};
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	inspect_types_write_json(&(struct json_writer){.out = file}, &(struct inspect_title){0}, &types, &holders);
	fclose(file);
	assert_non_null(strstr(text, types.list.data[0].name));
	free(text);
	block_types_deinit(&types);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_names),
		cmocka_unit_test(whole_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
