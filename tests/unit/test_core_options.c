/* Valgrind's core options that have no field here; and the patterns of Valgrind's options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/shell_words.h"
#include "cli/command_line.h"

static void check(const char *option, enum core_answer want, const char *why_want)
{
	size_t length = strcspn(option, "=");
	const char *value = option[length] ? option + length + 1 : NULL, *why = NULL;

	assert_int_equal(core_option_check(option, length, value, &why), want);
	if (why_want)
		assert_string_equal(why, why_want);
}

static void test_core_options(void **state)
{
	static const char *const taken[] = {
		"tool=massif", "num-callers=1", "num-callers=500", "error-exitcode=9",
		"run-libc-freeres=no", "run-cxx-freeres=yes", "xml=no", "vgdb=full", "redzone-size=0", "track-fds=no",
		"vgdb-prefix=", "merge-recursive-frames=0", "max-stackframe=2000000",
		"redzone-size=", "max-stackframe=", "core-redzone-size=4", "enable-debuginfod=no", "modify-fds=no",
		"smc-check=all-non-file", "sim-hints=lax-ioctls,fuse-compatible", "vex-iropt-level=0", "wait-for-gdb=no",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		check(taken[i], CORE_TAKEN, NULL);
	check("tool=memcheck", CORE_REFUSED, "ptmem does what Massif does, and no other tool");
	check("tool=", CORE_REFUSED, NULL);
	check("xml=yes", CORE_REFUSED, "a heap profile has no errors to report");
	check("vgdb-error=0", CORE_REFUSED, NULL);
	check("merge-recursive-frames=3", CORE_REFUSED, NULL);
	check("xml-file=x", CORE_REFUSED, NULL);
	check("modify-fds=high", CORE_REFUSED, NULL);
	check("num-callers=0", CORE_BAD_VALUE, "a whole number from 1 to 500");
	check("num-callers=501", CORE_BAD_VALUE, "a whole number from 1 to 500");
	check("num-callers=5x", CORE_BAD_VALUE, "a whole number from 1 to 500");
	check("num-callers=", CORE_BAD_VALUE, "a whole number from 1 to 500");
	check("redzone-size=4097", CORE_BAD_VALUE, "a whole number from 0 to 4096");
	check("run-libc-freeres=ye", CORE_BAD_VALUE, "yes or no");
	check("run-libc-freeres", CORE_BAD_VALUE, "a value");
	check("smc-check=al", CORE_BAD_VALUE, "one of none,stack,all,all-non-file");
	check("smc-check=all,none", CORE_BAD_VALUE, NULL);
	check("smc-check", CORE_BAD_VALUE, "a value");
	check("sim-hints=lax-ioctls,x", CORE_BAD_VALUE, NULL);
	check("sim-hints=", CORE_BAD_VALUE, NULL);
	check("vex-iropt-level=3", CORE_BAD_VALUE, "a whole number from 0 to 2");
	check("help-dyn-options", CORE_REFUSED, "no option changes while the program runs");
	check("help-dyn-options=yes", CORE_BAD_VALUE, "no value");
	check("wait-for-gdb=yes", CORE_REFUSED, NULL);
	check("leak-check=full", CORE_UNKNOWN, NULL);
	check("too=massif", CORE_UNKNOWN, NULL);
	assert_true(core_option_is_letter('s'));
	assert_true(core_option_is_letter('d'));
	assert_false(core_option_is_letter('x'));
}

static void test_wildcards(void **state)
{
	static const struct {
		const char *list, *text;
		bool matches;
	} cases[] = {
		{"ls", "ls", true}, {"ls", "/bin/ls", false}, {"*/ls", "/bin/ls", true}, {"*", "", true},
		{"", "", false}, {"", "a", false}, {"?", "", false}, {"??", "ab", true}, {"a*b*c", "axxbyyc", true},
		{"a*b*c", "axxbyy", false}, {"*aab", "aaaab", true}, {"a,b*", "bcd", true}, {"a,,b", "", false},
		{"a,b", "a,b", false}, {"[a]", "a", false}, {"*libtc*.so*", "libtcmalloc.so.4", true}, {"a*", "ba", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(wildcard_list_matches(cases[i].list, cases[i].text), cases[i].matches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_core_options), cmocka_unit_test(test_wildcards)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
