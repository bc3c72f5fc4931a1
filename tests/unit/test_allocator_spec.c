/* Lists of allocators as --what-if takes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/types.h"
#include "report/whatif/allocator_spec.h"

static const struct {
	const char *text, *library, *setting; /* the first library; NULL: none */
} good[] = {
	{"glibc", "", NULL},
	{"glibc:arena_max=2", "", "GLIBC_TUNABLES=glibc.malloc.arena_max=2"},
	{"glibc:mmap_threshold=128K:trim_threshold=1M", "",
	 "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072:glibc.malloc.trim_threshold=1048576"},
	{"glibc:top_pad=3G", "", "GLIBC_TUNABLES=glibc.malloc.top_pad=3221225472"},
	{"jemalloc", "libjemalloc.so.2", NULL},
	{"jemalloc:narenas=1:background_thread=true", "libjemalloc.so.2",
	 "MALLOC_CONF=narenas:1,background_thread:true"},
	{"tcmalloc:release_rate=10.5", "libtcmalloc_minimal.so.4", "TCMALLOC_RELEASE_RATE=10.5"},
	{"mimalloc:purge_delay=0:arena_eager_commit=1", "libmimalloc.so.3",
	 "MIMALLOC_PURGE_DELAY=0\nMIMALLOC_ARENA_EAGER_COMMIT=1"},
	{"/opt/libown.so", "/opt/libown.so", NULL},
	{"./libown.so", "./libown.so", NULL},
};

static void lists_are_read(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		allocator_specs specs = {0};

		assert_null(allocator_specs_parse(good[i].text, &specs));
		assert_int_equal(specs.count, 1);
		assert_string_equal(specs.data[0].text, good[i].text);
		assert_string_equal(allocator_spec_library(&specs.data[0], 0), good[i].library);
		if (good[i].setting)
			assert_string_equal(specs.data[0].setting, good[i].setting);
		else
			assert_null(specs.data[0].setting);
		allocator_specs_deinit(&specs);
	}
}

static void several_keep_their_order(void **state)
{
	allocator_specs specs = {0};

	assert_null(allocator_specs_parse("mimalloc,glibc:arena_max=1,glibc,/a/b.so", &specs));
	assert_int_equal(specs.count, 4);
	assert_string_equal(specs.data[1].text, "glibc:arena_max=1");
	assert_string_equal(specs.data[3].library, "/a/b.so");
	allocator_specs_deinit(&specs);
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *text, *word;
	} bad[] = {
		{"", "missing"},
		{"glibc,", "missing"},
		{",glibc", "missing"},
		{"malloc", "none of glibc"},
		{"glib", "none of glibc"},
		{"glibcs", "none of glibc"},
		{"glibc:", "KEY=VALUE"},
		{"glibc:arena_max", "KEY=VALUE"},
		{"glibc:arena_max=", "KEY=VALUE"},
		{"glibc:arena_max=1=2", "KEY=VALUE"},
		{"glibc:=1", "KEY=VALUE"},
		{"jemalloc:narenas=1\nLD_PRELOAD=x", "KEY=VALUE"},
		{"glibc:arenas=1", "no tunable 'arenas'"},
		{"/a b/lib.so", "blanks or colons"},
		{"/a/lib.so:x=1", "blanks or colons"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		allocator_specs specs = {0};
		char *why = allocator_specs_parse(bad[i].text, &specs);

		assert_non_null(why);
		assert_non_null(strstr(why, bad[i].word));
		free(why);
		allocator_specs_deinit(&specs);
	}
}

static void number_of_allocators_is_bounded(void **state)
{
	allocator_specs specs = {0};
	char list[65 * 6] = "glibc";

	for (size_t i = 1; i < ALLOCATOR_SPECS; i++)
		strcat(list, ",glibc");
	assert_null(allocator_specs_parse(list, &specs));
	assert_int_equal(specs.count, ALLOCATOR_SPECS);
	char *why = allocator_specs_parse("glibc", &specs);

	assert_non_null(why);
	free(why);
	allocator_specs_deinit(&specs);
}

static void libraries_are_recognized(void **state)
{
	allocator_specs specs = {0};

	assert_null(allocator_specs_parse("glibc,jemalloc,tcmalloc,mimalloc,/a/libown.so", &specs));
	static const char *const path[] = {
		"/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/libjemalloc.so.2",
		"/usr/lib/libtcmalloc_minimal.so.4.5.10", "/usr/lib/libmimalloc.so.2.0",
		"/a/libown.so"};

	for (size_t i = 0; i < ARRAY_SIZE(path); i++)
		for (size_t k = 0; k < specs.count; k++)
			assert_int_equal(allocator_spec_is(&specs.data[k], path[i]), i == k);
	for (size_t k = 0; k < specs.count; k++) {
		char *what = allocator_spec_missing(&specs.data[k]);
		size_t libraries = 0;

		while (allocator_spec_library(&specs.data[k], libraries))
			libraries++;
		assert_in_range(libraries, 1, 4);
		assert_true(*what);
		free(what);
	}
	allocator_specs_deinit(&specs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_read),
		cmocka_unit_test(several_keep_their_order),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(number_of_allocators_is_bounded),
		cmocka_unit_test(libraries_are_recognized),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
