/*
 * Reports of live blocks: leak reports as text and JSON, paths, the table of --top; from a small
 * profile with made-up names.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "live/top.h"
#include "output/leaks.h"
#include "output/report_tree.h"

#define MS UINT64_C(1000000)

/* Frames 1, 2, ...: their names. */
static const char *const names[] = {NULL, "main", "grow", "keep \"it\"\\\n\xff" "\u202e", "malloc", "[before]"};
static struct symbol symbols[ARRAY_SIZE(names)];
static struct symbol_frame frames[ARRAY_SIZE(names)];

struct rig {
	struct profile *p;
	struct filter *filter;
	struct report report;
	uint32_t node[4]; /* main, main > grow, main > keep, each calls malloc; [before] */
	uint64_t ms;
};

static const struct symbol *name_of(void *ctx, uint32_t frame, enum symbol_part part)
{
	(void)ctx;
	frames[frame] = (struct symbol_frame){.name = names[frame], .file = "a.c", .dir = "/src", .line = frame};
	symbols[frame] = (struct symbol){.object = "/bin/a", .frame = &frames[frame], .count = 1, .is_main = frame == 1};
	if (*names[frame] == '[') {
		frames[frame] = (struct symbol_frame){.name = names[frame]};
		symbols[frame].object = NULL;
	}
	return &symbols[frame];
}

static struct rig *rig_new(void)
{
	const struct profile_options options = {.max_snapshots = 100, .detailed_freq = 10, .heap_admin = 8,
						.alignment = 16, .keep_times = true, .peak_at_exit = true};
	struct rig *r = xcalloc(1, sizeof(*r));
	r->p = profile_new(&options, 0);
	struct calltree *t = profile_calltree(r->p);
	uint32_t frame[ARRAY_SIZE(names)];
	for (uint32_t i = 1; i < ARRAY_SIZE(names); i++)
		frame[i] = calltree_get_frame(t, 0x1000 * i, 1);
	uint32_t main_node = calltree_get_child(t, 0, frame[1]);
	r->node[0] = calltree_get_child(t, main_node, frame[4]);
	r->node[1] = calltree_get_child(t, calltree_get_child(t, main_node, frame[2]), frame[4]);
	r->node[2] = calltree_get_child(t, calltree_get_child(t, main_node, frame[3]), frame[4]);
	r->node[3] = calltree_get_child(t, 0, frame[5]);
	r->filter = filter_new(30, false);
	r->report = (struct report){.profile = r->p, .filter = r->filter, .symbol = name_of, .command = "a \"b\"",
				    .pid = 12};
	profile_start(r->p, 0);
	return r;
}

static void rig_free(struct rig *r)
{
	profile_free(r->p);
	filter_free(r->filter);
	free(r);
}

static void allocate(struct rig *r, taddr_t addr, uint64_t size, unsigned node)
{
	profile_event(r->p, &(struct event){.time_ns = r->ms * MS, .kind = EVENT_ALLOC, .addr = addr, .size = size,
					    .node = r->node[node]});
}

static void release(struct rig *r, taddr_t addr)
{
	profile_event(r->p, &(struct event){.time_ns = r->ms * MS, .kind = EVENT_FREE, .addr = addr});
}

/* Two blocks of grow, made after 1 and 5 s; one of keep after 2 s; one of main after 3 s, resized by grow at 9 s. */
static struct rig *rig_with_blocks(void)
{
	struct rig *r = rig_new();
	r->ms = 1000;
	allocate(r, 0x10000, 100, 1);
	r->ms = 2000;
	allocate(r, 0x20000, 5000, 2);
	r->ms = 3000;
	allocate(r, 0x30000, 10, 0);
	allocate(r, 0x50000, 77777, 0);
	release(r, 0x50000);
	r->ms = 5000;
	allocate(r, 0x40000, 200, 1);
	r->ms = 9000;
	profile_event(r->p, &(struct event){.time_ns = r->ms * MS, .kind = EVENT_REALLOC_END, .old_addr = 0x30000,
					    .addr = 0x30000, .size = 20, .node = r->node[0]});
	return r;
}

/* @age: in milliseconds. */
static void begin_leaks(struct rig *r, struct leaks *l, uint64_t age)
{
	leaks_init(l, &r->report, profile_block_clock(r->p, 10000 * MS), age * 1000);
	leaks_add_all(l);
	leaks_sort(l);
}

static void test_sites(void **state)
{
	struct rig *r = rig_with_blocks();
	struct leaks l;
	begin_leaks(r, &l, 0);
	assert_int_equal(l.sites.count, 3);
	assert_int_equal(l.sites.data[0].bytes, 5000);
	assert_int_equal(l.sites.data[1].bytes, 300);
	assert_int_equal(l.sites.data[1].blocks, 2);
	assert_int_equal(l.now - l.sites.data[1].oldest, 9000000);
	assert_int_equal(l.now - l.sites.data[1].youngest, 5000000);
	assert_int_equal(l.sites.data[2].bytes, 20);
	assert_int_equal(l.now - l.sites.data[2].oldest, 1000000); /* as old as its realloc */
	assert_int_equal(l.sum[LEAK_UNCHECKED].bytes, 5320);
	leaks_deinit(&l);
	rig_free(r);
}

/* Of sites with equal bytes the one that allocated first comes first, wherever its blocks are. */
static void test_equal_sites(void **state)
{
	static const uint32_t order[] = {1, 2, 0};
	struct rig *r = rig_new();
	struct leaks l;
	for (uint32_t i = 0; i < ARRAY_SIZE(order); i++)
		allocate(r, 0x10000 * (order[i] + 1), 100, order[i]);
	begin_leaks(r, &l, 0);
	assert_int_equal(l.sites.count, ARRAY_SIZE(order));
	for (uint32_t i = 0; i < ARRAY_SIZE(order); i++)
		assert_int_equal(l.sites.data[i].node, report_tree_leaf_node(l.tree, i + 1));
	leaks_deinit(&l);
	rig_free(r);
}

static void test_age(void **state)
{
	static const struct { uint32_t age; uint64_t blocks; } rows[] = {
		{0, 4}, {1000, 4}, {1001, 3}, {5000, 3}, {5001, 2}, {9000, 1}, {9001, 0},
	};
	struct rig *r = rig_with_blocks();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct leaks l;
		begin_leaks(r, &l, rows[i].age);
		assert_int_equal(l.sum[LEAK_UNCHECKED].blocks, rows[i].blocks);
		leaks_deinit(&l);
	}
	rig_free(r);
}

static void add_line(void *ctx, const char *line)
{
	fprintf(ctx, "%s\n", line);
}

static void test_text(void **state)
{
	struct rig *r = rig_with_blocks();
	struct leaks l;
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	begin_leaks(r, &l, 0);
	leaks_print(&l, 2, add_line, f);
	fclose(f);
	assert_string_equal(text,
			    "  5,000 bytes in 1 block still allocated, 8.000 s old\n"
			    "    at 0x3000: keep \"it\"\\?\uFFFD\\u202E (a.c:3)\n"
			    "    by 0x1000: main (a.c:1)\n"
			    "  300 bytes in 2 blocks still allocated, 9.000 to 5.000 s old\n"
			    "    at 0x2000: grow (a.c:2)\n"
			    "    by 0x1000: main (a.c:1)\n"
			    "  20 bytes in 1 block of 1 smaller site are not shown here\n"
			    "  still allocated: 5,320 bytes in 4 blocks\n");
	free(text);
	leaks_deinit(&l);
	rig_free(r);
}

/* A frame without code has no address, and blocks of one moment one age. */
static void test_text_without_code(void **state)
{
	struct rig *r = rig_new();
	struct leaks l;
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	r->ms = 4000;
	allocate(r, 0x10000, 10, 3);
	allocate(r, 0x20000, 20, 3);
	begin_leaks(r, &l, 0);
	leaks_print(&l, 2, add_line, f);
	fclose(f);
	assert_string_equal(text, "  30 bytes in 2 blocks still allocated, 6.000 s old\n"
				  "    at [before]\n"
				  "  still allocated: 30 bytes in 2 blocks\n");
	free(text);
	leaks_deinit(&l);
	rig_free(r);
}

static char *text_without_sites(struct rig *r, bool is_checked)
{
	struct leaks l;
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	begin_leaks(r, &l, 9001);
	l.is_checked = is_checked;
	leaks_print(&l, 2, add_line, f);
	fclose(f);
	leaks_deinit(&l);
	return text;
}

/* Without sites the text still says whether a leak check was made. */
static void test_no_sites(void **state)
{
	struct rig *r = rig_with_blocks();
	char *text = text_without_sites(r, false);
	assert_string_equal(text,
			    "  still allocated: 0 bytes in 0 blocks\n"
			    "  younger than 9.001 s: 5,320 bytes in 4 blocks, not shown\n");
	free(text);
	text = text_without_sites(r, true);
	assert_string_equal(text,
			    "  definitely lost: 0 bytes in 0 blocks\n"
			    "  indirectly lost: 0 bytes in 0 blocks\n"
			    "  possibly lost: 0 bytes in 0 blocks\n"
			    "  still reachable: 0 bytes in 0 blocks\n"
			    "  younger than 9.001 s: 5,320 bytes in 4 blocks, not shown\n");
	free(text);
	rig_free(r);
}

static void test_json(void **state)
{
	struct rig *r = rig_with_blocks();
	struct leaks l;
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	leaks_init(&l, &r->report, 10000000, 2500000);
	l.is_checked = true;
	leaks_add(&l, &(struct block){.addr = 0x20000, .size = 5000, .leaf = 2, .time_us = 2000000}, LEAK_POSSIBLE);
	leaks_add(&l, &(struct block){.addr = 0x10000, .size = 1, .leaf = 1, .time_us = 1000000}, LEAK_DEFINITE);
	leaks_add(&l, &(struct block){.addr = 0x10100, .size = 1, .leaf = 1, .time_us = 9000000}, LEAK_DEFINITE);
	leaks_sort(&l);
	leaks_write_json(f, &l);
	fclose(f);
	assert_string_equal(text,
			    "{\n  \"pid\": 12,\n  \"command\": \"a \\\"b\\\"\",\n  \"age\": 2.500,\n"
			    "  \"bytes\": 5001,\n  \"blocks\": 2,\n"
			    "  \"younger\": {\"bytes\": 1, \"blocks\": 1},\n  \"kinds\": {\n"
			    "    \"definitely lost\": {\"bytes\": 1, \"blocks\": 1},\n"
			    "    \"indirectly lost\": {\"bytes\": 0, \"blocks\": 0},\n"
			    "    \"possibly lost\": {\"bytes\": 5000, \"blocks\": 1},\n"
			    "    \"still reachable\": {\"bytes\": 0, \"blocks\": 0}},\n  \"sites\": [\n"
			    "    {\"kind\": \"definitely lost\", \"bytes\": 1, \"blocks\": 1, \"oldest\": 9.000, "
			    "\"youngest\": 9.000, \"stack\": [\n"
			    "      {\"address\": \"0x2000\", \"function\": \"grow\", \"file\": \"/src/a.c\", \"line\": 2, "
			    "\"object\": \"/bin/a\"},\n"
			    "      {\"address\": \"0x1000\", \"function\": \"main\", \"file\": \"/src/a.c\", \"line\": 1, "
			    "\"object\": \"/bin/a\"}]},\n"
			    "    {\"kind\": \"possibly lost\", \"bytes\": 5000, \"blocks\": 1, \"oldest\": 8.000, "
			    "\"youngest\": 8.000, \"stack\": [\n"
			    "      {\"address\": \"0x3000\", \"function\": \"keep \\\"it\\\"\\\\\\u000a\\ufffd\\u202e\", "
			    "\"file\": \"/src/a.c\", \"line\": 3, \"object\": \"/bin/a\"},\n"
			    "      {\"address\": \"0x1000\", \"function\": \"main\", \"file\": \"/src/a.c\", \"line\": 1, "
			    "\"object\": \"/bin/a\"}]}]\n}\n");
	free(text);
	leaks_deinit(&l);
	rig_free(r);
}

static uint64_t path_value(const struct path_tree *t, const char *name)
{
	for (uint32_t i = 0; i < path_tree_node_count(t); i++)
		if (strcmp(path_tree_node(t, i)->name, name) == 0)
			return path_tree_node(t, i)->own[PATH_NEW];
	return UINT64_MAX;
}

static void test_paths(void **state)
{
	static const struct { enum profile_quantity quantity; uint64_t main_value, grow, all; } rows[] = {
		{PATHS_LIVE, 20, 300, 5320}, {PATHS_TOTAL, 77797, 300, 83097}, {PATHS_COUNT, 3, 2, 6},
		{PATHS_PEAK, 77787, 100, 82887},
	};
	struct rig *r = rig_with_blocks();
	profile_finish(r->p, 10000 * MS);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct path_tree *t = path_tree_new();
		assert_int_equal(profile_paths_add(t, &r->report, rows[i].quantity), 0);
		path_tree_sum(t);
		assert_int_equal(path_tree_node(t, 0)->total[PATH_NEW], rows[i].all);
		assert_int_equal(path_value(t, "main"), rows[i].main_value);
		assert_int_equal(path_value(t, "grow"), rows[i].grow);
		path_tree_free(t);
	}
	rig_free(r);
}

static void test_no_peak(void **state)
{
	struct rig *r = rig_new();
	struct path_tree *t = path_tree_new();
	assert_int_equal(profile_paths_add(t, &r->report, PATHS_PEAK), -ENOENT);
	path_tree_free(t);
	rig_free(r);
}

static const struct top_site *row(const struct top_table *t, size_t i)
{
	return &t->sites.data[t->order.data[i]];
}

static void test_top(void **state)
{
	struct rig *r = rig_with_blocks();
	struct top_table t = {0};
	top_table_update(&t, &r->report, 10000 * MS);
	top_table_sort(&t, TOP_LIVE);
	assert_int_equal(t.order.count, 3);
	assert_int_equal(row(&t, 0)->live, 5000);
	assert_int_equal(row(&t, 1)->live, 300);
	assert_int_equal(row(&t, 1)->blocks, 2);
	assert_int_equal(row(&t, 1)->at.frame, 2); /* malloc is no site */
	assert_true(row(&t, 1)->rate == 0);

	top_table_restart(&t);
	release(r, 0x20000);
	allocate(r, 0x60000, 400, 1);
	allocate(r, 0x70000, 1000, 1);
	release(r, 0x70000);
	top_table_update(&t, &r->report, 14000 * MS);
	top_table_sort(&t, TOP_GROWTH);
	assert_int_equal(row(&t, 0)->at.frame, 2);
	assert_int_equal(row(&t, 0)->growth, 400);
	assert_int_equal(row(&t, 0)->since_start, 400);
	assert_true(row(&t, 0)->rate == 350);
	assert_int_equal(row(&t, 2)->growth, -5000);

	top_table_update(&t, &r->report, 15000 * MS);
	top_table_sort(&t, TOP_SINCE_START);
	assert_int_equal(row(&t, 0)->growth, 0);
	assert_int_equal(row(&t, 0)->since_start, 400);
	assert_true(row(&t, 0)->rate == 0);
	assert_int_equal(row(&t, 2)->since_start, -5000);
	top_table_deinit(&t);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sites), cmocka_unit_test(test_equal_sites),
		cmocka_unit_test(test_age), cmocka_unit_test(test_text),
		cmocka_unit_test(test_text_without_code), cmocka_unit_test(test_no_sites),
		cmocka_unit_test(test_json), cmocka_unit_test(test_paths), cmocka_unit_test(test_no_peak),
		cmocka_unit_test(test_top),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
