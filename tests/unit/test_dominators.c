/* The dominator tree of random graphs against a simple search, and of large ones of known form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "graph/dominators.h"
#include "rounds.h"

#define MOST 24u

/* A graph as a matrix; the first `roots` nodes are visited one by one, some in layers of their own. */
struct sample {
	uint32_t nodes, roots;
	bool edge[MOST][MOST];
	uint32_t layer[MOST];   /* of each root, ascending */
	/* as the search is to find it: the layer of each node; 0 = not reached */
	uint32_t found[MOST];
	VEC(uint32_t) edges;
	uint32_t first[MOST + 1];
};

static void spread(struct sample *g, uint32_t node, uint32_t layer)
{
	if (g->found[node])
		return;
	g->found[node] = layer;
	for (uint32_t i = 0; i < g->nodes; i++)
		if (g->edge[node][i])
			spread(g, i, layer);
}

static void fill(struct sample *g, unsigned *seed)
{
	unsigned density = 1 + (unsigned)rand_r(seed) % 20;

	*g = (struct sample){.nodes = 2 + (uint32_t)rand_r(seed) % (MOST - 1)};
	g->roots = 1 + (uint32_t)rand_r(seed) % MIN(g->nodes, 6u);
	for (uint32_t i = 0; i < g->nodes; i++) {
		g->first[i] = (uint32_t)g->edges.count;
		for (uint32_t k = 0; k < g->nodes; k++) {
			/* nothing leads to a root but from the root of all, except to the first */
			g->edge[i][k] = (k == 0 || k >= g->roots) &&
					(unsigned)rand_r(seed) % 40 < density;
			for (unsigned n = g->edge[i][k] ? 1 + (unsigned)rand_r(seed) % 2 : 0; n; n--)
				*vec_add(&g->edges) = k << 1 | (n & 1);
		}
	}
	g->first[g->nodes] = (uint32_t)g->edges.count;
	for (uint32_t i = 0; i < g->roots; i++)
		g->layer[i] = i ? g->layer[i - 1] + ((unsigned)rand_r(seed) % 3 == 0) : 1;
	for (uint32_t i = 0; i < g->roots; i++)
		spread(g, i, g->layer[i]);
}

/* Whether @to is reached from the roots within its layer without @without (UINT32_MAX: with all). */
static bool is_reached(const struct sample *g, uint32_t to, uint32_t without)
{
	bool seen[MOST] = {false};
	uint32_t stack[MOST * MOST + MOST], count = 0;

	for (uint32_t i = 0; i < g->roots; i++)
		if (i != without)
			stack[count++] = i;
	while (count) {
		uint32_t at = stack[--count];

		if (seen[at])
			continue;
		seen[at] = true;
		for (uint32_t i = 0; i < g->nodes; i++)
			if (g->edge[at][i] && i != without && g->found[i] == g->found[at])
				stack[count++] = i;
	}
	return seen[to];
}

static bool dominates(const struct dominators *d, uint32_t number, uint32_t of)
{
	while (of > number)
		of = d->above[of];
	return of == number;
}

static void visit_all(struct dominators *d, const struct sample *g)
{
	for (uint32_t i = 0; i < g->roots; i++) {
		if (i == 0 || g->layer[i] != g->layer[i - 1])
			dominators_add_layer(d);
		dominators_visit(d, i, DOMINATORS_ROOT);
	}
}

static uint32_t top_of(const struct dominators *d, uint32_t number)
{
	while (d->above[number] != DOMINATORS_ROOT)
		number = d->above[number];
	return number;
}

/* Whether a child of the root, @by, leads to @number, another one that the root does not lead to. */
static bool leads_from(const struct sample *g, const struct dominators *d, uint32_t by,
		       uint32_t number)
{
	uint32_t to = d->node[number];

	if (d->above[number] != DOMINATORS_ROOT || to < g->roots || by == number)
		return false;
	for (uint32_t w = 1; w < d->count; w++)
		if (g->edge[d->node[w]][to] && g->found[d->node[w]] == g->found[to] &&
		    top_of(d, w) == by)
			return true;
	return false;
}

static size_t count_shared(const struct dominators *d, uint32_t number, uint32_t by)
{
	size_t count = 0;

	for (size_t i = 0; i < d->shared.count; i++)
		count += d->shared.data[i].number == number && d->shared.data[i].by == by;
	return count;
}

static void check_shared(const struct sample *g, const struct dominators *d)
{
	for (uint32_t w = 1; w < d->count; w++)
		for (uint32_t v = 1; v < d->count; v++)
			assert_int_equal(count_shared(d, w, v), leads_from(g, d, v, w));
	for (size_t i = 1; i < d->shared.count; i++)
		assert_true(d->shared.data[i - 1].number <= d->shared.data[i].number);
}

static void check_sample(struct sample *g)
{
	struct dominators d;
	uint32_t reached = 0;

	dominators_init(&d, g->nodes, g->first, g->edges.data);
	visit_all(&d, g);
	dominators_reverse(&d);
	dominators_find(&d);
	for (uint32_t i = 0; i < g->nodes; i++)
		reached += g->found[i] > 0;
	assert_int_equal(d.count, reached + 1);
	for (uint32_t w = 1; w < d.count; w++)
		for (uint32_t v = 1; v < d.count; v++)
			assert_int_equal(v == w || !is_reached(g, d.node[w], d.node[v]),
					 dominates(&d, v, w));
	check_shared(g, &d);
	dominators_deinit(&d);
	vec_deinit(&g->edges);
}

static void random_graphs_have_the_dominators_of_a_simple_search(void **state)
{
	unsigned seed = 1;

	for (unsigned i = 0, n = rounds(4000); i < n; i++) {
		struct sample g;

		fill(&g, &seed);
		check_sample(&g);
	}
}

/* -- large ones -- */

#define LARGE 1000000u

static struct dominators search_from_0(uint32_t nodes, const uint32_t *first, const uint32_t *edge)
{
	struct dominators d;

	dominators_init(&d, nodes, first, edge);
	dominators_add_layer(&d);
	dominators_visit(&d, 0, DOMINATORS_ROOT);
	dominators_reverse(&d);
	dominators_find(&d);
	return d;
}

static void a_cycle_of_a_million_nodes_is_a_path_in_the_tree(void **state)
{
	uint32_t *first = xcalloc(LARGE + 1, sizeof(*first)), *edge = xcalloc(LARGE, sizeof(*edge));

	for (uint32_t i = 0; i < LARGE; i++) {
		first[i + 1] = i + 1;
		edge[i] = (i + 1) % LARGE << 1;
	}
	struct dominators d = search_from_0(LARGE, first, edge);

	assert_int_equal(d.count, LARGE + 1);
	for (uint32_t w = 1; w < d.count; w++)
		assert_int_equal(d.above[w], w - 1);
	dominators_deinit(&d);
	free(first);
	free(edge);
}

/* A list in both directions, all of whose elements point to one header: to be compressed often. */
static void a_list_of_two_directions_and_a_header_is_a_path(void **state)
{
	uint32_t *first = xcalloc(LARGE + 1, sizeof(*first));
	VEC(uint32_t) edge = {0};

	for (uint32_t i = 0; i < LARGE; i++) {
		first[i] = (uint32_t)edge.count;
		*vec_add(&edge) = 0;
		if (i > 0)
			*vec_add(&edge) = (i - 1) << 1 | 1;
		if (i + 1 < LARGE)
			*vec_add(&edge) = (i + 1) << 1;
	}
	first[LARGE] = (uint32_t)edge.count;
	struct dominators d = search_from_0(LARGE, first, edge.data);

	for (uint32_t w = 1; w < d.count; w++)
		assert_int_equal(d.above[w], w - 1);
	dominators_deinit(&d);
	vec_deinit(&edge);
	free(first);
}

/* Two roots lead to one node: neither dominates it. */
static void ten_million_edges_to_one_node_count_once(void **state)
{
	const uint32_t edges = 10 * LARGE;
	uint32_t *edge = xcalloc(edges + 1, sizeof(*edge)), first[4] = {0, edges, edges + 1, edges + 1};

	for (uint32_t i = 0; i < edges; i++)
		edge[i] = 2 << 1;
	edge[edges] = 2 << 1 | 1;
	struct dominators d;

	dominators_init(&d, 3, first, edge);
	dominators_add_layer(&d);
	assert_true(dominators_visit(&d, 0, DOMINATORS_ROOT));
	assert_true(dominators_visit(&d, 1, DOMINATORS_ROOT));
	assert_false(dominators_visit(&d, 2, DOMINATORS_ROOT));
	dominators_reverse(&d);
	dominators_find(&d);
	for (uint32_t w = 1; w < d.count; w++)
		assert_int_equal(d.above[w], DOMINATORS_ROOT);
	dominators_deinit(&d);
	free(edge);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_graphs_have_the_dominators_of_a_simple_search),
		cmocka_unit_test(a_cycle_of_a_million_nodes_is_a_path_in_the_tree),
		cmocka_unit_test(a_list_of_two_directions_and_a_header_is_a_path),
		cmocka_unit_test(ten_million_edges_to_one_node_count_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
