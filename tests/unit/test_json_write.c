/* What base/json_write.h writes, to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_write.h"

struct document {
	struct json_writer w;
	char *text;
	size_t size;
};

static void begin(struct document *d, struct json_writer w)
{
	d->w = w;
	d->w.out = open_memstream(&d->text, &d->size);
	assert_non_null(d->w.out);
}

static void expect(struct document *d, const char *text)
{
	fclose(d->w.out);
	assert_string_equal(d->text, text);
	free(d->text);
}

static void put_all(struct json_writer *w)
{
	json_write_open(w, NULL, '{');
	json_write_text(w, "text", "a");
	json_write_text(w, "none", NULL);
	json_write_open(json_write_line(w, 0), "list", '[');
	json_write_number(w, NULL, UINT64_MAX);
	json_write_format(w, NULL, "%d", -1);
	json_write_open(w, NULL, '[');
	json_write_close(w, 1);
	json_write_bool(w, NULL, false);
	json_write_close(w, 1);
	json_write_open(json_write_line(w, 2), "empty", '{');
	json_write_close(w, 1);
	json_write_record(w, "sum", {"bytes", 1}, {"blocks", 2});
	json_write_numbers(w, {"x", 3}, {"y", 4});
	json_write_name(w, "own");
	fputs("[0]", w->out);
	json_write_bool(w, "last", true);
	json_write_close(json_write_line(w, 1), 1);
}

static void test_compact(void **state)
{
	struct document d;

	begin(&d, (struct json_writer){0});
	put_all(&d.w);
	expect(&d, "{\"text\":\"a\",\"none\":null,\n"
		   "\"list\":[18446744073709551615,-1,[],false],\n"
		   "  \"empty\":{},\"sum\":{\"bytes\":1,\"blocks\":2},\"x\":3,\"y\":4,\"own\":[0],"
		   "\"last\":true\n }");
}

static void test_spaced(void **state)
{
	struct document d;

	begin(&d, (struct json_writer){.is_spaced = true});
	put_all(&d.w);
	expect(&d, "{\"text\": \"a\", \"none\": null,\n"
		   "\"list\": [18446744073709551615, -1, [], false],\n"
		   "  \"empty\": {}, \"sum\": {\"bytes\": 1, \"blocks\": 2}, \"x\": 3, \"y\": 4, "
		   "\"own\": [0], \"last\": true\n }");
}

/* The brackets that are closed are those that were opened, at all 64 levels. */
static void test_nested(void **state)
{
	struct document d;
	char text[129];

	begin(&d, (struct json_writer){0});
	for (unsigned i = 0; i < 64; i++) {
		text[i] = i % 3 == 1 ? '{' : '[';
		text[127 - i] = i % 3 == 1 ? '}' : ']';
		json_write_open(&d.w, NULL, text[i]);
	}
	text[128] = '\0';
	json_write_close(&d.w, 64);
	expect(&d, text);
}

static void test_escapes(void **state)
{
	static const char text[] = "\"\\</\t\x7f\xff\xc3\xa9\xe2\x80\xae";
	static const char *const expected[] = {
		[JSON_FOR_PAGES] = "\"\\\"\\\\\\u003c/??\xef\xbf\xbd\xc3\xa9\\\\u202E\"",
		[JSON_SHOWN] = "\"\\\"\\\\</??\xef\xbf\xbd\xc3\xa9\\\\u202E\"",
		[JSON_EXACT] = "\"\\\"\\\\</\\u0009\\u007f\\ufffd\xc3\xa9\\u202e\"",
	};

	for (int i = JSON_FOR_PAGES; i <= JSON_EXACT; i++) {
		struct document d;

		begin(&d, (struct json_writer){.escape = (enum json_escape)i});
		json_write_text(&d.w, NULL, text);
		expect(&d, expected[i]);
		begin(&d, (struct json_writer){.escape = (enum json_escape)i});
		json_write_text_n(&d.w, NULL, "ab\xc3\xa9", 3); /* ends within a character */
		expect(&d, i == JSON_EXACT ? "\"ab\\ufffd\"" : "\"ab\xef\xbf\xbd\"");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compact),
		cmocka_unit_test(test_spaced),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_escapes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
