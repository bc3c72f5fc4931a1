/* Human-readable numbers, and the heuristic for functions that allocate for their callers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/amount.h"
#include "symbols/wrapper.h"

static void test_commas(void **state)
{
	static const struct { uint64_t n; const char *text; } rows[] = {
		{0, "0"}, {999, "999"}, {1000, "1,000"}, {1234567, "1,234,567"},
		{UINT64_MAX, "18,446,744,073,709,551,615"},
	};
	char out[AMOUNT_SIZE];
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(amount_commas(rows[i].n, out), rows[i].text);
}

static void test_bytes(void **state)
{
	static const struct { double bytes; const char *text, *change; } rows[] = {
		{0, "0 B", "0 B"}, {1023, "1023 B", "+1023 B"}, {1024, "1.0 KiB", "+1.0 KiB"},
		{1048524, "1023.9 KiB", "+1023.9 KiB"}, {1048525, "1.0 MiB", "+1.0 MiB"},
		{-1536, "-1.5 KiB", "-1.5 KiB"}, {7, "7 B", "+7 B"},
		{18446744073709551615.0, "16.0 EiB", "+16.0 EiB"},
	};
	char out[AMOUNT_SIZE];
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_string_equal(amount_bytes(rows[i].bytes, out), rows[i].text);
		assert_string_equal(amount_change(rows[i].bytes, out), rows[i].change);
	}
	assert_string_equal(amount_error(1000, 100, out), " +- 10 %");
	assert_string_equal(amount_error(1000, 99, out), " +- 9.9 %");
	assert_string_equal(amount_error(1000, 0.4, out), " +- <0.1 %");
	assert_string_equal(amount_error(1000, 0, out), ""); /* nothing is known about it */
	assert_string_equal(amount_error(0, 10, out), "");
	assert_string_equal(plural(1), "");
	assert_string_equal(plural(0), "s");
}

static void test_wrapper(void **state)
{
	static const struct { const char *function, *object; bool is_wrapper; } rows[] = {
		{"fill", "/bin/prog", false},
		{"fill(int)", NULL, false},
		{"xmalloc", NULL, true},
		{"xmalloc.part.0", NULL, false},
		{"g_malloc0", NULL, true},
		{"sqlite3MemMalloc", NULL, true},
		{"PyMem_RawMalloc", NULL, true},
		{"malloc_stats_of_mine", NULL, false},
		{"my_strdup", NULL, true},
		{"operator new(unsigned long)", NULL, true},
		{"std::vector<int, std::allocator<int> >::push_back(int const&)", NULL, true},
		{"void std::vector<int>::_M_realloc_insert<int>(int&&)", "/bin/prog", true},
		{"std::pair<int, int>* app::Table<std::string>::grow(std::string)", NULL, false},
		{"app::fill(std::vector<int>&)", NULL, false},
		{"app::(anonymous namespace)::fill(std::vector<int>&)", NULL, false},
		{"main::{lambda(int)#1}::operator()(int) const", NULL, false},
		{"alloc::vec::Vec<T>::push", NULL, true},
		{"<alloc::string::String as core::clone::Clone>::clone", NULL, true},
		{"<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem", NULL, true},
		{"<&[T] as core::convert::Into<alloc::vec::Vec<T>>>::into", NULL, true},
		{"<T as alloc::string::ToString>::to_string", "/bin/prog", true},
		{"<[alloc::string::String] as alloc::borrow::ToOwned>::to_owned", NULL, true},
		{"<app::Node as core::clone::Clone>::clone", NULL, false},
		{"<&app::Node as core::fmt::Display>::fmt", NULL, false},
		{"<u8 as app::Encode>::encode", NULL, false},
		{"<app::Node>::new", NULL, false},
		{"zmalloc_usable", NULL, true},
		{"ztryrealloc_usable_internal", "/usr/bin/redis-server", true},
		{"xrealloc", NULL, true},
		{"is_usable", NULL, false},
		{"getline", "/lib/x86_64-linux-gnu/libc.so.6", true},
		{"getline", "/usr/lib/libcurl.so.4", false},
		{"run", "/usr/lib/libstdc++.so.6.0.30", true},
		{"ada__strings__unbounded__to_unbounded_string", "/usr/lib/libgnat-12.so", true},
		{"core.internal.gc.impl.Pool.initialize", "/usr/lib/libgphobos.so.3.0.0", true},
		{"_gfortran_st_write", "/usr/lib/libgfortran.so.5.0.0", true},
		{"run", "/usr/lib/libgnatcoll.so.23", false},
		{NULL, "/usr/lib/libx.so", false},
		{NULL, NULL, false},
		{"", NULL, false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct frame_text frame = {.function = rows[i].function, .object = rows[i].object};
		bool is_wrapper = wrapper_rank(&frame) != RANK_SITE;
		if (is_wrapper != rows[i].is_wrapper)
			fail_msg("%s in %s", rows[i].function, rows[i].object);
	}
}

/* Frames of libc whose object is unknown, and frames that represent a stack of wrappers only. */
static void test_rank(void **state)
{
	static const struct { struct frame_text frame; enum frame_rank rank; } rows[] = {
		{{"__mmap64", "mmap64.c", NULL, NULL, NULL}, RANK_FUNCTION},
		{{"sysmalloc_mmap.constprop.0", "malloc.c", NULL, NULL, NULL}, RANK_FUNCTION},
		{{"brk", "brk.c", NULL, NULL, NULL}, RANK_FUNCTION},
		{{"brk", NULL, "/usr/lib/libx.so.1", NULL, NULL}, RANK_SITE},
		{{"_int_malloc", NULL, "/bin/static", NULL, NULL}, RANK_FUNCTION},
		{{"__memset_avx512_unaligned_erms", "memset-vec-unaligned-erms.S", NULL, NULL, NULL},
		 RANK_FUNCTION},
		{{"memset_all", "t.c", NULL, NULL, NULL}, RANK_SITE},
		{{"strlen", NULL, NULL, NULL, NULL}, RANK_FUNCTION},
		{{"inner", "strings.S", "/bin/prog", NULL, NULL}, RANK_SITE},
		{{"_dl_map_segments", "dl-map-segments.h", NULL, NULL, NULL}, RANK_LOADER},
		{{"init_tls", "rtld.c", NULL, NULL, NULL}, RANK_LOADER},
		{{NULL, NULL, "/lib64/ld-linux-x86-64.so.2", NULL, NULL}, RANK_LOADER},
		{{"allocate", "new_allocator.h", NULL, NULL, NULL}, RANK_STANDARD},
		{{"(below main)", NULL, "/usr/lib/libc.so.6", NULL, NULL}, RANK_UNNAMED},
		{{"[anonymous]", NULL, NULL, NULL, NULL}, RANK_UNNAMED},
		{{"[moved or grown]", NULL, NULL, NULL, NULL}, RANK_UNNAMED},
		{{"[truncated]", NULL, NULL, NULL, NULL}, RANK_UNNAMED},
		{{"[file libm.so.6]", NULL, "libm.so.6", NULL, NULL}, RANK_MAPPING},
		{{"[stack]", NULL, NULL, NULL, NULL}, RANK_MAPPING},
		{{"???", NULL, "???", NULL, NULL}, RANK_SITE},
		{{"os::malloc", NULL, "/opt/jdk/lib/server/libjvm.so", NULL, NULL}, RANK_FUNCTION},
		{{"Arena::grow(unsigned long)", NULL, "libjvm.so", NULL, NULL}, RANK_FUNCTION},
		{{"Compile::Code_Gen()", NULL, "libjvm.so", NULL, NULL}, RANK_RUNTIME},
		{{"java.util.HashMap.put", "HashMap.java", NULL, NULL, NULL}, RANK_RUNTIME},
		{{"java.util.put", NULL, "/bin/prog", NULL, NULL}, RANK_SITE},
		{{"javac.Main.main", "Main.java", NULL, NULL, NULL}, RANK_SITE},
		{{"node::Start", NULL, "/usr/bin/node", NULL, NULL}, RANK_RUNTIME},
		{{"emit", "events", "node:events", NULL, NULL}, RANK_RUNTIME},
		{{"Builtin:ArrayMap", NULL, NULL, NULL, NULL}, RANK_RUNTIME},
		{{"addOrder", "shop.js", "/srv/node/shop.js", NULL, NULL}, RANK_SITE},
		{{"main", NULL, "/usr/bin/nodemon", NULL, NULL}, RANK_SITE},
		{{"inflate", NULL, "/usr/lib/libzip.so.4", NULL, NULL}, RANK_SITE},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (wrapper_rank(&rows[i].frame) != rows[i].rank)
			fail_msg("%s", rows[i].frame.function);
	}
}

/* The source file decides before names and the object, and the user before all. */
static void test_source(void **state)
{
	static const char *const rules[] = {"-*/vendor/*", "+*/vendor/mine/*", "-libours.so*",
					    "+*/c++/12/*"};
	static const struct { struct frame_text frame; enum frame_rank rank, by_user; } rows[] = {
		{{.function = "operator()", .file = "t.cpp", .dir = "/home/me",
		  .object = "/home/me/prog"}, RANK_SITE, RANK_SITE},
		{{.function = "std::__invoke<main()::<lambda()> >", .file = "invoke.h",
		  .dir = "/usr/include/c++/12/bits", .object = "/home/me/prog"},
		 RANK_STANDARD, RANK_SITE},
		{{.function = "Thread::new::thread_start", .object = "/home/me/prog",
		  .file = "/rustc/5980/library/std/src/sys/thread/unix.rs"},
		 RANK_STANDARD, RANK_STANDARD},
		{{.function = "push", .object = "/home/me/prog",
		  .file = "/usr/src/rustc-1.63.0/library/alloc/src/vec/mod.rs"},
		 RANK_STANDARD, RANK_STANDARD},
		{{.function = "<str>::repeat", .object = "/home/me/prog"},
		 RANK_INSTANCE, RANK_INSTANCE},
		{{.function = "runtime.newobject", .object = "/home/me/prog",
		  .file = "/home/me/sdk/go1.22/src/runtime/malloc.go"},
		 RANK_STANDARD, RANK_STANDARD},
		{{.function = "build", .file = "/usr/include/boost/any.hpp"},
		 RANK_FUNCTION, RANK_FUNCTION},
		{{.function = "build", .file = "main.c", .dir = "/usr/src/app"},
		 RANK_SITE, RANK_SITE},
		{{.function = "std::hash<Key>::operator()", .file = "key.h", .dir = "/home/me"},
		 RANK_SITE, RANK_SITE},
		{{.function = "new_heap", .file = "heap.c", .dir = "/home/me/src"},
		 RANK_SITE, RANK_SITE},
		{{.function = "new_heap", .file = "arena.c", .dir = "/b/glibc-2.36/malloc"},
		 RANK_FUNCTION, RANK_FUNCTION},
		{{.function = "xmalloc", .file = "x.c", .dir = "/home/me/vendor/mine"},
		 RANK_FUNCTION, RANK_FUNCTION},
		{{.function = "parse", .file = "x.c", .dir = "/home/me/vendor/mine"},
		 RANK_SITE, RANK_SITE},
		{{.function = "parse", .file = "x.c", .dir = "/home/me/vendor/other"},
		 RANK_SITE, RANK_FUNCTION},
		{{.function = "parse", .object = "/opt/libours.so.1"}, RANK_SITE, RANK_FUNCTION},
		{{.function = "run", .object = "/usr/lib/libjemalloc.so.2"},
		 RANK_FUNCTION, RANK_FUNCTION},
	};
	struct my_code my_code = {0};

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		my_code_add(&my_code, rules[i]);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct frame_text frame = rows[i].frame;

		if (wrapper_rank(&frame) != rows[i].rank)
			fail_msg("%s: %d", frame.function, wrapper_rank(&frame));
		frame.my_code = &my_code;
		if (wrapper_rank(&frame) != rows[i].by_user)
			fail_msg("%s by the user: %d", frame.function, wrapper_rank(&frame));
	}
	my_code_deinit(&my_code);
}

static void test_age(void **state)
{
	static const struct {
		const char *text;
		double seconds, percent;
	} good[] = {{"2.5", 2.5, 0}, {"2.5s", 2.5, 0}, {"300ms", 0.3, 0}, {"10m", 600, 0}, {"1h", 3600, 0},
		    {"2d", 172800, 0}, {"10%", 0, 10}, {"0", 0, 0}};
	static const char *const bad[] = {"", "s", "-1", "101%", "1e3", "0x10", "1 s", "1w", "1.2.3", "nan"};
	struct amount_age age;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_true(amount_parse_age(good[i].text, &age));
		assert_true(fabs(age.seconds - good[i].seconds) < 1e-9 && fabs(age.percent - good[i].percent) < 1e-9);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(amount_parse_age(bad[i], &age));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commas),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_wrapper),
		cmocka_unit_test(test_rank),
		cmocka_unit_test(test_source),
		cmocka_unit_test(test_age),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
