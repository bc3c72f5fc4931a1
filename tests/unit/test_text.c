/* Names made safe to print. */
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
	check_clean("a\u202eb", 5, "a\\u202Eb");
	check_clean("\u2066x\u2069", 7, "\\u2066x\\u2069");
	check_clean("\u200b\xc2\x85\ufeff\u061c", 10, "\\u200B\\u0085\\uFEFF\\u061C");
	check_clean("\U000e0041", 4, "\\U000E0041");
	check_clean("\u2027\u2010\u206f\u2070", 12, "\u2027\u2010\\u206F\u2070");
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

static void check_identifier(const char *name, const char *expected)
{
	_cleanup_free_ char *out = text_identifier(name);

	assert_string_equal(out, expected);
}

static void test_identifier(void **state)
{
	check_identifier("main", "main");
	check_identifier("", "");
	check_identifier("std::map<int, a::b>::operator[](int const&)", "operator[]");
	check_identifier("void std::vector<int>::_M_insert<int const&>(x::y, int)", "_M_insert");
	check_identifier("operator new(unsigned long)", "operator new");
	check_identifier("std::ostream& std::operator<< <char>(std::ostream&)", "operator<<");
	check_identifier("main::{lambda(int)#1}::operator()(int) const", "operator()");
	check_identifier("<a::B<T> as core::ops::Deref>::deref", "deref");
	check_identifier("a::main::{{closure}}", "main::{{closure}}");
	check_identifier("(anonymous namespace)::f(int)", "f");
	check_identifier("[libc.so.6]", "[libc.so.6]");
	check_identifier("(below main)", "(below main)");
	assert_string_equal(text_qualified("void std::f<int, a b>(int)"), "std::f<int, a b>(int)");
	assert_string_equal(text_qualified("std::pair<a, b> (anonymous namespace)::f(x)"), "(anonymous namespace)::f(x)");
	assert_string_equal(text_qualified("operator new(unsigned long)"), "operator new(unsigned long)");
	assert_string_equal(text_qualified("f(int) const"), "f(int) const");
}

static bool is_function(const char *name, const char *wanted)
{
	return text_is_function(name, wanted, strlen(wanted));
}

static void test_is_function(void **state)
{
	assert_true(is_function("char* fill<char>(int)", "char* fill<char>(int)"));
	assert_true(is_function("char* fill<char>(int)", "char* fill<char>"));
	assert_true(is_function("char* fill<char>(int)", "fill<char>(int)"));
	assert_true(is_function("char* fill<char>(int)", "fill<char>"));
	assert_false(is_function("char* fill<char>(int)", "fill"));
	assert_false(is_function("char* fill<char>(int)", "char*"));
	assert_true(is_function("a::(anonymous namespace)::f(int)", "a::(anonymous namespace)::f"));
	assert_false(is_function("a::(anonymous namespace)::f(int)", "f"));
	assert_true(is_function("operator<<(std::ostream&, X const&)", "operator<<"));
	assert_false(is_function("operator<<(std::ostream&, X const&)", "operator<"));
	assert_true(is_function("main", "main"));
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
	check_shorten(push, 9, "push_back");
	check_shorten(push, 7, "push_b…");
	check_shorten("(anonymous namespace)::f(int)", 28, "(anonymous namespace)::f(…)");
	check_shorten("operator<<(a, b) ...........", 20, "operator<<");
	check_shorten("s::operator()(int, long) const", 25, "s::operator()(…) const");
	check_shorten("f() [clone .part.0]", 10, "f");
	check_shorten("s<int>::operator std::map<a, b>() const", 35, "s<…>::operator std::map<…>() const");
	check_shorten("s<int>::operator std::map<a, b>() const", 32, "…::operator std::map<…>() const");
	check_shorten("s<int>::operator std::map<a, b>() const", 20, "operator std::map<a…");
	check_shorten("a::b::main::{{closure}}", 18, "main::{{closure}}");
	check_shorten("void std::__f<a::b>(c::d const&)", 5, "__f");
	check_shorten("x<y", 2, "x");
	check_shorten("(below main)", 8, "(below …");
}

static void check_shorten_site(const char *site, size_t max, const char *expected)
{
	_cleanup_free_ char *out = text_shorten_site(site, max);

	assert_string_equal(out, expected);
	assert_true(text_length(out) <= max);
}

static void test_shorten_site(void **state)
{
	static const char put[] = "Cache<std::string, long>::put(std::string const&, long) (c.cpp:12)";

	check_shorten_site(put, strlen(put), put);
	check_shorten_site(put, 50, "Cache<std::string, long>::put(…) (c.cpp:12)");
	check_shorten_site(put, 30, "Cache<…>::put(…) (c.cpp:12)");
	check_shorten_site("f(int) (in /usr/lib/libx.so)", 27, "f(…) (in /usr/lib/libx.so)");
	check_shorten_site("app::run(int, long) const", 22, "app::run(…) const");
	check_shorten_site("f(int) (a_very_long_name.cpp:12)", 8, "f(int)");
	check_shorten_site(put, 12, "c.cpp:12");
	check_shorten_site("f(int) (in /usr/lib/libx.so)", 20, "f(int)");
	check_shorten_site("???", 2, "?…");
	check_shorten_site("", 0, "");
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
		cmocka_unit_test(test_is_function),
		cmocka_unit_test(test_shorten),
		cmocka_unit_test(test_shorten_site),
		cmocka_unit_test(test_identifier),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
