/* Splitting into words: blanks, quotes, backslashes, comments, and unterminated quotes. */
#include "base/shell_words.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_split(void **state)
{
	static const struct {
		const char *text, *words; /* expected words with '|' after each */
	} cases[] = {
		{"", ""}, {" \t\n", ""}, {"a", "a|"}, {" a  b\n", "a|b|"}, {"'a b' c", "a b|c|"},
		{"a'b c'd", "ab cd|"}, {"\"a 'b'\"", "a 'b'|"}, {"\"a\\\"b\"", "a\"b|"}, {"\"a\\nb\"", "a\\nb|"},
		{"a\\ b", "a b|"}, {"'a\\'", "a\\|"}, {"''", "|"}, {"a # b c\nd", "a|d|"}, {"a#b", "a#b|"},
		{"# only", ""}, {"--x='$HOME *'", "--x=$HOME *|"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct words w = {0};
		char joined[256] = "";
		assert_int_equal(shell_words_split(cases[i].text, &w), 0);
		for (size_t k = 0; k < w.count; k++) {
			strcat(joined, w.data[k]);
			strcat(joined, "|");
		}
		assert_string_equal(joined, cases[i].words);
		shell_words_deinit(&w);
	}
}

static void test_unfinished(void **state)
{
	static const char *const bad[] = {"'", "a 'b", "\"a", "a \\", "\"a\\\""};
	struct words w = {0};
	assert_int_equal(shell_words_split("kept", &w), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(shell_words_split(bad[i], &w), -EINVAL);
		assert_int_equal(w.count, 1);
		assert_string_equal(w.data[0], "kept");
	}
	shell_words_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_unfinished),
	};
	return cmocka_run_group_tests_name("words", tests, NULL, NULL);
}
