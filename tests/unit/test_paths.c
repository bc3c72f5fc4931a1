/* Call paths: the tree, folded stacks, flame graphs, and massif trees inverted. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "output/flame.h"
#include "output/path_tree.h"
#include "report/chart/massif_sites.h"
#include "report/diff_output.h"
#include "report/diff_paths.h"
#include "report/massif_paths.h"
#include "report/recording_paths.h"

static uint32_t add(struct path_tree *t, const char *path, enum path_side side, uint64_t value)
{
	uint32_t node = 0;

	for (const char *at = path, *end; *at; at = *end ? end + 1 : end) {
		end = strchrnul(at, '/');
		node = path_tree_child(t, node, at, (size_t)(end - at));
	}
	path_tree_add(t, node, side, value);
	return node;
}

static char *folded_text(const struct path_tree *t, bool is_diff)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	path_tree_write_folded(f, t, is_diff);
	fclose(f);
	return text;
}

static char *flame_text(const struct path_tree *t, const struct flame_options *o)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	flame_write(f, t, o);
	fclose(f);
	return text;
}

static void test_tree(void **state)
{
	struct path_tree *t = path_tree_new();
	uint32_t c = add(t, "a/b/c", PATH_NEW, 5), b = add(t, "a/b", PATH_NEW, 2);

	add(t, "a/d", PATH_NEW, 1);
	assert_int_equal(add(t, "a/b/c", PATH_NEW, 10), c);
	assert_int_equal(add(t, "a/b/c", PATH_OLD, 7), c);
	path_tree_sum(t);
	assert_int_equal(path_tree_node_count(t), 5);
	assert_int_equal(path_tree_node(t, 0)->total[PATH_NEW], 18);
	assert_int_equal(path_tree_node(t, 0)->total[PATH_OLD], 7);
	assert_int_equal(path_tree_node(t, b)->total[PATH_NEW], 17);
	assert_int_equal(path_tree_node(t, c)->depth, 3);
	path_tree_sum(t);
	assert_int_equal(path_tree_node(t, 0)->total[PATH_NEW], 18);
	path_tree_free(t);
}

static void test_folded(void **state)
{
	struct path_tree *t = path_tree_new();

	add(t, "main/x;y/operator new(unsigned long)", PATH_NEW, 5);
	add(t, "main/x;y", PATH_NEW, 3);
	add(t, "main/a", PATH_NEW, 0);
	add(t, "main/gone", PATH_OLD, 4);
	add(t, "", PATH_NEW, 9);
	path_tree_sum(t);
	_cleanup_free_ char *one = folded_text(t, false), *two = folded_text(t, true);

	assert_string_equal(one, "[unknown] 9\nmain;x:y 3\nmain;x:y;operator new(unsigned long) 5\n");
	assert_string_equal(two, "[unknown] 0 9\nmain;gone 4 0\nmain;x:y 0 3\nmain;x:y;operator new(unsigned long) 0 5\n");
	path_tree_free(t);
}

static void test_many_paths(void **state)
{
	struct path_tree *t = path_tree_new();
	uint64_t sum = 0, folded = 0;

	srandom(1);
	for (int i = 0; i < 20000; i++) {
		uint32_t node = 0;

		for (long depth = random() % 12; depth > 0; depth--) {
			char name[16];

			snprintf(name, sizeof(name), "f%ld", random() % 6);
			node = path_tree_child(t, node, name, strlen(name));
		}
		uint64_t value = (uint64_t)random() % 1000;

		path_tree_add(t, node, PATH_NEW, value);
		sum += value;
	}
	path_tree_sum(t);
	assert_int_equal(path_tree_node(t, 0)->total[PATH_NEW], sum);
	_cleanup_free_ char *text = folded_text(t, false);

	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		folded += strtoull(strrchr(line, ' ') + 1, NULL, 10);
	}
	assert_int_equal(folded, sum);
	path_tree_free(t);
}

static const struct flame_options plain = {
	.title = "a & b <c>", .unit = "bytes", .width = 1020, .min_frame = 0.1,
};

static void test_flame(void **state)
{
	struct path_tree *t = path_tree_new();

	add(t, "main/b<x & \"y\">", PATH_NEW, 3000);
	add(t, "main/a", PATH_NEW, 1000);
	add(t, "tiny", PATH_NEW, 0);
	path_tree_sum(t);
	_cleanup_free_ char *svg = flame_text(t, &plain);

	assert_non_null(strstr(svg, ">a &amp; b &lt;c&gt;</text>"));
	assert_non_null(strstr(svg, "<title>all (4,000 bytes, 100.00%)</title><rect x=\"10.00\" y=\"126\" width=\"1000.00\""));
	assert_non_null(strstr(svg, "data-begin=\"0\" data-value=\"1000\" data-depth=\"2\"><title>a (1,000 bytes, 25.00%)</title>"
				    "<rect x=\"10.00\" y=\"92\" width=\"250.00\""));
	assert_non_null(strstr(svg, "data-begin=\"1000\" data-value=\"3000\" data-depth=\"2\"><title>b&lt;x &amp; &quot;y&quot;&gt; "
				    "(3,000 bytes, 75.00%)</title><rect x=\"260.00\" y=\"92\" width=\"750.00\""));
	assert_null(strstr(svg, "tiny"));
	assert_non_null(strstr(svg, ">total 3.91 KiB (4,000 bytes)</text>"));
	path_tree_free(t);
}

/* A path of estimates: @error is the standard error of @bytes. */
static void add_estimate(struct path_tree *t, const char *path, enum path_side side, uint64_t bytes, double error)
{
	path_tree_add_variance(t, add(t, path, side, bytes), side, error * error);
}

/* "main" has 4000 +- 500, the sum of what is exact and two estimates. */
static struct path_tree *tree_of_estimates(void)
{
	struct path_tree *t = path_tree_new();

	add_estimate(t, "main/exact", PATH_NEW, 1000, 0);
	add_estimate(t, "main/[x.so]/[x.so]", PATH_NEW, 1000, 300);
	add_estimate(t, "main/b", PATH_NEW, 2000, 400);
	add_estimate(t, "main/b", PATH_OLD, 1000, 300);
	add_estimate(t, "main/noise", PATH_NEW, 0, 0);
	path_tree_sum(t);
	return t;
}

static void test_flame_errors(void **state)
{
	struct path_tree *t = tree_of_estimates();
	_cleanup_free_ char *svg = flame_text(t, &plain);

	assert_non_null(strstr(svg, "<title>main (4,000 bytes +- 12 %, 100.00%)"));
	assert_non_null(strstr(svg, "<title>exact (1,000 bytes, 25.00%)"));
	assert_non_null(strstr(svg, "<title>[x.so] (1,000 bytes +- 30 %, 25.00%)"));
	assert_non_null(strstr(svg, "<title>b (2,000 bytes +- 20 %, 50.00%)"));
	path_tree_free(t);
}

/* An estimate with a large error is merged, one of the same size with a small one is not. */
static void test_flame_resolution(void **state)
{
	struct path_tree *t = path_tree_new();

	add_estimate(t, "known", PATH_NEW, 1000, 500);
	add_estimate(t, "noise", PATH_NEW, 1000, 700);
	path_tree_sum(t);
	_cleanup_free_ char *svg = flame_text(t, &plain);

	assert_non_null(strstr(svg, "<title>known (1,000 bytes +- 50 %, 50.00%)"));
	assert_non_null(strstr(svg, "<title>[below resolution] (1,000 bytes +- 70 %, 50.00%)"));
	assert_null(strstr(svg, "noise"));
	path_tree_free(t);
}

/* Errors of differences, and of what is summed up. */
static void test_diff_errors(void **state)
{
	struct path_tree *t = tree_of_estimates();
	const struct diff_options options = {.top = 1, .threshold = 1, .error_heading = "+-"};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	diff_print(out, t, &options);
	fclose(out);
	assert_string_equal(text,
		"       difference                +-         old bytes         new bytes  call site, and its callers\n"
		"           +3,000               583             1,000             4,000  total\n"
		"           +3,000               583             1,000             4,000   main\n"
		"           +1,000               300                 0             1,000    [x.so]\n"
		"           +1,000               300                 0             1,000     [x.so]\n"
		"           +2,000               500             1,000             3,000    [3 other places]\n");
	free(text);
	path_tree_free(t);
}

static void test_flame_culls(void **state)
{
	struct path_tree *t = path_tree_new();

	add(t, "a/seen", PATH_NEW, 100000);
	add(t, "b/culled", PATH_NEW, 9);
	add(t, "c", PATH_NEW, 12);
	path_tree_sum(t);
	_cleanup_free_ char *svg = flame_text(t, &plain);

	assert_non_null(strstr(svg, "<title>seen "));
	assert_null(strstr(svg, "<title>b "));
	assert_null(strstr(svg, "culled"));
	assert_non_null(strstr(svg, "<title>c "));
	assert_non_null(strstr(svg, "<!-- 1 frame narrower than 0.1 px"));
	path_tree_free(t);
}

/* The colour of the frame @name, as text; the caller frees it. */
static char *fill_of(const char *svg, const char *name)
{
	_cleanup_free_ char *title = xasprintf("<title>%s (", name);
	const char *at = strstr(svg, title);

	assert_non_null(at);
	at = strstr(at, "fill=\"#");
	return xstrndup(at + 7, 6);
}

static void test_flame_colors(void **state)
{
	struct path_tree *t = path_tree_new();
	struct flame_options diff = plain;

	diff.is_diff = true;
	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		add(t, "m/grew", (enum path_side)side, side == PATH_NEW ? 200 : 100);
		add(t, "m/shrank", (enum path_side)side, side == PATH_NEW ? 100 : 200);
		add(t, "m/same", (enum path_side)side, 50);
	}
	path_tree_sum(t);
	_cleanup_free_ char *svg = flame_text(t, &diff), *again = flame_text(t, &diff);
	_cleanup_free_ char *grew = fill_of(svg, "grew"), *shrank = fill_of(svg, "shrank"), *same = fill_of(svg, "same");

	assert_string_equal(svg, again);
	assert_memory_equal(grew, "fa", 2);
	assert_memory_equal(shrank + 4, "fa", 2);
	assert_string_equal(same, "eeeeee");
	assert_non_null(strstr(svg, ">shrank by up to 100 bytes</text>"));
	assert_non_null(strstr(svg, "fill=\"#fa4141\"/><text"));
	assert_non_null(strstr(svg, ">grew by as much; grey: as before</text>"));
	assert_null(strstr(svg, ">program</text>"));
	assert_non_null(strstr(svg, "<title>grew (200 bytes, 57.14%; +100)</title>"));
	assert_non_null(strstr(svg, "<title>shrank (100 bytes, 28.57%; -100)</title>"));
	path_tree_free(t);
}

static enum frame_kind kind_of(const char *function, const char *object)
{
	return frame_kind(&(struct frame_text){.function = function, .object = object});
}

/* Colours and legend by objects; only existing ones. */
static void test_flame_kinds(void **state)
{
	struct path_tree *t = path_tree_new();
	uint32_t main = path_tree_child(t, 0, "main", 4), lib = path_tree_child(t, main, "[libx.so]", 9);
	uint32_t push = path_tree_child(t, lib, "push", 4);

	path_tree_set_kind(t, lib, kind_of(NULL, "/usr/lib/libx.so"));
	path_tree_set_kind(t, push, kind_of("void std::push(int)", "/bin/prog"));
	path_tree_add(t, push, PATH_NEW, 5);
	path_tree_sum(t);
	_cleanup_free_ char *svg = flame_text(t, &plain);
	_cleanup_free_ char *program = fill_of(svg, "main"), *library = fill_of(svg, "[libx.so]"), *standard = fill_of(svg, "push");

	assert_true(strcmp(program, library) && strcmp(program, standard) && strcmp(library, standard));
	assert_non_null(strstr(svg, ">program</text>"));
	assert_non_null(strstr(svg, ">other libraries</text>"));
	assert_non_null(strstr(svg, ">standard library (C++, Rust)</text>"));
	assert_null(strstr(svg, ">libc</text>"));
	path_tree_free(t);
}

static void test_frame_kinds(void **state)
{
	assert_int_equal(kind_of("main", "/home/a/prog"), FRAME_PROGRAM);
	assert_int_equal(kind_of("main", NULL), FRAME_PROGRAM);
	assert_int_equal(kind_of(NULL, "/usr/lib/x86_64-linux-gnu/libc.so.6"), FRAME_LIBC);
	assert_int_equal(kind_of("(below main)", "/usr/lib/x86_64-linux-gnu/libc.so.6"), FRAME_LIBC);
	assert_int_equal(kind_of("_dl_init", NULL), FRAME_LIBC);
	assert_int_equal(kind_of(NULL, "/usr/lib/libstdc++.so.6"), FRAME_STANDARD);
	assert_int_equal(kind_of("alloc::vec::Vec<T>::push", "/home/a/prog"), FRAME_STANDARD);
	assert_int_equal(kind_of("f(std::string)", "/home/a/prog"), FRAME_PROGRAM);
	assert_int_equal(kind_of("g_strdup", "/usr/lib/libglib-2.0.so.0"), FRAME_LIBRARY);
	assert_int_equal(kind_of("__brk", "/usr/lib/libx.so"), FRAME_LIBRARY);
	assert_int_equal(kind_of("sysmalloc_mmap.constprop.0", NULL), FRAME_LIBC);
	assert_int_equal(kind_of("[libx.so]", "/usr/lib/libx.so"), FRAME_LIBRARY);
	assert_int_equal(kind_of("[below threshold]", NULL), FRAME_NONE);
	assert_int_equal(kind_of(NULL, NULL), FRAME_NONE);
}

/* Adjacent unnamed functions of one object are one frame; bytes are unchanged. */
static void test_fold_unnamed(void **state)
{
	struct path_tree *t = path_tree_new();

	add(t, "main/[x.so]/[x.so]/f", PATH_NEW, 3);
	add(t, "main/[x.so]/f", PATH_NEW, 4);
	add(t, "main/[x.so]/[y.so]/[x.so]", PATH_NEW, 5);
	add(t, "main/[x.so]/[x.so]", PATH_NEW, 6);
	add(t, "main/f/f", PATH_NEW, 7);
	struct path_tree *folded = path_tree_fold_unnamed(t);
	_cleanup_free_ char *text = folded_text(folded, false);

	assert_string_equal(text, "main;[x.so] 6\nmain;[x.so];[y.so];[x.so] 5\nmain;[x.so];f 7\nmain;f;f 7\n");
	assert_int_equal(path_tree_node(folded, 0)->total[PATH_NEW], 25);
	path_tree_free(folded);
	path_tree_free(t);
}

static void test_flame_of_nothing(void **state)
{
	struct path_tree *t = path_tree_new();

	path_tree_sum(t);
	_cleanup_free_ char *svg = flame_text(t, &plain);

	assert_null(strstr(svg, "<title>"));
	assert_non_null(strstr(svg, ">Nothing to draw: no bytes.</text>"));
	path_tree_free(t);
}

static const char massif[] =
	"desc: x\ncmd: ./p #1\ntime_unit: B\n"
	"#-----------\nsnapshot=0\n#-----------\ntime=0\nmem_heap_B=0\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=empty\n"
	"#-----------\nsnapshot=1\n#-----------\ntime=9\nmem_heap_B=100\nmem_heap_extra_B=8\nmem_stacks_B=0\nheap_tree=peak\n"
	"n3: 100 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"
	" n2: 70 0x10: xmalloc (x.c:3)\n"
	"  n0: 40 0x20: main (p.c:7)\n"
	"  n1: 25 0x30: f(int, {lambda(char)#1}) (p.c:9)\n"
	"   n0: 20 0x40: main (p.c:8)\n"
	" n1: 20 0x50: ??? (in /usr/lib/libz.so.1)\n"
	"  n0: 20 in 2 places, all below massif's threshold (1.00%)\n"
	" n0: 10 in 3 places, all below massif's threshold (1.00%)\n"
	"#-----------\nsnapshot=2\n#-----------\ntime=12\nmem_heap_B=6\nmem_heap_extra_B=8\nmem_stacks_B=0\nheap_tree=detailed\n"
	"n1: 6 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"
	" n0: 6 0x10: xmalloc (x.c:3)\n";

static struct massif_file *parse(const char *text)
{
	struct massif_file *f = NULL;
	char *why = NULL;

	assert_int_equal(massif_file_parse(xstrdup(text), strlen(text), &f, &why), 0);
	return f;
}

static void test_massif_caller_first(void **state)
{
	struct massif_file *f = parse(massif);
	struct path_tree *t = path_tree_new();

	struct recording_view view;

	massif_paths_view(f, 1, &view);
	recording_paths_add(t, massif_paths(f)->recording, &view);
	recording_view_deinit(&view);
	path_tree_sum(t);
	_cleanup_free_ char *text = folded_text(t, false);

	assert_string_equal(text, "[below threshold] 10\n"
				  "[below threshold];[libz.so.1] 20\n"
				  "f(int, {lambda(char)#1});xmalloc 5\n"
				  "main;f(int, {lambda(char)#1});xmalloc 20\n"
				  "main;xmalloc 40\n"
				  "xmalloc 5\n");
	assert_int_equal(path_tree_node(t, 0)->total[PATH_NEW], 100);
	path_tree_free(t);
	massif_paths_free(f);
	massif_file_free(f);
}

/* xmalloc allocates for its callers. */
static void test_massif_site_first(void **state)
{
	struct massif_file *f = parse(massif);
	const struct input input[2] = {{.massif = f}, {.massif = f}};
	struct diff_pair pair = {.input = input, .match = diff_pair_match(input, false)};
	struct diff_options options = {.top = 2, .threshold = 1};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	massif_paths_view(f, 1, &pair.view[PATH_OLD]);
	massif_paths_view(f, 2, &pair.view[PATH_NEW]);
	struct path_tree *t = diff_pair_tree(&pair, DIFF_SITE_FIRST);

	diff_print(out, t, &options);
	fclose(out);
	assert_string_equal(text,
		"       difference         old bytes         new bytes  call site, and its callers\n"
		"              -94               100                 6  total\n"
		"              -25                25                 0   f(int, {lambda(char)}) (p.c:9)\n"
		"              -20                20                 0    main (p.c:8)\n"
		"              -40                40                 0   main (p.c:7)\n"
		"              -29                35                 6   [3 other places]\n");
	free(text);
	path_tree_free(t);
	frame_match_free(pair.match);
	recording_view_deinit(&pair.view[PATH_OLD]);
	recording_view_deinit(&pair.view[PATH_NEW]);
	massif_paths_free(f);
	massif_file_free(f);
}

static void check_find(const struct massif_file *f, uint64_t which, int expected_err, size_t expected, const char *expected_why)
{
	_cleanup_free_ char *why = NULL;
	size_t index = 99;

	assert_int_equal(massif_paths_find(f, which, &index, &why), expected_err);
	if (expected_err)
		assert_string_equal(why, expected_why);
	else
		assert_int_equal(index, expected);
}

static void test_massif_find(void **state)
{
	struct massif_file *f = parse(massif);

	check_find(f, MASSIF_SNAPSHOT_DEFAULT, 0, 1, NULL);
	check_find(f, MASSIF_SNAPSHOT_PEAK, 0, 1, NULL);
	check_find(f, MASSIF_SNAPSHOT_LAST, 0, 2, NULL);
	check_find(f, 2, 0, 2, NULL);
	check_find(f, 0, -EINVAL, 0, "snapshot 0 has no tree: it is not a detailed one");
	check_find(f, 7, -EINVAL, 0, "there is no snapshot 7");
	massif_paths_free(f);
	massif_file_free(f);
	f = parse("cmd: a\ntime_unit: i\n");
	check_find(f, MASSIF_SNAPSHOT_DEFAULT, -EINVAL, 0, "no snapshot has a tree");
	check_find(f, MASSIF_SNAPSHOT_PEAK, -EINVAL, 0, "no snapshot is marked as the peak");
	massif_paths_free(f);
	massif_file_free(f);
}

/* The wrapper xmalloc is replaced by its two callers; bytes of unknown callers remain its own. */
static void test_sites(void **state)
{
	struct massif_file *f = parse(massif);
	struct massif_sites sites;

	massif_sites_find(f, &sites);
	assert_int_equal(sites.count, 4);
	assert_string_equal(sites.function[3], "xmalloc");
	assert_int_equal(sites.bytes[2 * MASSIF_SITES_MAX + 3], 6);
	assert_string_equal(sites.function[0], "main");
	assert_string_equal(sites.location[0], "(p.c:7)");
	assert_string_equal(sites.function[1], "f(int, {lambda(char)#1})");
	assert_string_equal(sites.function[2], "0x50");
	assert_string_equal(sites.location[2], "(in libz.so.1)");
	assert_int_equal(sites.bytes[1 * MASSIF_SITES_MAX + 0], 40);
	assert_int_equal(sites.bytes[1 * MASSIF_SITES_MAX + 1], 25);
	assert_int_equal(sites.bytes[1 * MASSIF_SITES_MAX + 2], 20);
	assert_int_equal(sites.bytes[0], 0);
	massif_sites_deinit(&sites);
	massif_paths_free(f);
	massif_file_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_many_paths),
		cmocka_unit_test(test_flame),
		cmocka_unit_test(test_flame_errors),
		cmocka_unit_test(test_flame_resolution),
		cmocka_unit_test(test_diff_errors),
		cmocka_unit_test(test_flame_culls),
		cmocka_unit_test(test_flame_colors),
		cmocka_unit_test(test_flame_kinds),
		cmocka_unit_test(test_frame_kinds),
		cmocka_unit_test(test_fold_unnamed),
		cmocka_unit_test(test_flame_of_nothing),
		cmocka_unit_test(test_massif_caller_first),
		cmocka_unit_test(test_massif_site_first),
		cmocka_unit_test(test_massif_find),
		cmocka_unit_test(test_sites),
	};

	return cmocka_run_group_tests_name("paths", tests, NULL, NULL);
}
