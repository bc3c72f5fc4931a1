/* Questions about random heap graphs, against plain searches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/graph_leaks.h"
#include "graph/graph_patterns.h"
#include "graph/graph_set.h"
#include "graph/graph_sharing.h"
#include "graph/graph_sites.h"
#include "graph/graph_view.h"
#include "graph/heap_graph.h"
#include "rounds.h"

#define MOST 40u
#define SITES 4u

/* Nodes are those of the graph, the owner of lost blocks the last. */
struct sample {
	struct heap_graph graph;
	bool edge[MOST][MOST];
	uint32_t nodes;
	uint32_t rank[MOST];    /* in which a node is found first */
};

static void add_edges(struct sample *s, unsigned *seed)
{
	struct heap_graph *g = &s->graph;
	unsigned density = 1 + (unsigned)rand_r(seed) % 12;
	uint32_t count = 0, nodes = graph_nodes(g);

	g->first_room = nodes + 2;
	g->first = huge_alloc(g->first_room * sizeof(*g->first));
	g->edge_room = MOST * MOST;
	g->edge = huge_alloc(g->edge_room * sizeof(*g->edge));
	g->place = huge_alloc(g->edge_room * sizeof(*g->place));
	for (uint32_t i = 0; i < nodes; i++) {
		for (uint32_t k = 0; k < g->blocks; k++) {
			s->edge[i][k] = i != k && (unsigned)rand_r(seed) % 80 < density;
			if (!s->edge[i][k])
				continue;
			g->place[count] = (unsigned)rand_r(seed) % 3;
			g->edge[count++] = k << 1 | ((unsigned)rand_r(seed) & 1);
		}
		g->first[i + 1] = count;
	}
}

static void add_sites(struct sample *s, unsigned *seed)
{
	static const char *const name[SITES] = {"a", "b", "c", "d"};
	struct graph_sites *sites = graph_sites_new(s->graph.blocks);

	for (size_t i = 0; i < SITES; i++) {
		uint32_t call = graph_sites_call(sites, i ? graph_sites_call(sites, 0, "main") : 0,
						 name[i]);

		*vec_add(&sites->paths) = (struct graph_path){call, call};
	}
	for (uint32_t i = 0; i < s->graph.blocks; i++)
		sites->of_block[i] = (unsigned)rand_r(seed) % (SITES + 1);
	s->graph.sites = sites;
}

static void mark_rank(struct sample *s, uint32_t node, uint32_t rank)
{
	if (s->rank[node] != UINT32_MAX)
		return;
	s->rank[node] = rank;
	for (uint32_t i = 0; i < s->graph.blocks; i++)
		if (s->edge[node][i])
			mark_rank(s, i, rank);
}

static void find_ranks(struct sample *s)
{
	const struct heap_graph *g = &s->graph;

	memset(s->rank, 0xff, sizeof(s->rank));
	for (uint32_t rank = 0; rank < GRAPH_RANKS; rank++) {
		for (uint32_t i = 0; i < g->owners.count; i++)
			if (graph_owner_rank(g->owners.data[i].kind) == rank)
				mark_rank(s, g->blocks + i, rank);
		for (uint32_t i = 0; i < g->blocks && rank + 1 == GRAPH_RANKS; i++)
			if (g->block[i].is_leader)
				mark_rank(s, i, rank);
	}
}

static void fill(struct sample *s, unsigned *seed)
{
	static const enum graph_owner_kind kind[] = {OWNER_VARIABLE, OWNER_VARIABLE, OWNER_STACK,
						     OWNER_MAPPING};
	struct heap_graph *g = &s->graph;
	uint32_t owners = 1 + (unsigned)rand_r(seed) % 6;

	*s = (struct sample){0};
	heap_graph_init(g);
	g->keeps_edges = true;
	g->blocks = 1 + (unsigned)rand_r(seed) % (MOST - 8);
	g->block = huge_alloc(graph_block_bytes(g));
	*vec_add(&g->types) = xstrdup("node");
	*vec_add(&g->types) = xstrdup("node[]");
	*vec_add(&g->types) = xstrdup("leaf");
	for (uint32_t i = 0; i < g->blocks; i++) {
		g->block[i] = (struct graph_block){.addr = 0x1000 + i * 0x100,
						   .size = 8 + (unsigned)rand_r(seed) % 100,
						   .type = (unsigned)rand_r(seed) % 4};
		g->bytes += g->block[i].size;
	}
	for (uint32_t i = 0; i < owners; i++)
		*vec_add(&g->owners) = (struct graph_owner){
			.kind = kind[(unsigned)rand_r(seed) % ARRAY_SIZE(kind)], .addr = i + 1};
	add_edges(s, seed);
	add_sites(s, seed);
	heap_graph_solve(g);
	s->nodes = graph_nodes(g);
	find_ranks(s);
}

static bool is_in(const uint64_t *set, uint32_t block)
{
	return set[block / 64] >> block % 64 & 1;
}

static void add(uint64_t *set, uint32_t block)
{
	set[block / 64] |= UINT64_C(1) << block % 64;
}

static void spread(const struct sample *s, const uint64_t *without, uint32_t node, bool *seen)
{
	if (seen[node] || (node < s->graph.blocks && is_in(without, node)))
		return;
	seen[node] = true;
	for (uint32_t i = 0; i < s->graph.blocks; i++)
		if (s->edge[node][i] && s->rank[i] == s->rank[node])
			spread(s, without, i, seen);
}

/* Adds the blocks that nothing leads to without the set @without. */
static void find_free(const struct sample *s, const uint64_t *without, uint64_t *out)
{
	const struct heap_graph *g = &s->graph;
	bool seen[MOST] = {false};

	for (uint32_t i = 0; i < s->nodes; i++)
		if (!graph_is_block(g, i) || g->block[i].is_leader)
			spread(s, without, i, seen);
	for (uint32_t i = 0; i < g->blocks; i++)
		if (!seen[i])
			add(out, i);
}

static void check_amount(const struct sample *s, const uint64_t *set, struct graph_amount found)
{
	struct graph_amount all = {0};

	for (uint32_t i = 0; i < s->graph.blocks; i++)
		if (is_in(set, i)) {
			all.bytes += s->graph.block[i].size;
			all.blocks++;
		}
	assert_int_equal(all.bytes, found.bytes);
	assert_int_equal(all.blocks, found.blocks);
}

/* What the blocks of @set retain, each by itself. */
static void find_each(const struct sample *s, const uint64_t *set, uint64_t *out)
{
	for (uint32_t i = 0; i < s->graph.blocks; i++) {
		uint64_t one[1] = {0};

		if (!is_in(set, i))
			continue;
		add(one, i);
		find_free(s, one, out);
	}
}

static void test_sets(void **state)
{
	(void)state;
	for (unsigned round = 0; round < rounds(3000); round++) {
		struct sample s;
		unsigned seed = round;
		uint64_t set[1] = {0}, all[1] = {0}, each[1] = {0};

		fill(&s, &seed);
		for (uint32_t i = 0; i < s.graph.blocks; i++)
			if (rand_r(&seed) % 4 == 0)
				add(set, i);
		find_free(&s, set, all);
		check_amount(&s, all, graph_set_all(&s.graph, set));
		find_each(&s, set, each);
		check_amount(&s, each, graph_set_each(&s.graph, set));
		heap_graph_deinit(&s.graph);
	}
}

static void test_sites(void **state)
{
	(void)state;
	for (unsigned round = 0; round < rounds(1000); round++) {
		struct sample s;
		unsigned seed = round;
		struct graph_site_sums sums;
		uint64_t bytes = 0;

		fill(&s, &seed);
		graph_sites_sum(&s.graph, &sums);
		for (size_t i = 0; i < sums.list.count; i++) {
			const struct graph_site_sum *sum = &sums.list.data[i];
			uint64_t set[1] = {0}, each[1] = {0};

			for (uint32_t k = 0; k < s.graph.blocks; k++)
				if (graph_site_of(&s.graph, k) == sum->site)
					add(set, k);
			check_amount(&s, set, (struct graph_amount){sum->bytes, sum->blocks});
			find_each(&s, set, each);
			check_amount(&s, each, (struct graph_amount){sum->retained_bytes,
								     sum->retained_blocks});
			bytes += sum->bytes;
		}
		assert_int_equal(bytes, s.graph.bytes);
		vec_deinit(&sums.list);
		graph_owner_sites(&s.graph, &sums);
		for (size_t i = 0; i < sums.list.count; i++)
			bytes -= sums.list.data[i].bytes;
		assert_int_equal(bytes, 0);
		vec_deinit(&sums.list);
		heap_graph_deinit(&s.graph);
	}
}

/* The number of the root's child that @node is below; 0 = it is shared. */
static uint32_t owner_of(const struct heap_graph *g, uint32_t node)
{
	uint32_t number = graph_number_of(g, node);

	while (g->tree.above[number] != DOMINATORS_ROOT)
		number = g->tree.above[number];
	return graph_is_block(g, g->tree.node[number]) ? 0 : number;
}

static void test_sharing(void **state)
{
	(void)state;
	for (unsigned round = 0; round < rounds(1000); round++) {
		struct sample s;
		unsigned seed = round;
		struct graph_sharing found;
		size_t sharers = 0;

		fill(&s, &seed);
		graph_sharing_find(&s.graph, DOMINATORS_ROOT, &found);
		for (uint32_t o = s.graph.blocks; o < s.nodes; o++) {
			uint64_t none[1] = {0}, set[1] = {0};
			bool seen[MOST] = {false};
			struct graph_amount sum = {0};

			spread(&s, none, o, seen);
			for (uint32_t i = 0; i < s.graph.blocks; i++)
				if (seen[i] && !owner_of(&s.graph, i))
					add(set, i);
			for (size_t i = 0; i < found.list.count; i++)
				if (s.graph.tree.node[found.list.data[i].owner] == o)
					sum = (struct graph_amount){found.list.data[i].bytes,
								    found.list.data[i].blocks};
			check_amount(&s, set, sum);
			sharers += set[0] != 0;
		}
		assert_int_equal(found.list.count, sharers);
		assert_int_equal(found.others, 0);
		vec_deinit(&found.list);
		heap_graph_deinit(&s.graph);
	}
}

static void test_patterns(void **state)
{
	(void)state;
	for (unsigned round = 0; round < rounds(1000); round++) {
		struct sample s;
		unsigned seed = round;
		struct graph_patterns p;
		struct graph_way way;
		uint64_t set[1] = {0};
		struct graph_amount sum = {0};

		fill(&s, &seed);
		uint32_t block = (unsigned)rand_r(&seed) % s.graph.blocks;

		/* one block has the owner, and the last type, of its way */
		add(set, block);
		graph_patterns_find(&s.graph, set, &p);
		graph_way_find(&s.graph, block, &way);
		assert_int_equal(p.groups.count, 1);
		const struct graph_pattern *last = &p.list.data[p.groups.data[0]], *first = last;
		uint32_t start = way.steps.data[0].node, steps = 0;

		for (; first->before; steps++)
			first = &p.list.data[first->before - 1];
		assert_int_equal(first->of - GRAPH_FIELDS_OWNER + s.graph.blocks,
				 graph_is_block(&s.graph, start) ? s.nodes - 1 : start);
		assert_true(steps <= 4);
		graph_patterns_deinit(&p);
		vec_deinit(&way.steps);
		set[0] = UINT64_MAX;
		graph_patterns_find(&s.graph, set, &p);
		for (size_t i = 0; i < p.groups.count; i++) {
			sum.bytes += p.list.data[p.groups.data[i]].bytes;
			sum.blocks += p.list.data[p.groups.data[i]].blocks;
		}
		check_amount(&s, set, sum);
		graph_patterns_deinit(&p);
		heap_graph_deinit(&s.graph);
	}
}

static void test_leaks(void **state)
{
	(void)state;
	for (unsigned round = 0; round < rounds(1000); round++) {
		struct sample s;
		unsigned seed = round;
		struct graph_leaks found;
		uint64_t lost[1] = {0};
		struct graph_amount sum = {0};

		fill(&s, &seed);
		graph_leaks_find(&s.graph, &found);
		for (uint32_t i = 0; i < s.graph.blocks; i++)
			if (s.rank[i] == GRAPH_RANKS - 1)
				add(lost, i);
		for (size_t i = 0; i < found.list.count; i++) {
			const struct graph_leak *l = &found.list.data[i];

			sum.bytes += l->bytes;
			sum.blocks += l->blocks;
			assert_true(l->held <= l->others && (l->held > 0) == (l->others > 0));
		}
		check_amount(&s, lost, sum);
		vec_deinit(&found.list);
		heap_graph_deinit(&s.graph);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sets), cmocka_unit_test(test_sites),
		cmocka_unit_test(test_sharing), cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_leaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
