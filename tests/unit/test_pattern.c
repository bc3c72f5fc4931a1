/* Names of output files; the errors are those of Valgrind 3.19. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "output/outfile.h"

static uint32_t sequence;

static void check_expands(const char *pattern, const char *dir, const char *expected)
{
	struct pattern_values values = {.pid = 4711, .sequence = &sequence, .dir = dir};
	_cleanup_free_ char *path = NULL;
	char *why = NULL;

	assert_int_equal(pattern_expand(pattern, &values, &path, &why), 0);
	assert_null(why);
	assert_string_equal(path, expected);
}

static void check_fails(const char *pattern, const char *expected)
{
	struct pattern_values values = {.pid = 4711, .sequence = &sequence};
	_cleanup_free_ char *why = NULL;
	char *path = NULL;
	uint32_t before = sequence;

	assert_int_equal(pattern_expand(pattern, &values, &path, &why), -EINVAL);
	assert_string_equal(why, expected);
	assert_null(path);
	assert_int_equal(sequence, before);
}

static int setup(void **state)
{
	sequence = 0;
	setenv("PATTERN_SET", "a%pb", 1);
	setenv("PATTERN_EMPTY", "", 1);
	unsetenv("PATTERN_ABSENT");
	return 0;
}

static void test_placeholders(void **state)
{
	check_expands("massif.out.%p", NULL, "massif.out.4711");
	check_expands("%p%p~", NULL, "47114711~");
	check_expands("100%%p", NULL, "100%p");
	check_expands("%%~x", NULL, "%~x");
	check_expands("m.%q{PATTERN_SET}.c", NULL, "m.a%pb.c");
	check_expands("m.%q{PATTERN_EMPTY}.e", NULL, "m..e");
}

static void test_sequence(void **state)
{
	check_expands("m", NULL, "m");
	check_expands("m.%n", NULL, "m.1");
	check_expands("m.%n.%n", NULL, "m.2.3");
	check_expands("m.%p", NULL, "m.4711");
	check_expands("%n", NULL, "4");
}

/* Of a part; the sequence is not used up. */
static void test_part(void **state)
{
	struct pattern_values values = {.pid = 1, .sequence = &sequence, .part = 7};
	uint32_t before = sequence;
	char *path, *why;

	assert_int_equal(pattern_expand("r.%n.%p", &values, &path, &why), 0);
	assert_string_equal(path, "r.007.1");
	free(path);
	values.part = 1234;
	assert_int_equal(pattern_expand("%n", &values, &path, &why), 0);
	assert_string_equal(path, "1234");
	free(path);
	assert_int_equal(sequence, before);
}

static void test_folder(void **state)
{
	check_expands("m.%p", "/start/up", "/start/up/m.4711");
	check_expands("sub/m", "/", "/sub/m");
	check_expands("../m", "/a/", "/a/../m");
	check_expands("/abs/m", "/start", "/abs/m");
	check_expands("-", "/start", "-");
	check_expands("-x", "/start", "/start/-x");
	setenv("PATTERN_SET", "/from/env", 1);
	check_expands("%q{PATTERN_SET}/m", "/start", "/from/env/m");
}

static void test_errors(void **state)
{
	check_fails("", "No filename given");
	check_fails("~/m", "Filename begins with '~'\n"
			   "You probably expected the shell to expand the '~', but it\n"
			   "didn't.  The rules for '~'-expansion vary from shell to shell.\n"
			   "You might have more luck using $HOME instead.");
	check_fails("m.%q", "Expected '{' after '%q'");
	check_fails("m.%qx", "Expected '{' after '%q'");
	check_fails("m.%q{PATTERN_SET", "Missing '}' in %q specifier");
	check_fails("m.%q{PATTERN_ABSENT}", "Environment variable 'PATTERN_ABSENT' is not set");
	check_fails("m.%q{}", "Environment variable '' is not set");
	check_fails("m.%q{A B}", "Environment variable 'A B' is not set");
	check_fails("m.%x", "Expected 'p' or 'n' or 'q' or '%' after '%'");
	check_fails("m.%", "Expected 'p' or 'n' or 'q' or '%' after '%'");
	check_fails("%n.%x", "Expected 'p' or 'n' or 'q' or '%' after '%'");
	check_fails("%q{PATTERN_EMPTY}", "No filename given");
}

#define T(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_placeholders), T(test_sequence), T(test_part), T(test_folder), T(test_errors),
	};

	return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}
