/*
 * The reader of massif files and ms_print's text: fixtures by Valgrind with what
 * the real ms_print printed, small files that fix one rule each, and bytes that
 * are no massif file.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "report/input.h"
#include "report/massif_file.h"
#include "report/massif_output.h"

#define GOLDEN "tests/golden/massif/"
#define HEAD "desc: d\ncmd: c\ntime_unit: B\n"
#define SNAPSHOT(number, heap, kind) \
	"#-----------\nsnapshot=" number "\n#-----------\ntime=1\nmem_heap_B=" heap \
	"\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=" kind "\n"

static struct massif_file *file;

static int setup(void **state)
{
	file = NULL;
	return 0;
}

static int teardown(void **state)
{
	massif_file_free(file);
	return 0;
}

static void parse_bytes(const char *bytes, size_t size)
{
	char *why = NULL;
	int err = massif_file_parse(xmemdup(bytes, size), size, &file, &why);

	if (err)
		fail_msg("%s", why);
}

static void parse(const char *text)
{
	parse_bytes(text, strlen(text));
}

static void check_refused(const char *text, const char *expected)
{
	_cleanup_free_ char *why = NULL;
	size_t size = strlen(text);

	assert_int_equal(massif_file_parse(xmemdup(text, size + 1), size, &file, &why), -EINVAL);
	assert_null(file);
	assert_string_equal(why, expected);
}

static void check_text(struct massif_text t, const char *expected)
{
	_cleanup_free_ char *text = xstrndup(t.size ? t.at : "", t.size);

	assert_string_equal(text, expected);
}

static char *print(double threshold, unsigned width, unsigned height, int expected_err)
{
	struct msprint_options options = {
		.threshold = threshold, .width = width, .height = height, .arguments = " f",
	};
	char *text, *why = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_int_equal(msprint(f, file, &options, &why), expected_err);
	assert_int_equal(!why, !expected_err);
	free(why);
	fclose(f);
	return text;
}

static void check_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

static int read_file(const char *path, struct massif_file **file_out, char **why_out)
{
	size_t size;
	char *data;
	int err = input_read(path, &data, &size);

	return err ? err : massif_file_parse(data, size, file_out, why_out);
}

static char *read_whole(const char *path)
{
	char *text = xcalloc(1, 1 << 20);
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_in_range(read(fd, text, (1 << 20) - 1), 0, (1 << 20) - 2);
	close(fd);
	return text;
}

/* What ms_print printed for each fixture, byte for byte (golden/massif/README: but for '#'). */
static void test_fixtures(void **state)
{
	static const char *const name[] = {
		"inlined", "lambda", "large", "long_name", "pages", "single", "stacks", "tree_bytes",
		"tree_instructions", "tree_ms", "header_only",
	};

	for (size_t i = 0; i < ARRAY_SIZE(name); i++) {
		_cleanup_free_ char *path = xasprintf(GOLDEN "%s.massif", name[i]);
		_cleanup_free_ char *expected_path = xasprintf(GOLDEN "%s.msprint", name[i]);
		_cleanup_free_ char *expected = read_whole(expected_path);
		_cleanup_free_ char *arguments = xasprintf(" %s.massif", name[i]);
		struct msprint_options options = {
			.threshold = 1, .width = 72, .height = 20, .arguments = arguments,
		};
		_cleanup_free_ char *text = NULL, *why = NULL;
		size_t size;

		assert_int_equal(read_file(path, &file, &why), 0);
		FILE *f = open_memstream(&text, &size);

		assert_int_equal(msprint(f, file, &options, &why), file->snapshot_count ? 0 : -EINVAL);
		fclose(f);
		assert_string_equal(text, expected);
		massif_file_free(file);
		file = NULL;
	}
}

static void test_header(void **state)
{
	parse("# comment\n\ndesc: --a=b # kept\ndesc: second\n  \t \n  # comment\ncmd:   ./p a#b\n"
	      "time_unit:ms# comment\n");
	check_text(file->desc, " --a=b # kept\n second\n");
	check_text(file->command, "./p a#b");
	check_text(file->time_unit, "ms");
	assert_int_equal(file->snapshot_count, 0);
	assert_int_equal(file->peak, SIZE_MAX);
}

static void test_no_desc(void **state)
{
	parse("cmd: c\ntime_unit: i\n" SNAPSHOT("0", "5", "empty"));
	assert_int_equal(file->desc.size, 0);
	_cleanup_free_ char *text = print(1, 72, 20, 0);

	check_contains(text, "Massif arguments:  ms_print arguments: f\n");
}

static void test_tree(void **state)
{
	parse(HEAD SNAPSHOT("0", "0", "empty") SNAPSHOT("1", "100", "peak")
	      "n2: 100 (heap allocation functions) malloc\n"
	      "     n1: 60 0x10: f (a.c:1)\n" /* indents are ignored */
	      "n0: 50 0x11: g (a.c:2)\n"
	      "n0:40 in 3 places, all below massif's threshold (1.00%)\n"
	      SNAPSHOT("2", "18446744073709551615", "detailed") "n0: 18446744073709551615 x\n");
	assert_int_equal(file->snapshot_count, 3);
	assert_int_equal(file->peak, 1);
	assert_true(file->largest_total == UINT64_MAX);
	assert_int_equal(file->snapshot[0].root, 0);
	assert_int_equal(file->snapshot[1].kind, MASSIF_PEAK);
	const struct massif_node *node = file->node;
	uint32_t root = file->snapshot[1].root, f = node[root].first_child, aggregate = node[f].next_sibling;

	assert_int_equal(node[root].parent, 0);
	assert_int_equal(node[f].parent, root);
	assert_int_equal(node[f].bytes, 60);
	assert_int_equal(node[f].line, 21);
	check_text(node[f].text, " 0x10: f (a.c:1)");
	assert_int_equal(node[node[f].first_child].bytes, 50);
	assert_int_equal(node[node[f].first_child].next_sibling, 0);
	assert_int_equal(node[aggregate].parent, root);
	assert_int_equal(node[aggregate].next_sibling, 0);
	assert_true(node[file->snapshot[2].root].bytes == UINT64_MAX);
}

static void check_frame(const char *line, enum massif_line kind, const char *function, const char *location)
{
	struct massif_node node = {.text = {line, strlen(line)}};
	struct massif_frame frame;

	massif_file_frame(&node, &frame);
	assert_int_equal(frame.line, kind);
	check_text(frame.function, function);
	check_text(frame.location, location);
}

static void test_frames(void **state)
{
	static const enum massif_line R = MASSIF_LINE_ROOT, F = MASSIF_LINE_FRAME;

	check_frame(" (heap allocation functions) malloc/new/new[], --alloc-fns, etc.", R,
		    "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.", "");
	check_frame(" 0x10: f (a.c:7)", F, "f", "a.c:7");
	check_frame(" 0x10: f(int, char) const (in /usr/lib/a b.so (deleted))", F, "f(int, char) const",
		    "in /usr/lib/a b.so (deleted)");
	check_frame(" 0x10: std::function<void (int)>::operator()(int) const (a (copy).h:12)", F,
		    "std::function<void (int)>::operator()(int) const", "a (copy).h:12");
	check_frame(" 0x10: g(void (*)(int))", F, "g(void (*)(int))", "");
	check_frame(" 0x10: pick(int)::{lambda(int)", F, "pick(int)::{lambda(int)", "");
	check_frame(" 0x10: pick(int)::{lambda(int)#1}::operator()(int) const (a.cc:7)", F,
		    "pick(int)::{lambda(int)#1}::operator()(int) const", "a.cc:7");
	check_frame(" 0x10: names::main::{closure#0} (names.rs:40)", F, "names::main::{closure#0}",
		    "names.rs:40");
	check_frame(" 0x10: <a::B as core::ops::Deref>::deref (in /a (in b)/c.so)", F,
		    "<a::B as core::ops::Deref>::deref", "in /a (in b)/c.so");
	check_frame(" 0x10: T::operator->() (in x) (a.cc:7)", F, "T::operator->() (in x)", "a.cc:7");
	check_frame(" 0x10: f(int) (a).c:3)", F, "f(int)", "a).c:3");
	check_frame(" 0x10: f(int) (in /a)b.so)", F, "f(int)", "in /a)b.so");
	check_frame(" 0x10: f(int) (in /a) (b/c.so)", F, "f(int)", "in /a) (b/c.so");
	check_frame(" 0x10: \xc3\xa4::\xe2\x86\x92() (\xc3\xb6.cc:1)", F, "\xc3\xa4::\xe2\x86\x92()",
		    "\xc3\xb6.cc:1");
	check_frame(" 0x10:  (a.c:7)", F, "???", "a.c:7");
	check_frame(" 0x10: (in /a.so)", F, "???", "in /a.so");
	check_frame(" 0x10: (below main) (libc_start_call_main.h:58)", F, "(below main)",
		    "libc_start_call_main.h:58");
	check_frame(" 0x10: (below main)", F, "(below main)", "");
	check_frame(" 0x0: ???", F, "???", "");
	check_frame(" 0x10: f (in ???" ")", F, "f", "in ???");
	check_frame(" 0x10: g(a.c:7)", F, "g(a.c:7)", "");
	check_frame(" 0x10: f :12)", F, "f :12)", "");
	check_frame(" 0x10: ", F, "???", "");
	check_frame(" 0x10:", R, "0x10:", "");
	check_frame(" 0xFFFFFFFFFFFFFFFFF: f", R, "0xFFFFFFFFFFFFFFFFF: f", "");
	check_frame("", R, "", "");
	check_frame(" in 3 places, all below massif's threshold (1.00%)", MASSIF_LINE_AGGREGATE,
		    "in 3 places, all below massif's threshold (1.00%)", "");
	check_frame(" in 1 place, below massif's threshold (1.00%)", MASSIF_LINE_AGGREGATE,
		    "in 1 place, below massif's threshold (1.00%)", "");
}

static void test_frame_parts(void **state)
{
	struct massif_node node = {.text = {" 0x7FABCDEF: f (/s/a:b.c:70)", 28}};
	struct massif_frame frame;

	massif_file_frame(&node, &frame);
	assert_int_equal(frame.address, 0x7fabcdef);
	check_text(frame.file, "/s/a:b.c");
	assert_int_equal(frame.line_number, 70);
	assert_int_equal(frame.object.size, 0);
	node.text = (struct massif_text){" 0x1: f (in /l.so)", 18};
	massif_file_frame(&node, &frame);
	check_text(frame.object, "/l.so");
	assert_int_equal(frame.file.size, 0);
	node.text = (struct massif_text){" in 12 places, all", 18};
	massif_file_frame(&node, &frame);
	assert_int_equal(frame.places, 12);
}

/* The line numbers are ms_print's, and so are the words where ms_print reports the error. */
static void test_refused(void **state)
{
	check_refused("", "Line 0: missing 'cmd' line");
	check_refused("\n# x\n", "Line 2: missing 'cmd' line");
	check_refused("desc: a\nfoo\n", "Line 2: missing 'cmd' line");
	check_refused("desc: a\ncmd: b\nx y\n", "Line 3: missing 'time_unit' line");
	check_refused(HEAD "snapshot=0\ntme=1\n", "Line 5: expected \"time\" line, got:\ntme=1");
	check_refused(HEAD "snapshot=0\n", "Line 4: expected \"time\" line, got end of file");
	check_refused(HEAD "snapshot=0\ntime=1x\n", "Line 5: expected a number after \"time=\"");
	check_refused(HEAD "snapshot=0\ntime=18446744073709551616\n",
		      "Line 5: expected a number after \"time=\"");
	check_refused(HEAD SNAPSHOT("0", "5", "other"), "Line 11: expected 'empty' or '...' after 'heap_tree='");
	check_refused(HEAD SNAPSHOT("0", "5", "peak"), "Line 11: expected a tree node line, got end of file");
	check_refused(HEAD SNAPSHOT("0", "5", "peak") "n3: 5 x\n n0: 5 y\n",
		      "Line 13: expected a tree node line, got end of file");
	check_refused(HEAD SNAPSHOT("0", "5", "peak") "n3: 5 x\n n: 5 y\n",
		      "Line 13: expected a tree node line, got:\n n: 5 y");
	check_refused(HEAD SNAPSHOT("0", "5", "peak") "n99999999999999999999: 5 x\n",
		      "Line 12: expected a tree node line, got:\nn99999999999999999999: 5 x");
	check_refused(HEAD SNAPSHOT("0", "5", "peak") "n4000000000: 5 x\n",
		      "Line 12: expected a tree node line, got end of file");
	check_refused(HEAD SNAPSHOT("0", "5", "peak") "n1: 5 x\n n0: 6 y\n",
		      "Line 13: 6 bytes in a snapshot of 5");
	check_refused(HEAD "\x1b[31mred\a\n", "Line 4: expected \"snapshot\" line, got:\n?[31mred?");
}

static void test_sum_over_64_bits(void **state)
{
	check_refused(HEAD "snapshot=0\ntime=1\nmem_heap_B=18446744073709551615\nmem_heap_extra_B=1\n"
			   "mem_stacks_B=0\nheap_tree=empty\n",
		      "Line 8: the sizes of the snapshot exceed 64 bits");
}

static char *nested(size_t levels)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	fputs(HEAD SNAPSHOT("0", "5", "peak"), f);
	for (size_t i = 1; i <= levels; i++)
		fprintf(f, "n%d: 5 x\n", i < levels);
	fclose(f);
	return_ptr(text);
}

static void test_deepest(void **state)
{
	_cleanup_free_ char *deepest = nested(MASSIF_FILE_MAX_DEPTH);
	_cleanup_free_ char *deeper = nested(MASSIF_FILE_MAX_DEPTH + 1);

	check_refused(deeper, "Line 10012: the tree is too large (10000 levels at most)");
	parse(deepest);
	assert_int_equal(file->node_count, MASSIF_FILE_MAX_DEPTH + 1);
	_cleanup_free_ char *text = print(1, 72, 20, 0);

	check_contains(text, "100.00% (5B) x\n->100.00% (5B) x\n  ->100.00% (5B) x\n    ->");
}

static void test_no_line_end_and_zeros(void **state)
{
	static const char bytes[] = HEAD SNAPSHOT("0", "5", "detailed") "n0: 5 a\0b";

	parse_bytes(bytes, sizeof(bytes) - 1);
	assert_int_equal(file->node[file->snapshot[0].root].text.size, 4);
}

/* ms_print uses the peak's number as its index; a number beyond the end marks nothing. */
static void test_peak_number(void **state)
{
	parse(HEAD SNAPSHOT("7", "5", "peak") "n0: 5 x\n");
	assert_int_equal(file->snapshot[0].number, 7);
	assert_int_equal(file->peak, SIZE_MAX);
}

static void test_not_there(void **state)
{
	char *why = NULL;

	assert_int_equal(read_file("/nonexistent/file", &file, &why), -ENOENT);
	assert_int_equal(read_file("/", &file, &why), -EISDIR);
	assert_null(why);
}

static void test_bad_time_unit(void **state)
{
	parse("desc: d\ncmd: c\ntime_unit: weeks\n" SNAPSHOT("0", "5", "empty"));
	_cleanup_free_ char *text = print(1, 72, 20, -EINVAL);

	check_contains(text, "ms_print arguments: f\n");
}

/* Times that run backwards, or past the last one, draw nothing outside the graph. */
static void test_times_out_of_order(void **state)
{
	parse(HEAD "snapshot=0\ntime=18446744073709551615\nmem_heap_B=9\nmem_heap_extra_B=0\nmem_stacks_B=0\n"
		   "heap_tree=empty\nsnapshot=1\ntime=5\nmem_heap_B=9\nmem_heap_extra_B=0\nmem_stacks_B=0\n"
		   "heap_tree=empty\nsnapshot=2\ntime=3\nmem_heap_B=9\nmem_heap_extra_B=0\nmem_stacks_B=0\n"
		   "heap_tree=empty\n");
	_cleanup_free_ char *text = print(1, 4, 4, 0);

	check_contains(text, "    9^   :\n     |   :\n     |   :\n     |   :\n   0 +--->B\n     0    3\n");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_fixtures), T(test_header), T(test_no_desc), T(test_tree), T(test_frames),
		T(test_frame_parts), T(test_refused), T(test_sum_over_64_bits), T(test_deepest),
		T(test_no_line_end_and_zeros), T(test_peak_number), T(test_not_there), T(test_bad_time_unit),
		T(test_times_out_of_order),
	};

	return cmocka_run_group_tests_name("massif_file", tests, NULL, NULL);
}
