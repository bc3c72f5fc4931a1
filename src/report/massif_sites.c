/*
 * Chooses call sites: a cut through the merged tree (massif_merged.h). It starts at the innermost
 * functions and is refined: the heaviest site is replaced by its callers while there is room and
 * they are more informative.
 */
#include "report/massif_sites.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/vec.h"
#include "report/massif_labels.h"
#include "report/massif_merged.h"

#define WORTH 0.03     /* of the largest tree: a caller with less is not worth an area */
#define COVERAGE 0.6   /* of a site: minimum share of such callers for replacing it */

struct site {
	uint32_t node;         /* merged */
	bool is_final;
};

struct cut {
	const struct massif_merged *merged;
	uint64_t worth;        /* minimum weight for being shown */
	VEC(struct site) site;
};

static size_t count_worthy(const struct cut *cut, uint32_t node, uint64_t *sum_out)
{
	const struct massif_merged *m = cut->merged;
	size_t count = 0;
	uint64_t sum = 0;

	for (uint32_t c = path_tree_node(m->tree, node)->first_child; c;
	     c = path_tree_node(m->tree, c)->next_sibling) {
		if (m->weight[c] < cut->worth)
			continue;
		count++;
		sum += m->weight[c];
	}
	*sum_out = sum;
	return count;
}

/* Replaces site @i by its callers if they are worth it and there is room; otherwise it is final. */
static void refine(struct cut *cut, size_t i)
{
	const struct massif_merged *m = cut->merged;
	uint32_t node = cut->site.data[i].node, next;
	uint64_t sum;

	cut->site.data[i].is_final = true;
	while ((next = massif_merged_only_caller(m, node)))
		node = next;
	size_t count = count_worthy(cut, node, &sum);

	if (count < 2 || cut->site.count - 1 + count > MASSIF_SITES_MAX ||
	    (double)sum < COVERAGE * (double)m->weight[cut->site.data[i].node])
		return;
	vec_take_swap(&cut->site, i);
	for (uint32_t c = path_tree_node(m->tree, node)->first_child; c;
	     c = path_tree_node(m->tree, c)->next_sibling)
		if (m->weight[c] >= cut->worth)
			*vec_add(&cut->site) = (struct site){.node = c};
}

static size_t heaviest_open(const struct cut *cut)
{
	const uint64_t *weight = cut->merged->weight;
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < cut->site.count; i++) {
		const struct site *s = &cut->site.data[i];

		if (!s->is_final &&
		    (best == SIZE_MAX || weight[s->node] > weight[cut->site.data[best].node]))
			best = i;
	}
	return best;
}

static int compare_sites(const void *a, const void *b, void *ctx)
{
	const uint64_t *weight = ctx;
	uint32_t x = ((const struct site *)a)->node, y = ((const struct site *)b)->node;

	if (weight[x] != weight[y])
		return weight[x] < weight[y] ? 1 : -1;
	return x < y ? -1 : x > y;
}

static void make_cut(struct cut *cut)
{
	const struct massif_merged *m = cut->merged;

	for (uint32_t c = path_tree_node(m->tree, 0)->first_child; c;
	     c = path_tree_node(m->tree, c)->next_sibling)
		if (m->weight[c] >= cut->worth)
			*vec_add(&cut->site) = (struct site){.node = c};
	for (size_t i; (i = heaviest_open(cut)) != SIZE_MAX;)
		refine(cut, i);
	if (cut->site.count)
		qsort_r(cut->site.data, cut->site.count, sizeof(*cut->site.data), compare_sites,
			m->weight);
	cut->site.count = MIN(cut->site.count, (size_t)MASSIF_SITES_MAX);
}

/* Adds up the bytes of the nodes that are sites, for each snapshot. */
static void sum_up(const struct massif_file *f, const struct cut *cut, struct massif_sites *out)
{
	const struct massif_merged *m = cut->merged;
	uint8_t *site_of = xcalloc(path_tree_node_count(m->tree), 1); /* site + 1 by merged node */

	for (size_t i = 0; i < out->count; i++)
		site_of[cut->site.data[i].node] = (uint8_t)(i + 1);
	for (size_t s = 0; s < f->snapshot_count; s++) {
		uint32_t root = f->snapshot[s].root;

		for (uint32_t n = root, end = root ? massif_tree_end(f, root) : 0; n < end; n++) {
			const struct massif_place *p = &m->place[n];

			if (p->node && site_of[p->node])
				out->bytes[s * MASSIF_SITES_MAX + site_of[p->node] - 1] += p->bytes;
		}
	}
	free(site_of);
}

void massif_sites_find(const struct massif_file *f, struct massif_sites *out)
{
	struct massif_merged m;
	uint32_t node[MASSIF_SITES_MAX];
	struct cut cut = {.merged = &m};

	massif_merge(f, &m);
	cut.worth = MAX(1, (uint64_t)((double)m.largest * WORTH));
	make_cut(&cut);
	*out = (struct massif_sites){.count = cut.site.count};
	out->bytes = xcalloc(MAX(f->snapshot_count, 1) * MASSIF_SITES_MAX, sizeof(*out->bytes));
	for (size_t i = 0; i < out->count; i++)
		node[i] = cut.site.data[i].node;
	massif_labels_set(&m, node, out);
	sum_up(f, &cut, out);
	vec_deinit(&cut.site);
	massif_merged_deinit(&m);
}

void massif_sites_deinit(struct massif_sites *sites)
{
	for (size_t i = 0; i < sites->count; i++) {
		free(sites->function[i]);
		free(sites->location[i]);
	}
	free(sites->bytes);
	*sites = (struct massif_sites){0};
}
