/*
 * Choosing of call sites. The trees of all snapshots are merged into one by their
 * lines, each merged node weighing what it held at most. A cut through the merged
 * tree begins at the callers of malloc and is refined: the heaviest site is
 * replaced by its callers while there is room and while they say more than it does.
 */
#include "report/massif_sites.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "report/massif_paths.h"

#define WORTH 0.03     /* of the largest tree: a caller that holds less is not worth an area */
#define COVERAGE 0.6   /* of a site: what its worthy callers must hold to stand for it */
#define CHAIN 0.9      /* of a site: what a caller holds that is all of it but for crumbs */

struct merged {
	struct path_tree *tree;
	uint32_t *place;       /* merged node by node of the file; 0 = none */
	uint64_t *weight;      /* by merged node: the most it held in a snapshot */
	uint32_t *sample;      /* by merged node: a node of the file */
	uint64_t worth;        /* weight below which nothing is shown */
};

struct site {
	uint32_t node;         /* merged */
	bool is_final;
};

struct cut {
	const struct merged *merged;
	VEC(struct site) site;
};

static void place_node(const struct massif_file *f, struct merged *m, uint32_t node)
{
	struct massif_frame frame;
	uint32_t parent = f->node[node].parent;

	massif_file_frame(&f->node[node], &frame);
	if (!parent || frame.line != MASSIF_LINE_FRAME)
		return;
	if (f->node[parent].parent && !m->place[parent])
		return;
	struct massif_text line = massif_file_line(f, f->node[node].text);

	m->place[node] = path_tree_child(m->tree, m->place[parent], line.at, line.size);
}

static void merge(const struct massif_file *f, struct merged *m)
{
	uint64_t largest = 0;

	m->tree = path_tree_new();
	m->place = xcalloc(f->node_count, sizeof(*m->place));
	for (uint32_t i = 1; i < f->node_count; i++)
		place_node(f, m, i);
	m->weight = xcalloc(path_tree_node_count(m->tree), sizeof(*m->weight));
	m->sample = xcalloc(path_tree_node_count(m->tree), sizeof(*m->sample));
	for (uint32_t i = 1; i < f->node_count; i++) {
		uint32_t at = m->place[i];

		if (!f->node[i].parent)
			largest = MAX(largest, f->node[i].bytes);
		if (!at || f->node[i].bytes < m->weight[at])
			continue;
		m->weight[at] = f->node[i].bytes;
		m->sample[at] = i;
	}
	m->worth = MAX(1, (uint64_t)((double)largest * WORTH));
}

static void merged_deinit(struct merged *m)
{
	path_tree_free(m->tree);
	free(m->place);
	free(m->weight);
	free(m->sample);
}

/* The one caller of @node that is all of it but for crumbs; 0 = none. */
static uint32_t only_caller(const struct merged *m, uint32_t node)
{
	uint32_t c = path_tree_node(m->tree, node)->first_child;

	for (; c; c = path_tree_node(m->tree, c)->next_sibling)
		if ((double)m->weight[c] >= CHAIN * (double)m->weight[node])
			return c;
	return 0;
}

static size_t count_worthy(const struct merged *m, uint32_t node, uint64_t *sum_out)
{
	size_t count = 0;
	uint64_t sum = 0;

	for (uint32_t c = path_tree_node(m->tree, node)->first_child; c;
	     c = path_tree_node(m->tree, c)->next_sibling) {
		if (m->weight[c] < m->worth)
			continue;
		count++;
		sum += m->weight[c];
	}
	*sum_out = sum;
	return count;
}

/* Replaces site @i by its callers, if they are worth it and there is room; else it is final. */
static void refine(struct cut *cut, size_t i)
{
	const struct merged *m = cut->merged;
	uint32_t node = cut->site.data[i].node, next;
	uint64_t sum;

	cut->site.data[i].is_final = true;
	while ((next = only_caller(m, node)))
		node = next;
	size_t count = count_worthy(m, node, &sum);

	if (count < 2 || cut->site.count - 1 + count > MASSIF_SITES_MAX ||
	    (double)sum < COVERAGE * (double)m->weight[cut->site.data[i].node])
		return;
	vec_take_swap(&cut->site, i);
	for (uint32_t c = path_tree_node(m->tree, node)->first_child; c;
	     c = path_tree_node(m->tree, c)->next_sibling)
		if (m->weight[c] >= m->worth)
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
	const struct merged *m = cut->merged;

	for (uint32_t c = path_tree_node(m->tree, 0)->first_child; c;
	     c = path_tree_node(m->tree, c)->next_sibling)
		if (m->weight[c] >= m->worth)
			*vec_add(&cut->site) = (struct site){.node = c};
	for (size_t i; (i = heaviest_open(cut)) != SIZE_MAX;)
		refine(cut, i);
	if (cut->site.count)
		qsort_r(cut->site.data, cut->site.count, sizeof(*cut->site.data), compare_sites,
			m->weight);
	cut->site.count = MIN(cut->site.count, (size_t)MASSIF_SITES_MAX);
}

static bool is_named(const char *function)
{
	return strcmp(function, "???") != 0 && strcmp(function, "(below main)") != 0;
}

/* A function without a name is known by the first of its only callers that has one. */
static void set_name(const struct massif_file *f, const struct merged *m, uint32_t node,
		     char **function, char **location)
{
	massif_paths_site(f, m->sample[node], function, location);
	for (uint32_t at = only_caller(m, node); at && !is_named(*function);
	     at = only_caller(m, at)) {
		_cleanup_free_ char *caller = NULL, *ignored = NULL;

		massif_paths_site(f, m->sample[at], &caller, &ignored);
		if (!is_named(caller))
			continue;
		free(*function);
		*function = xasprintf("%s \u2192 ???", caller);
	}
}

static bool is_same(const struct massif_sites *s, size_t i, size_t j)
{
	return !strcmp(s->function[i], s->function[j]) &&
	       !strcmp(s->location[i] ? s->location[i] : "", s->location[j] ? s->location[j] : "");
}

/* Sites that look the same get their address as well. */
static void tell_apart(const struct massif_file *f, const struct cut *cut, struct massif_sites *out)
{
	bool is_double[MASSIF_SITES_MAX] = {false};

	for (size_t i = 0; i < out->count; i++)
		for (size_t j = 0; j < i; j++)
			if (is_same(out, i, j))
				is_double[i] = is_double[j] = true;
	for (size_t i = 0; i < out->count; i++) {
		struct massif_frame frame;
		char *function = out->function[i];

		massif_file_frame(&f->node[cut->merged->sample[cut->site.data[i].node]], &frame);
		if (!is_double[i])
			continue;
		out->function[i] = xasprintf("%s at 0x%" PRIX64, function, frame.address);
		free(function);
	}
}

/* Sums up, snapshot by snapshot, what the nodes that are sites hold. */
static void sum_up(const struct massif_file *f, const struct cut *cut, struct massif_sites *out)
{
	const struct merged *m = cut->merged;
	uint8_t *site_of = xcalloc(path_tree_node_count(m->tree), 1); /* site + 1 by merged node */

	for (size_t i = 0; i < out->count; i++)
		site_of[cut->site.data[i].node] = (uint8_t)(i + 1);
	for (size_t s = 0; s < f->snapshot_count; s++) {
		uint32_t n = f->snapshot[s].root;

		for (; n && n < f->node_count && (n == f->snapshot[s].root || f->node[n].parent);
		     n++)
			if (m->place[n] && site_of[m->place[n]])
				out->bytes[s * MASSIF_SITES_MAX + site_of[m->place[n]] - 1] +=
					f->node[n].bytes;
	}
	free(site_of);
}

void massif_sites_find(const struct massif_file *f, struct massif_sites *out)
{
	struct merged m = {0};
	struct cut cut = {.merged = &m};

	merge(f, &m);
	make_cut(&cut);
	*out = (struct massif_sites){.count = cut.site.count};
	out->bytes = xcalloc(MAX(f->snapshot_count, 1) * MASSIF_SITES_MAX, sizeof(*out->bytes));
	for (size_t i = 0; i < out->count; i++)
		set_name(f, &m, cut.site.data[i].node, &out->function[i], &out->location[i]);
	tell_apart(f, &cut, out);
	sum_up(f, &cut, out);
	vec_deinit(&cut.site);
	merged_deinit(&m);
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
