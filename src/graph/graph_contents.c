/* Each number in the tree gets the row of what is above it, in ascending order. */
#include "graph/graph_contents.h"

#include "base/hash.h"

#define AHEAD 16u

static int compare_contents(const void *a, const void *b)
{
	const struct graph_content *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->type < y->type ? -1 : x->type > y->type;
}

/* By number: its row + 1; 0 = is in none. To be freed with huge_free. */
static uint32_t *find_rows(const struct heap_graph *g, const struct graph_rows *rows)
{
	const struct dominators *t = &g->tree;
	uint32_t *row = huge_alloc((size_t)t->count * sizeof(*row) + 1);

	for (size_t i = 0; i < rows->list.count; i++)
		if (rows->list.data[i].level == 0 && rows->list.data[i].kind == GRAPH_ROW_OWNER)
			row[rows->list.data[i].number] = (uint32_t)i + 1;
	for (uint32_t n = DOMINATORS_ROOT + 1; n < t->count; n++)
		if (!row[n] && t->above[n] != DOMINATORS_ROOT)
			row[n] = row[t->above[n]];
	return row;
}

void graph_contents_find(const struct heap_graph *g, const struct graph_rows *rows,
			 struct graph_contents *out)
{
	uint32_t *row = find_rows(g, rows);
	HASH(struct graph_content) sums = {0};

	*out = (struct graph_contents){0};
	for (uint32_t n = DOMINATORS_ROOT + 1; n < g->tree.count; n++) {
		uint32_t node = g->tree.node[n];

		if (n + AHEAD < g->tree.count)
			__builtin_prefetch(&g->block[MIN(g->tree.node[n + AHEAD], g->blocks)]);
		if (!row[n] || !graph_is_block(g, node) || g->block[node].type >= g->types.count)
			continue;
		uint32_t r = row[n] - 1, type = g->block[node].type;
		uint64_t hash = hash_u64((uint64_t)r << 32 | type);
		struct graph_content *c = hash_find(&sums, hash, e,
						    e->row == r && e->type == type);

		if (!c) {
			c = hash_add(&sums, hash);
			*c = (struct graph_content){.row = r, .type = type};
		}
		c->blocks++;
		c->bytes += g->block[node].size;
	}
	for (size_t i = 0; hash_next(&sums.index, &i); i++)
		*vec_add(&out->list) = sums.slot[i];
	vec_sort(&out->list, compare_contents);
	hash_deinit(&sums);
	huge_free(row, (size_t)g->tree.count * sizeof(*row) + 1);
}
