/* Sums walk the dominator tree in its order, without recursion: it may be a path of any length. */
#include "graph/graph_sites.h"

#include <stdlib.h>
#include <string.h>

#include "graph/heap_graph.h"

struct graph_sites *graph_sites_new(uint32_t blocks)
{
	struct graph_sites *s = xcalloc(1, sizeof(*s));

	s->of_block = xcalloc((size_t)blocks + 1, sizeof(*s->of_block));
	return s;
}

void graph_sites_free(struct graph_sites *s)
{
	if (!s)
		return;
	vec_release(&s->functions, f, free(*f));
	vec_deinit(&s->calls);
	vec_deinit(&s->paths);
	hash_deinit(&s->by_name);
	hash_deinit(&s->by_call);
	free(s->of_block);
	free(s);
}

static uint32_t function_of(struct graph_sites *s, const char *name)
{
	uint64_t hash = hash_bytes(name, strlen(name));
	const uint32_t *known =
		hash_find(&s->by_name, hash, i, strcmp(s->functions.data[*i], name) == 0);

	if (known)
		return *known;
	*vec_add(&s->functions) = xstrdup(name);
	return *hash_add(&s->by_name, hash) = (uint32_t)s->functions.count - 1;
}

uint32_t graph_sites_call(struct graph_sites *s, uint32_t caller, const char *name)
{
	const struct graph_call wanted = {function_of(s, name), caller};
	uint64_t hash = hash_u64((uint64_t)wanted.function << 32 | caller);
	const struct graph_call *call = s->calls.data;

	if (caller && call[caller - 1].function == wanted.function)
		return caller;
	const uint32_t *known =
		hash_find(&s->by_call, hash, i, call[*i].function == wanted.function &&
				  call[*i].caller == caller);

	if (known)
		return *known + 1;
	*vec_add(&s->calls) = wanted;
	return (*hash_add(&s->by_call, hash) = (uint32_t)s->calls.count - 1) + 1;
}

uint32_t graph_site_of(const struct heap_graph *g, uint32_t node)
{
	const struct graph_sites *s = g->sites;
	uint32_t path = s && graph_is_block(g, node) ? s->of_block[node] : 0;

	return path ? s->paths.data[path - 1].site : 0;
}

const char *graph_site_function(const struct graph_sites *s, uint32_t site)
{
	return s->functions.data[s->calls.data[site - 1].function];
}

/* -- what sites retain -- */

struct site_walk {
	const struct heap_graph *graph;
	uint32_t *below, *beside; /* by number: the first child, the next sibling; 0 = none */
	uint32_t *open;         /* by site: how many of its blocks are above */
	struct graph_site_sum *sum; /* by site */
};

static void link_children(struct site_walk *w)
{
	const struct dominators *t = &w->graph->tree;

	w->below = xcalloc(t->count, sizeof(*w->below));
	w->beside = xcalloc(t->count, sizeof(*w->beside));
	for (uint32_t i = t->count - 1; i > 0; i--) {
		w->beside[i] = w->below[t->above[i]];
		w->below[t->above[i]] = i;
	}
}

static void enter(struct site_walk *w, uint32_t number)
{
	const struct heap_graph *g = w->graph;
	uint32_t node = g->tree.node[number], site = graph_site_of(g, node);

	if (number == DOMINATORS_ROOT || !graph_is_block(g, node))
		return;
	w->sum[site].bytes += graph_size(g, node);
	w->sum[site].blocks++;
	if (w->open[site]++ > 0)
		return;
	w->sum[site].retained_bytes += g->retained[number];
	w->sum[site].retained_blocks += g->retained_blocks[number];
}

static void leave(struct site_walk *w, uint32_t number)
{
	uint32_t node = w->graph->tree.node[number];

	if (number != DOMINATORS_ROOT && graph_is_block(w->graph, node))
		w->open[graph_site_of(w->graph, node)]--;
}

static void walk_tree(struct site_walk *w)
{
	const struct dominators *t = &w->graph->tree;
	uint32_t at = DOMINATORS_ROOT;

	while (true) {
		enter(w, at);
		if (w->below[at]) {
			at = w->below[at];
			continue;
		}
		leave(w, at);
		while (!w->beside[at]) {
			if (at == DOMINATORS_ROOT)
				return;
			at = t->above[at];
			leave(w, at);
		}
		at = w->beside[at];
	}
}

static int compare_sums(const void *a, const void *b)
{
	const struct graph_site_sum *x = a, *y = b;

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	if (x->retained_bytes != y->retained_bytes)
		return x->retained_bytes > y->retained_bytes ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

void graph_sites_sum(const struct heap_graph *g, struct graph_site_sums *out)
{
	struct site_walk w = {.graph = g};
	size_t sites = g->sites ? g->sites->calls.count + 1 : 1;

	*out = (struct graph_site_sums){0};
	w.open = xcalloc(sites, sizeof(*w.open));
	w.sum = xcalloc(sites, sizeof(*w.sum));
	link_children(&w);
	walk_tree(&w);
	for (uint32_t i = 0; i < sites; i++) {
		w.sum[i].site = i;
		if (w.sum[i].blocks > 0)
			*vec_add(&out->list) = w.sum[i];
	}
	vec_sort(&out->list, compare_sums);
	free(w.below);
	free(w.beside);
	free(w.open);
	free(w.sum);
}

/* -- by owner -- */

static bool merge_sums(struct graph_site_sum *to, struct graph_site_sum *from)
{
	if (to->owner != from->owner || to->site != from->site)
		return false;
	to->bytes += from->bytes;
	to->blocks += from->blocks;
	return true;
}

void graph_owner_sites(const struct heap_graph *g, struct graph_site_sums *out)
{
	const struct dominators *t = &g->tree;
	uint32_t *owner = xcalloc(t->count, sizeof(*owner));
	HASH(struct graph_site_sum) sums = {0};

	*out = (struct graph_site_sums){0};
	for (uint32_t i = 1; i < t->count; i++) {
		bool is_block = graph_is_block(g, t->node[i]);

		owner[i] = t->above[i] != DOMINATORS_ROOT ? owner[t->above[i]] :
			   is_block ? DOMINATORS_ROOT : i;
		if (!is_block)
			continue;
		struct graph_site_sum one = {.owner = owner[i],
					     .site = graph_site_of(g, t->node[i]),
					     .bytes = graph_size(g, t->node[i]), .blocks = 1};
		uint64_t hash = hash_u64((uint64_t)one.owner << 32 | one.site);
		struct graph_site_sum *known = hash_find(
			&sums, hash, s, s->owner == one.owner && s->site == one.site);

		if (!known || !merge_sums(known, &one))
			*hash_add(&sums, hash) = one;
	}
	for (size_t i = 0; hash_next(&sums.index, &i); i++)
		*vec_add(&out->list) = sums.slot[i];
	vec_sort(&out->list, compare_sums);
	hash_deinit(&sums);
	free(owner);
}
