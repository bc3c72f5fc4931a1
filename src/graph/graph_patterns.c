/*
 * One breadth-first search: a block's pattern is its holder's and a step, and is known when the
 * block is found.
 */
#include "graph/graph_patterns.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

#define STEPS_MAX 64u           /* of a pattern */
#define PLACES_MAX 32u          /* in larger blocks without fields, pointers are of one kind */
#define NOT_SEEN UINT32_MAX

struct pattern_search {
	const struct heap_graph *graph;
	struct graph_patterns *out;
	HASH(uint32_t) known;   /* indexes of out->list */
	uint32_t *pattern;      /* by node: index + 1; 0 = none, of owners */
	uint32_t *element;      /* by type: that of an array's elements, if blocks have it */
	VEC(uint32_t) queue;
	size_t at;
};

static bool is_owner_step(const struct graph_pattern *p)
{
	return p->of >= GRAPH_FIELDS_OWNER;
}

static bool is_same(const struct graph_pattern *a, const struct graph_pattern *b)
{
	if (a->before != b->before || a->of != b->of || !a->field != !b->field)
		return false;
	return a->field ? strcmp(a->field, b->field) == 0 : a->place == b->place;
}

/* The index + 1 of @p, added if it is new. */
static uint32_t intern(struct pattern_search *s, const struct graph_pattern *p)
{
	uint64_t what = p->field ? hash_bytes(p->field, strlen(p->field)) : p->place;
	uint64_t hash = hash_u64(hash_u64((uint64_t)p->before << 32 | p->of) ^ what);
	const struct graph_pattern *list = s->out->list.data;
	const uint32_t *known = hash_find(&s->known, hash, i, is_same(&list[*i], p));
	uint32_t index = (uint32_t)s->out->list.count;

	if (known || index == GRAPH_PATTERNS_MAX) {
		s->out->list.data[known ? *known : 0].is_many |= p->is_many;
		return (known ? *known : 0) + 1;
	}
	*vec_add(&s->out->list) = *p;
	return (*hash_add(&s->known, hash) = index) + 1;
}

/* The step that edge @e of @node is, without what is before it. */
static struct graph_pattern step_of(const struct heap_graph *g, uint32_t node, uint32_t e)
{
	bool is_block = graph_is_block(g, node);
	struct graph_pattern p = {
		.of = is_block ? g->block[node].type : GRAPH_FIELDS_OWNER + (node - g->blocks),
		.place = g->place[e]};

	if (is_block && p.of >= g->types.count)
		p.of = GRAPH_TYPE_MAX;
	if (g->typed && p.place != GRAPH_FAR)
		p.field = graph_types_field(g->typed, p.of, p.place);
	/* words without a name count by their place only in small blocks */
	if (!p.field && (!is_block || g->block[node].size > PLACES_MAX * sizeof(uint64_t)))
		p.place = GRAPH_FAR;
	return p;
}

/* Blocks of a type and of arrays of it are alike: of a list, some may have room for two. */
static uint32_t element_of(const struct pattern_search *s, uint32_t type)
{
	return type < s->graph->types.count ? s->element[type] : type;
}

static void find_elements(struct pattern_search *s)
{
	const struct heap_graph *g = s->graph;
	HASH(uint32_t) by_name = {0};

	s->element = xcalloc(g->types.count + 1, sizeof(*s->element));
	for (uint32_t i = 0; i < g->types.count; i++) {
		const char *name = g->types.data[i];

		s->element[i] = i;
		*hash_add(&by_name, hash_bytes(name, strlen(name))) = i;
	}
	for (uint32_t i = 0; i < g->types.count; i++) {
		const char *name = g->types.data[i];
		size_t length = text_ends_in(name, "[]") ? strlen(name) - 2 : 0;
		const uint32_t *known = hash_find(
			&by_name, hash_bytes(name, length), t,
			strncmp(g->types.data[*t], name, length) == 0 &&
				g->types.data[*t][length] == '\0');

		if (length > 0 && known)
			s->element[i] = *known;
	}
	hash_deinit(&by_name);
}

/* Whether @p leads from one node of a container to another, which is no step. */
static bool is_inside(const struct heap_graph *g, const struct graph_pattern *p, uint32_t to)
{
	return p->of < g->types.count && g->block[to].type == p->of &&
	       text_begins_with(g->types.data[p->of], "node of ");
}

/* The pattern of what edge @e of @node leads to: index + 1. */
static uint32_t follow(struct pattern_search *s, uint32_t node, uint32_t e)
{
	struct graph_pattern p = step_of(s->graph, node, e);
	uint32_t at = p.before = s->pattern[node], steps = 0;

	if (at && is_inside(s->graph, &p, s->graph->edge[e] >> 1))
		return at;
	for (; at && steps < STEPS_MAX; steps++) {
		const struct graph_pattern *old = &s->out->list.data[at - 1];

		if (!is_owner_step(old) && element_of(s, old->of) == element_of(s, p.of)) {
			p.before = old->before;
			p.is_many = true;
			break;
		}
		at = old->before;
	}
	if (steps == STEPS_MAX) {
		s->out->list.data[p.before - 1].is_many = true;
		return p.before;
	}
	return intern(s, &p);
}

static void spread(struct pattern_search *s)
{
	const struct heap_graph *g = s->graph;

	for (; s->at < s->queue.count; s->at++) {
		uint32_t node = s->queue.data[s->at];

		for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++) {
			uint32_t to = g->edge[e] >> 1;

			if (s->pattern[to] != NOT_SEEN)
				continue;
			s->pattern[to] = follow(s, node, e);
			*vec_add(&s->queue) = to;
		}
	}
}

static void start_at(struct pattern_search *s, uint32_t node, uint32_t pattern)
{
	if (s->pattern[node] != NOT_SEEN)
		return;
	s->pattern[node] = pattern;
	*vec_add(&s->queue) = node;
}

/* In the order of graph_way_find. */
static void search(struct pattern_search *s)
{
	const struct heap_graph *g = s->graph;
	uint32_t lost = graph_nodes(g) - 1; /* heap_graph_solve adds it last */
	const struct graph_pattern leaked = {.of = GRAPH_FIELDS_OWNER + (lost - g->blocks),
					     .place = GRAPH_FAR};

	memset(s->pattern, 0xff, graph_nodes(g) * sizeof(*s->pattern));
	for (uint32_t rank = 0; rank < GRAPH_RANKS; rank++) {
		for (uint32_t i = 0; i < g->owners.count; i++)
			if (graph_owner_rank(g->owners.data[i].kind) == rank)
				start_at(s, g->blocks + i, 0);
		for (uint32_t i = 0; i < g->blocks && rank + 1 == GRAPH_RANKS; i++)
			if (g->block[i].is_leader)
				start_at(s, i, intern(s, &leaked));
		spread(s);
	}
}

static int by_bytes(const void *a, const void *b, void *ctx)
{
	const struct graph_patterns *p = ctx;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	uint64_t x = p->list.data[i].bytes, y = p->list.data[k].bytes;

	return x != y ? (x > y ? -1 : 1) : i < k ? -1 : i > k;
}

void graph_patterns_find(const struct heap_graph *g, const uint64_t *is_wanted,
			 struct graph_patterns *out)
{
	struct pattern_search s = {.graph = g, .out = out};

	*out = (struct graph_patterns){0};
	*vec_add(&out->list) = (struct graph_pattern){.of = GRAPH_TYPE_MAX, .place = GRAPH_FAR};
	find_elements(&s);
	s.pattern = xcalloc(graph_nodes(g), sizeof(*s.pattern));
	search(&s);
	for (uint32_t i = 0; i < g->blocks; i++) {
		uint32_t index = s.pattern[i] == NOT_SEEN || !s.pattern[i] ? 0 : s.pattern[i] - 1;
		struct graph_pattern *p = &out->list.data[index];

		if (!(is_wanted[i / 64] >> i % 64 & 1))
			continue;
		if (p->blocks++ == 0) {
			p->example = g->block[i].addr;
			*vec_add(&out->groups) = index;
		}
		p->bytes += g->block[i].size;
	}
	if (out->groups.count > 0)
		qsort_r(out->groups.data, out->groups.count, sizeof(uint32_t), by_bytes, out);
	hash_deinit(&s.known);
	vec_deinit(&s.queue);
	free(s.pattern);
	free(s.element);
}

void graph_patterns_deinit(struct graph_patterns *p)
{
	vec_deinit(&p->list);
	vec_deinit(&p->groups);
}
