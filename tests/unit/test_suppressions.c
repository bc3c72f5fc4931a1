/* Suppression files: what they match, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "output/leaks.h"

static struct suppressions *read_text(const char *text)
{
	char path[] = "/tmp/ptmem-test-XXXXXX";
	int fd = mkstemp(path);
	const char *paths[] = {path};

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	struct suppressions *s = suppressions_read(paths, 1);
	unlink(path);
	return s;
}

/* The stack is "inner < middle < middle < main" in program /bin/app; middle is C++. */
static const struct suppression_frame stack[] = {
	{.name = "inner", .raw = "inner", .object = "/lib/libx.so", .file = "in.c", .line = 7},
	{.name = "ns::middle(int)", .raw = "_ZN2ns6middleEi", .object = "/bin/app"},
	{.name = "ns::middle(int)", .raw = "_ZN2ns6middleEi", .object = "/bin/app"},
	{.name = "main", .raw = "main", .object = "/bin/app", .file = "app.c", .line = 12},
};

/* Whether an entry with @lines matches leaks of @kind with the stack. */
static bool matches_kind(const char *lines, unsigned kind)
{
	char text[1000];
	uint32_t index = 99;

	snprintf(text, sizeof(text), "{\n  a name\n  Memcheck:Leak\n%s\n}\n", lines);
	struct suppressions *s = read_text(text);
	assert_non_null(s);
	bool is_match = suppressions_match(s, kind, stack, 4, &index);
	assert_int_equal(index, is_match ? 0 : 99);
	if (is_match)
		assert_memory_equal(suppressions_name(s, index), "a name (/tmp/", 13);
	suppressions_free(s);
	return is_match;
}

static bool matches(const char *lines)
{
	return matches_kind(lines, 0);
}

static void test_frames(void **state)
{
	(void)state;
	assert_true(matches("fun:inner"));
	assert_true(matches("fun:inner\nfun:_ZN2ns6middleEi"));
	assert_true(matches("fun:inner\nfun:ns::middle(int)\nfun:_ZN*middle*\nfun:main"));
	assert_false(matches("fun:inner\nfun:main"));
	assert_false(matches("fun:middle"));
	assert_false(matches("fun:inner\nfun:*\nfun:*\nfun:main\nfun:*"));
	assert_true(matches("obj:*/libx.so\nobj:/bin/app"));
	assert_false(matches("obj:libx.so"));
	assert_true(matches("fun:inne?"));
}

/* The base name of the source and the line. */
static void test_sources(void **state)
{
	(void)state;
	assert_true(matches("src:in.c:7"));
	assert_true(matches("src:i?.c"));
	assert_true(matches("src:*:07\n...\nsrc:app.c:12"));
	assert_true(matches("src:in.c:*"));
	assert_false(matches("src:in.c:8"));
	assert_false(matches("src:dir/in.c:7"));
	assert_false(matches("...\nsrc:app.c:7"));
	assert_true(matches("fun:inner\nsrc:*\nsrc:?" "?" "?"));
}

static void test_any_frames(void **state)
{
	(void)state;
	assert_true(matches("..."));
	assert_true(matches("...\nfun:main"));
	assert_true(matches("fun:inner\n...\nfun:main\n..."));
	assert_true(matches("...\nfun:*middle*\nfun:main"));
	assert_true(matches("...\n...\nfun:inner"));
	assert_false(matches("...\nfun:main\nfun:main"));
	assert_false(matches("...\nfun:*middle*\nfun:*middle*\nfun:*middle*"));
}

/* Valgrind's stacks begin with the function that allocates. */
static void test_allocation(void **state)
{
	(void)state;
	assert_true(matches("fun:malloc\nfun:inner"));
	assert_true(matches("fun:*alloc\nfun:inner\n...\nfun:main"));
	assert_true(matches("fun:_Znw*\nfun:inner"));
	assert_true(matches("obj:*/vgpreload_memcheck-*.so\nfun:inner"));
	assert_true(matches("fun:malloc"));
	assert_false(matches("fun:free\nfun:inner"));
	assert_false(matches("fun:malloc\nfun:malloc\nfun:inner"));
	assert_false(matches("fun:malloc\nfun:main"));
	/* what is written for a leak in one function does not match those in others */
	assert_true(matches("fun:*\nfun:inner"));
	assert_true(matches("fun:*"));
	assert_false(matches("fun:*\nfun:_ZN*middle*"));
	assert_false(matches("fun:*\nfun:main"));
}

static void test_kinds(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < 4; kind++) {
		assert_true(matches_kind("fun:inner", kind));
		assert_true(matches_kind("match-leak-kinds: all\nfun:inner", kind));
		assert_false(matches_kind("match-leak-kinds: none\nfun:inner", kind));
		assert_int_equal(matches_kind("match-leak-kinds:indirect, reachable\nfun:inner", kind), kind % 2);
	}
}

static void add_text(void *ctx, const char *text)
{
	strcat(ctx, text);
}

/* The name of start-up code is the one that Valgrind has in all programs. */
static void test_below_main(void **state)
{
	static const struct suppression_frame below[] = {
		{.name = "inner", .raw = "inner", .object = "/bin/app"},
		{.name = "(below main)", .raw = "__libc_start_call_main", .object = "/lib/libc.so"},
	};
	char text[1000] = "";
	uint32_t index;

	(void)state;
	suppressions_print(0, below, 2, add_text, text);
	assert_non_null(strstr(text, "fun:inner   fun:(below main)}"));
	struct suppressions *s =
		read_text("{\nx\nMemcheck:Leak\nfun:inner\nfun:__libc_start_call_main\n}\n");
	assert_true(suppressions_match(s, 0, below, 2, &index));
	suppressions_free(s);
}

static void test_errors(void **state)
{
	static const char *const bad[] = {
		"x", "{", "{\nname\n", "{\nname\nMemcheck\n}", "{\nname\nMemcheck:\n}", "{\nname\n:Leak\n}",
		"{\nname\nMemcheck:Leak\n}", "{\nname\nMemcheck:Leak\nfun:\n}", "{\nname\nMemcheck:Leak\nfun:x\n",
		"{\nname\nMemcheck:Leak\nmatch-leak-kinds: some\nfun:x\n}", "{\nname\nMemcheck:Leak\nfun:x\n}\n}",
		"{\nname\nHelgrind:Race\nfun:x\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_null(read_text(bad[i]));
	assert_null(suppressions_read((const char *[]){"/dev/zero"}, 1));
	static const char *const none[] = {
		"", "# nothing\n\n", "{\nname\nMemcheck:Param\nwrite(buf)\nfun:*\n}\n", "{\nname\nOther,Memcheck:Cond\n...\n}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		struct suppressions *s = read_text(none[i]);
		uint32_t index;

		assert_non_null(s);
		assert_false(suppressions_match(s, 0, stack, 4, &index));
		suppressions_free(s);
	}
}

static void add_line(void *text, const char *line)
{
	strcat(strcat(text, line), "\n");
}

/* What is printed matches; arguments of templates are left open. */
static void test_printed(void **state)
{
	static const struct suppression_frame frames[] = {
		{.name = "v<int>::get()", .raw = "get<c<d> >", .object = "/bin/app"},
		{.name = "loop(int)", .raw = "_Z4loopi", .object = "/bin/app", .is_repeated = true},
		{.object = "/lib/libx.so"},
		{0},
	};
	char text[1000] = "";
	uint32_t index;

	(void)state;
	suppressions_print(2, frames, 4, add_line, text);
	assert_string_equal(text, "{\n   <insert_a_suppression_name_here>\n   Memcheck:Leak\n"
				  "   match-leak-kinds: possible\n   fun:*\n   fun:get<*\n   fun:_Z4loopi\n   ...\n"
				  "   obj:/lib/libx.so\n   obj:*\n}\n");
	struct suppressions *s = read_text(text);
	assert_true(suppressions_match(s, 2, frames, 4, &index));
	assert_false(suppressions_match(s, 0, frames, 4, &index));
	suppressions_free(s);
}

/* Lists of leaks, and messages of ptmem's and Valgrind's, are files of suppressions as they are. */
static void test_reports(void **state)
{
	static const char *const good[] = {
		"leaks of process 7, ./a: 1 site\n  4 bytes in 1 block definitely lost\n    at 0x5: inner (a.c:2)\n"
		"{\n   a name\n   Memcheck:Leak\n   fun:*\n   fun:inner\n}\n  definitely lost: 4 bytes in 1 block\n",
		"ptmem: process 7, ./a\nptmem: {\nptmem:    a name\nptmem:    Memcheck:Leak\nptmem:    fun:inner\n"
		"ptmem: }\nptmem:   definitely lost: 4 bytes\n",
		"==7== Memcheck, a memory error detector\n--7-- Reading\n==7== \n{\na name\nMemcheck:Leak\nfun:inner\n}\n==7== x\n",
	};
	static const char *const bad[] = {
		"ptmem: x\nhello\n{\na name\nMemcheck:Leak\nfun:inner\n}\n",    /* the program's line, not ptmem's */
		"leaks of process 7\n(\na name\nMemcheck:Leak\nfun:inner\n}\n", /* an entry with a typing error */
		"==x== y\n", "==7= y\n", "-", "=",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct suppressions *s = read_text(good[i]);
		uint32_t index;

		assert_non_null(s);
		assert_true(suppressions_match(s, 0, stack, 4, &index));
		assert_memory_equal(suppressions_name(s, index), "a name (", 8);
		suppressions_free(s);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_null(read_text(bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_any_frames),
		cmocka_unit_test(test_allocation),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_below_main),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_printed),
		cmocka_unit_test(test_reports),
	};

	log_set_level(LOG_RESULT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
