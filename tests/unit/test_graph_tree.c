/* The rows of a heap graph's page: sums are exact however little room there is, and room is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/json_write.h"
#include "graph/graph_tree.h"
#include "output/graph/graph_page.h"
#include "rounds.h"

/* What a test says of a graph, before it is one. */
struct sample {
	struct heap_graph graph;
	VEC(uint32_t) from, to; /* edges */
};

static void begin(struct sample *s, uint32_t blocks, uint32_t owners)
{
	*s = (struct sample){0};
	heap_graph_init(&s->graph);
	s->graph.keeps_edges = true;
	s->graph.blocks = blocks;
	s->graph.block = huge_alloc(graph_block_bytes(&s->graph));
	for (uint32_t i = 0; i < blocks; i++) {
		s->graph.block[i] = (struct graph_block){
			.addr = 0x1000 + i * UINT64_C(64), .size = 1 + i * 7 % 60,
			.type = GRAPH_TYPE_MAX};
		s->graph.bytes += s->graph.block[i].size;
	}
	for (uint32_t i = 0; i < owners; i++)
		*vec_add(&s->graph.owners) = (struct graph_owner){
			.kind = OWNER_VARIABLE, .name = xasprintf("variable %u", i)};
}

static void add(struct sample *s, uint32_t from, uint32_t to)
{
	*vec_add(&s->from) = from;
	*vec_add(&s->to) = to;
}

static void solve(struct sample *s)
{
	struct heap_graph *g = &s->graph;
	uint32_t nodes = graph_nodes(g);

	g->first_room = (size_t)nodes + 2;
	g->first = huge_alloc(g->first_room * sizeof(*g->first));
	g->edge_room = s->from.count + 1;
	g->edge = huge_alloc(g->edge_room * sizeof(*g->edge));
	g->place = huge_alloc(g->edge_room * sizeof(*g->place));
	for (size_t i = 0; i < s->from.count; i++)
		g->first[s->from.data[i] + 1]++;
	for (uint32_t i = 0; i < nodes; i++)
		g->first[i + 1] += g->first[i];
	uint32_t *at = xmemdup(g->first, nodes * sizeof(*at) + 1);

	for (size_t i = 0; i < s->from.count; i++)
		g->edge[at[s->from.data[i]]++] = s->to.data[i] << 1;
	free(at);
	heap_graph_solve(g);
}

static void end(struct sample *s)
{
	heap_graph_deinit(&s->graph);
	vec_deinit(&s->from);
	vec_deinit(&s->to);
}

/* Children in the tree that retain anything. */
static uint64_t children_of(const struct heap_graph *g, const struct graph_tree_row *r)
{
	uint32_t number = r->kind == GRAPH_ROW_SHARED ? DOMINATORS_ROOT :
							graph_number_of(g, r->node);
	uint64_t count = 0;

	for (uint32_t i = number + 1; i < g->tree.count; i++)
		count += g->tree.above[i] == number && g->retained_blocks[i] > 0 &&
			 (r->kind != GRAPH_ROW_SHARED || graph_is_block(g, g->tree.node[i]));
	return count;
}

struct sums {
	uint64_t bytes, blocks, count;
	size_t rows;
	uint64_t last; /* what the last row retains */
	bool has_rest;
};

static void take_row(struct sums *s, const struct graph_tree_row *r)
{
	bool is_rest = r->kind == GRAPH_ROW_REST;

	assert_false(s->has_rest);
	assert_true(is_rest || !s->rows || r->kind == GRAPH_ROW_SHARED || r->bytes <= s->last);
	s->bytes += r->bytes;
	s->blocks += r->blocks;
	s->count += is_rest ? r->count : r->kind != GRAPH_ROW_SHARED;
	s->rows += !is_rest;
	s->last = r->bytes;
	s->has_rest |= is_rest;
}

/* @counts: also the number of rows that each row of kind REST replaces. */
static void check(const struct heap_graph *g, const struct graph_tree_limits *l,
		  const struct graph_tree *t, bool counts)
{
	struct sums *below = xcalloc(t->list.count + 1, sizeof(*below));
	uint32_t *level = xcalloc(t->list.count + 1, sizeof(*level));
	size_t rows = 0;

	for (size_t i = 0; i < t->list.count; i++) {
		const struct graph_tree_row *r = &t->list.data[i];

		assert_true(r->parent <= i);
		level[i] = r->parent ? level[r->parent - 1] + 1 : 0;
		assert_true(r->kind == GRAPH_ROW_REST || level[i] <= l->depth);
		rows += r->kind != GRAPH_ROW_REST;
		take_row(&below[r->parent], r);
	}
	assert_true(rows <= MAX(l->rows, l->owners + 1));
	assert_int_equal(below[0].bytes, g->bytes);
	assert_int_equal(below[0].blocks, g->blocks);
	for (size_t i = 0; i < t->list.count; i++) {
		const struct graph_tree_row *r = &t->list.data[i];
		const struct sums *s = &below[i + 1];
		bool is_block = r->kind == GRAPH_ROW_BLOCK;

		if (r->kind == GRAPH_ROW_REST)
			continue;
		assert_true(s->rows <= l->most);
		assert_int_equal(s->bytes, r->bytes - (is_block ? graph_size(g, r->node) : 0));
		assert_int_equal(s->blocks, r->blocks - is_block);
		if (counts)
			assert_int_equal(s->count, children_of(g, r));
	}
	free(below);
	free(level);
}

static void test_random(void **state)
{
	for (unsigned round = 0; round < rounds(300); round++) {
		unsigned seed = round;
		uint32_t blocks = 1 + (uint32_t)rand_r(&seed) % 60;
		uint32_t owners = (uint32_t)rand_r(&seed) % 8;
		struct sample s;

		begin(&s, blocks, owners);
		for (uint32_t n = (uint32_t)rand_r(&seed) % (3 * blocks); n > 0; n--)
			add(&s, (uint32_t)rand_r(&seed) % (blocks + owners),
			    (uint32_t)rand_r(&seed) % blocks);
		solve(&s);
		for (unsigned k = 0; k < 20; k++) {
			const struct graph_tree_limits l = {
				.rows = (size_t)rand_r(&seed) % 80,
				.most = (size_t)rand_r(&seed) % 10,
				.owners = (size_t)rand_r(&seed) % 10,
				.depth = (uint32_t)rand_r(&seed) % 6};
			struct graph_tree t;

			graph_tree_find(&s.graph, &l, &t);
			check(&s.graph, &l, &t, true);
			vec_deinit(&t.list);
		}
		end(&s);
	}
}

#define LARGE 400000u

/* A list, an array of blocks, and blocks that two owners share: each has no end. */
static void make_large(struct sample *s)
{
	begin(s, 3 * LARGE, 4);
	for (uint32_t i = 0; i + 1 < LARGE; i++)
		add(s, i, i + 1);
	add(s, 3 * LARGE, 0);
	for (uint32_t i = 0; i < LARGE; i++)
		add(s, 3 * LARGE + 1, LARGE + i);
	for (uint32_t i = 0; i < LARGE; i++) {
		add(s, 3 * LARGE + 2, 2 * LARGE + i);
		add(s, 3 * LARGE + 3, 2 * LARGE + i);
	}
	solve(s);
}

static void test_large(void **state)
{
	const struct graph_tree_limits l = {.rows = 5000, .most = 300, .owners = 10, .depth = 50};
	const struct graph_title title = {.pid = 1, .command = "large"};
	struct graph_tree t;
	struct sample s;
	char *json;
	size_t size;

	make_large(&s);
	graph_tree_find(&s.graph, &l, &t);
	check(&s.graph, &l, &t, false);
	assert_in_range(t.list.count, 600, 2 * l.rows);
	vec_deinit(&t.list);
	FILE *file = open_memstream(&json, &size);

	graph_page_write_json(&(struct json_writer){.out = file}, NULL, &title, &s.graph);
	fclose(file);
	assert_in_range(size, 10000, 4 << 20);
	free(json);
	end(&s);
}

/* Names of any length, each its own. */
static void test_long_names(void **state)
{
	const struct graph_title title = {.pid = 1, .command = "long"};
	struct sample s;
	char *json;
	size_t size;

	begin(&s, 3000, 3000);
	for (uint32_t i = 0; i < 3000; i++) {
		char *name = xcalloc(1, 40001);

		memset(name, 'x', 40000);
		snprintf(name + 100, 20, "%u", i);
		name[100 + strlen(name + 100)] = 'y';
		free(s.graph.owners.data[i].name);
		s.graph.owners.data[i].name = name;
		add(&s, 3000 + i, i);
	}
	solve(&s);
	FILE *file = open_memstream(&json, &size);

	graph_page_write_json(&(struct json_writer){.out = file}, NULL, &title, &s.graph);
	fclose(file);
	assert_in_range(size, 100000, 12 << 20);
	free(json);
	end(&s);
}

/* A long way is left out, one that is less long has its middle cut out. */
static void test_ways(void **state)
{
	struct sample s;

	begin(&s, 400, 1);
	for (uint32_t i = 0; i + 1 < 400; i++)
		add(&s, i, i + 1);
	add(&s, 400, 0);
	solve(&s);
	struct graph_ways *ways = graph_ways_new(&s.graph);

	for (uint32_t i = 0; i < 400; i++) {
		struct graph_way all, some;

		graph_way_find(&s.graph, i, &all);
		graph_ways_find(ways, i, 100, &some);
		assert_int_equal(all.steps.count, i + 2);
		assert_int_equal(some.steps.count, i + 2 <= 100 ? i + 2 : 0);
		for (size_t k = 0; k < some.steps.count; k++)
			assert_int_equal(some.steps.data[k].node, all.steps.data[k].node);
		char *text = graph_way_text(&s.graph, &some);

		assert_int_equal(strstr(text, " more)") != NULL, i >= 21 && i + 2 <= 100);
		assert_int_equal(*text != '\0', i + 2 <= 100);
		free(text);
		vec_deinit(&all.steps);
		vec_deinit(&some.steps);
	}
	graph_ways_free(ways);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
