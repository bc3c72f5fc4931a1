/* Placeholders in names of output files, and whether two names denote one file. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/files.h"
#include "session/out.h"

static char *directory;

static void check_insert(const char *path, const char *source, unsigned number, const char *expected)
{
	const struct file_name_parts parts = {.source = source, .pid = 42, .number = number};
	_cleanup_free_ char *found = file_name_insert(path, &parts);

	assert_string_equal(found, expected);
}

static void test_insert(void **state)
{
	check_insert("f.svg", NULL, 0, "f.42.svg");
	check_insert("f.svg", "mmap", 3, "f.mmap.42.3.svg");
	check_insert("a.b/f", "mmap", 0, "a.b/f.mmap.42");
	check_insert("a.b/.f", NULL, 0, "a.b/.f.42");
	check_insert(".f.x", NULL, 0, ".f.42.x");
	check_insert("massif.out.4711", "brk", 1, "massif.out.4711.brk.42.1");
	check_insert("f.7z", NULL, 0, "f.42.7z");
	check_insert("f.", NULL, 0, "f..42");
	check_insert("-", "mmap", 1, "-");
	check_insert("/dev/null", "mmap", 1, "/dev/null");
}

static void test_part(void **state)
{
	const struct file_name_parts parts = {.pid = 42, .part = 3};
	_cleanup_free_ char *found = file_name_insert("a/r.rec", &parts);

	assert_string_equal(found, "a/r.42.003.rec");
}

static void test_placeholders(void **state)
{
	assert_true(file_name_has("f.%p", "pn"));
	assert_true(file_name_has("%n", "pn"));
	assert_false(file_name_has("%n", "p"));
	assert_false(file_name_has("100%%p", "pn"));
	assert_true(file_name_has("100%%%p", "pn"));
	assert_false(file_name_has("%", "pn"));
	assert_false(file_name_has("plain", "pn"));
}

static void make(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void test_same_file(void **state)
{
	make("there");
	make("other");
	assert_int_equal(link("there", "hard"), 0);
	assert_int_equal(symlink("there", "soft"), 0);
	assert_int_equal(symlink("new", "dangling"), 0);
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_int_equal(mkdir("sub", 0700), 0);
	assert_int_equal(symlink("../new", "sub/dangling"), 0);
	_cleanup_free_ char *absolute = xasprintf("%s/new", directory);
	const struct {
		const char *a, *b;
		bool is_same;
	} cases[] = {
		{"there", "./there", true}, {"there", "hard", true}, {"there", "soft", true},
		{"there", "other", false}, {"there", "new", false}, {"new", "sub/../new", true},
		{"new", absolute, true}, {"new", "dangling", true}, {"new", "sub/dangling", true},
		{"new", "sub/new", false}, {"new", "newer", false}, {"no/x", "no/x", false},
		{"-", "-", false}, {"/dev/null", "/dev/null", false}, {"loop", "new", false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (same_file(cases[i].a, cases[i].b) != cases[i].is_same)
			fail_msg("%s and %s", cases[i].a, cases[i].b);
	}
	struct file_id path, descriptor;
	int fd = open("soft", O_RDONLY);

	file_id_init(&path, "hard");
	file_id_init_fd(&descriptor, fd);
	assert_true(file_id_is_same(&path, &descriptor));
	close(fd);
}

static int setup(void **state)
{
	static char name[] = "/tmp/ptmem-names-XXXXXX";

	directory = mkdtemp(name);
	return directory ? chdir(directory) : -1;
}

static int teardown(void **state)
{
	static const char *const names[] = {"there", "other", "hard", "soft", "dangling", "loop",
					    "sub/dangling"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unlink(names[i]);
	rmdir("sub");
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_insert),
		cmocka_unit_test(test_part),
		cmocka_unit_test(test_placeholders),
		cmocka_unit_test(test_same_file),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
