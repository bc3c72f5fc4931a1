/* Which frames of two profiles are matched, and the trees built from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/types.h"
#include "report/diff_output.h"
#include "report/diff_paths.h"

struct pair {
	struct match_frame old, new;
	const char *name; /* of both; NULL = no match */
};

static void test_functions(void **state)
{
	static const struct pair pairs[] = {
		{{"f", "/a/x.c", "/a/p", 3, false}, {"f", "/b/y.c", "/b/q", 7, false}, "f"},
		{{.function = "f.part.0"}, {.function = "f.constprop.3.isra.1"}, "f"},
		{{.function = "f() [clone .cold]"}, {.function = "f()"}, "f()"},
		{{.function = "a.partial"}, {.function = "a"}, NULL},
		{{.function = ".cold"}, {.function = ".cold"}, ".cold"},
		{{.function = "main.f.llvm.123"}, {.function = "main.f"}, "main.f"},
		{{.function = "f(int)"}, {.function = "f(long)"}, NULL},
		{{.object = "/a/libz.so.1.2"}, {.object = "/b/libz.so.2"}, "[libz.so]"},
		{{.object = "/a/libz.so"}, {.object = "/b/liby.so"}, NULL},
		{{.object = "/a/store"}, {.object = "/b/store-new"}, "[store-new]"},
		{{.object = "[vdso]"}, {.object = "[vdso]"}, "[vdso]"},
		{{.object = "/lib.so.d/a"}, {.object = "b"}, "[b]"},
		{{.file = "/a/x.c", .line = 3}, {.file = "x.c", .line = 9}, "[x.c]"},
		{{.line = 3}, {.line = 4}, "[unknown]"},
		{{.function = ""}, {.function = "f"}, NULL},
		{{.function = "main::{lambda(int)#1}::operator()(int) const"},
		 {.function = "main::{lambda(int)#12}::operator()(int) const"},
		 "main::{lambda(int)}::operator()(int) const"},
		{{.function = "main::$_0::operator()() const"},
		 {.function = "main::$_7::operator()() const"},
		 "main::$_::operator()() const"},
		{{.function = "a::run::h0123456789abcdef"},
		 {.function = "a::run::hfedcba9876543210"}, "a::run"},
		{{.function = "f#1"}, {.function = "f#2"}, NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		struct frame_match *m = frame_match_new(false);

		frame_match_add(m, PATH_OLD, &pairs[i].old);
		frame_match_add(m, PATH_NEW, &pairs[i].new);
		frame_match_finish(m);
		uint32_t old = frame_match_function(m, PATH_OLD, 0);
		uint32_t new = frame_match_function(m, PATH_NEW, 0);

		assert_int_equal(old == new, pairs[i].name != NULL);
		assert_int_equal(frame_match_function_count(m), old == new ? 1 : 2);
		if (pairs[i].name)
			assert_string_equal(frame_match_name(m, old), pairs[i].name);
		frame_match_free(m);
	}
}

/* Frames of one function: lines of the old profile, 0, lines of the new one. */
static char *site_names(const uint64_t *line, bool is_same_build)
{
	struct frame_match *m = frame_match_new(false);
	enum path_side side = PATH_OLD;
	size_t count[2] = {0}, size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	for (; *line || side == PATH_OLD; line++) {
		if (!*line) {
			side = PATH_NEW;
			continue;
		}
		frame_match_add(m, side, &(struct match_frame){"f", "x.c", "/p", *line,
							       is_same_build});
		count[side]++;
	}
	frame_match_finish(m);
	for (int s = PATH_OLD; s <= PATH_NEW; s++)
		for (size_t i = 0; i < count[s]; i++)
			fprintf(out, "%s%s", s || i ? "; " : "",
				frame_match_site_name(m, frame_match_site(m, (enum path_side)s, i)));
	fclose(out);
	frame_match_free(m);
	return text;
}

static void test_sites(void **state)
{
	static const struct {
		uint64_t line[8];
		bool is_same_build;
		const char *names;
	} cases[] = {
		{{7, 0, 7}, false, "f (x.c:7); f (x.c:7)"},
		{{7, 9, 0, 9, 7}, false, "f (x.c:7); f (x.c:9); f (x.c:9); f (x.c:7)"},
		{{7, 0, 8}, false, "f; f"},
		{{7, 9, 0, 9, 11}, false, "f; f; f; f"},
		{{7, 0, 7, 9}, false, "f; f; f"},
		{{7, 0, 7, 9}, true, "f (x.c:7); f (x.c:7); f (x.c:9)"},
		{{7, 9, 0}, false, "f (x.c:7); f (x.c:9)"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *names = site_names(cases[i].line, cases[i].is_same_build);

		assert_string_equal(names, cases[i].names);
	}
}

/* One stack, main > f, for each line of @line in f. */
static void add_stacks(struct diff_paths *p, enum path_side side, uint32_t frames, uint64_t bytes)
{
	for (uint32_t i = 1; i < frames; i++) {
		const uint32_t frame[] = {i, 0};

		diff_paths_add(p, side, &(struct diff_stack){frame, 2, 0, bytes, i, 0, 0});
	}
}

static struct path_tree *make_tree(struct frame_match *m, enum diff_order order)
{
	static const uint64_t lines[2][7] = {{1, 7, 9}, {2, 9, 10, 100, 12, 11, 13}};
	struct diff_paths *p;

	for (int side = PATH_OLD; side <= PATH_NEW; side++)
		for (size_t i = 0; i < ARRAY_SIZE(lines[side]) && lines[side][i]; i++)
			frame_match_add(m, (enum path_side)side,
					&(struct match_frame){.function = i ? "f" : "main",
							      .file = side ? "/b/x.c" : "x.c",
							      .line = lines[side][i]});
	frame_match_finish(m);
	p = diff_paths_new(m, order);
	add_stacks(p, PATH_OLD, 3, 5);
	add_stacks(p, PATH_NEW, 7, 10);
	diff_paths_add(p, PATH_NEW, &(struct diff_stack){.bytes = 3});
	return diff_paths_finish(p);
}

static void test_places(void **state)
{
	struct frame_match *m = frame_match_new(false);
	struct path_tree *t = make_tree(m, DIFF_SITE_FIRST);
	const struct path_node *f = path_tree_node(t, 1), *main = path_tree_node(t, 2);

	assert_int_equal(path_tree_node_count(t), 3);
	assert_string_equal(f->name, "f (x.c:9, 10, 11, 12, ...)");
	assert_string_equal(main->name, "main (x.c:2)");
	assert_int_equal(main->own[PATH_OLD], 10);
	assert_int_equal(main->own[PATH_NEW], 60);
	assert_int_equal(main->blocks[PATH_NEW], 21);
	assert_int_equal(path_tree_node(t, 0)->total[PATH_NEW], 63);
	path_tree_free(t);
	frame_match_free(m);
}

static void test_rows(void **state)
{
	struct frame_match *m = frame_match_new(false);
	struct path_tree *t = make_tree(m, DIFF_TABLE);
	struct diff_rows rows;
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	diff_rows_init(&rows, t);
	diff_rows_write_csv(out, &rows, true);
	diff_rows_write_json(out, &rows, false);
	fclose(out);
	assert_string_equal(text,
		"old_bytes,new_bytes,change_bytes,old_blocks,new_blocks,change_blocks,call_site,path\r\n"
		"10,60,50,3,21,18,\"f (x.c:9, 10, 11, 12, ...)\",\"main > f\"\r\n"
		"0,3,3,0,0,0,\"[unknown]\",\"\"\r\n"
		"[\n{\"call_site\":\"f (x.c:9, 10, 11, 12, ...)\",\"old_bytes\":10,\"new_bytes\":60,"
		"\"old_blocks\":null,\"new_blocks\":null,\"path\":[\"main\",\"f\"]},\n"
		"{\"call_site\":\"[unknown]\",\"old_bytes\":0,\"new_bytes\":3,"
		"\"old_blocks\":null,\"new_blocks\":null,\"path\":[]}]");
	free(text);
	diff_rows_deinit(&rows);
	path_tree_free(t);
	frame_match_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_sites),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
