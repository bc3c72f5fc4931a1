/*
 * Names made fit to be shown.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"

static void check_clean(const char *s, size_t size, const char *expected)
{
	_cleanup_free_ char *out = text_clean(s, size);

	assert_string_equal(out, expected);
}

static void test_clean(void **state)
{
	check_clean("", 0, "");
	check_clean("plain", 5, "plain");
	check_clean("a\tb\nc\x7f", 6, "a?b?c?");
	check_clean("a\0b", 3, "a?b");
	check_clean("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "é€😀");
	check_clean("\xc3", 1, "\xef\xbf\xbd");
	check_clean("\xc0\xaf", 2, "\xef\xbf\xbd\xef\xbf\xbd");
	check_clean("\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	check_clean("\xf4\x90\x80\x80", 4, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	check_clean("\xef\xbf\xbf", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	check_clean("x\xff" "y", 3, "x\xef\xbf\xbd" "y");
}

static void check_shorten(const char *name, size_t max, const char *expected)
{
	_cleanup_free_ char *out = text_shorten(name, max);

	assert_string_equal(out, expected);
	assert_true(text_length(out) <= max);
}

static void test_shorten(void **state)
{
	static const char push[] = "std::vector<int, std::allocator<int> >::push_back(int const&)";

	check_shorten("main", 4, "main");
	check_shorten("main", 3, "ma…");
	check_shorten("main", 1, "…");
	check_shorten("main", 0, "");
	check_shorten("é€x", 3, "é€x");
	check_shorten("é€xy", 3, "é€…");
	check_shorten(push, strlen(push), push);
	check_shorten(push, strlen(push) - 1, "std::vector<int, std::allocator<int> >::push_back(…)");
	check_shorten(push, 40, "std::vector<…>::push_back(…)");
	check_shorten(push, 20, "…::push_back(…)");
	check_shorten(push, 9, "…::push_…");
	check_shorten("(anonymous namespace)::f(int)", 28, "(anonymous namespace)::f(…)");
	check_shorten("operator<<(a, b) ...........", 20, "operator<<(…) .....…");
	check_shorten("s::operator()(int, long) const", 25, "s::operator()(…) const");
	check_shorten("f() [clone .part.0]", 10, "f() [clon…");
	check_shorten("x<y", 2, "x…");
}

static void test_cut(void **state)
{
	_cleanup_free_ char *whole = text_cut("f(int)", 6), *cut = text_cut("f(int)", 5);

	assert_string_equal(whole, "f(int)");
	assert_string_equal(cut, "f(in…");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_shorten),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
