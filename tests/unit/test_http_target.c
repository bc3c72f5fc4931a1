/* The targets of requests: their two forms, paths, numbers, and those that are not parsed at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "listen/http_access.h"

static void expect(const char *text, const char *host, const char *path)
{
	struct http_target t;

	assert_true(http_target_parse(text, &t));
	assert_string_equal(t.host, host);
	assert_string_equal(t.path, path);
}

static void test_forms(void **state)
{
	char text[400];
	struct http_target t;

	expect("/metrics", "", "/metrics");
	expect("/http://a/b", "", "/http://a/b");
	expect("http://localhost:80/metrics", "localhost:80", "/metrics");
	expect("HTTP://[::1]/", "[::1]", "/");
	expect("http://localhost", "localhost", "/");
	expect("https://localhost/", "", "https://localhost/");
	expect("", "", "");
	snprintf(text, sizeof(text), "http://%0*d/", HTTP_TARGET_HOST - 1, 0);
	assert_true(http_target_parse(text, &t));
	snprintf(text, sizeof(text), "http://%0*d/", HTTP_TARGET_HOST, 0);
	assert_false(http_target_parse(text, &t));
}

static void test_paths(void **state)
{
	assert_int_equal(http_target_find("/"), HTTP_REPORT);
	assert_int_equal(http_target_find("/debug/pprof/allocs"), HTTP_ALLOCS);
	assert_int_equal(http_target_find("/healthz/"), HTTP_PATHS);
	assert_int_equal(http_target_find(""), HTTP_PATHS);
}

static void test_numbers(void **state)
{
	uint32_t n = 1;

	assert_true(http_target_number(NULL, 9, &n) && n == 0);
	assert_true(http_target_number("3600", 3600, &n) && n == 3600);
	assert_false(http_target_number("3601", 3600, &n));
	assert_false(http_target_number("", 9, &n));
	assert_false(http_target_number("-1", 9, &n));
	assert_false(http_target_number("4294967296", INT32_MAX, &n));
	assert_false(http_target_number("%31", 9, &n));
}

static void test_sound(void **state)
{
	char text[100] = "/metrics?a";

	assert_true(http_target_is_sound("/"));
	for (int i = 1; i < 16; i++)
		strcat(text, "&a");
	assert_true(http_target_is_sound(text));
	assert_false(http_target_is_sound(strcat(text, "&a")));
	assert_false(http_target_is_sound("/%00"));
	assert_false(http_target_is_sound("/?pid=1%00"));
	assert_true(http_target_is_sound("/%20%01%"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
