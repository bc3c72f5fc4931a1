/*
 * Each block below a holder in the dominator tree gets a label: the field of the holder through
 * which all ways to it pass.
 *
 *	holder.a -> x -> z        x: a; y: b; z is reached by both: "several fields"
 *	holder.b -> y -> z
 *
 * An edge from the holder has its field; one from below a sibling has the sibling's label. Labels
 * of siblings are passed on until none changes: each does at most twice.
 *
 * Edges are passed in the order of nodes, not of the tree: so only what is known of the other end
 * is elsewhere in memory, and is read in advance. The sibling above an edge is most often a few
 * levels up; where it is not, the tree is walked, which has the way to the root at hand. It is
 * walked without recursion: it may be a path of any length.
 */
#include "graph/graph_fields.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

#define TYPE_TEXT_MAX 4096u             /* of a type */
#define NO_FIELD UINT32_MAX
#define SEVERAL (UINT32_MAX - 1)
#define NO_TYPE (UINT32_MAX - 1)  /* of blocks without one */
#define SHARED UINT32_MAX
#define NO_LABEL 0u               /* otherwise the number of a row, + 1 */
#define NO_OF (UINT32_MAX - 2)    /* a key that is none */
#define RECENT_KEYS 256u
#define AHEAD 16u                 /* numbers, or edges of one */

/* A field: a number in graph_types.fields, NO_FIELD or SEVERAL, of what graph_field.of says. */
struct field_key {
	uint32_t of, field;
	uint32_t row;
};

/* From below a sibling to another one; of those that are far, from a number below it. */
struct sibling_edge {
	uint32_t from, to;
};

/* The label of a word of something. */
struct word_label {
	uint32_t of, place, label;
};

struct field_search {
	const struct heap_graph *graph;
	const char *shared;     /* a name */
	struct graph_field_rows *rows;
	HASH(struct field_key) keys;
	HASH(uint32_t) texts;   /* numbers of rows */
	/* by number: the first one below it, the next one beside it, its label */
	uint32_t *down, *right, *label;
	struct field_key recent[RECENT_KEYS]; /* those of `keys` that were asked for last */
	struct word_label recent_word[RECENT_KEYS]; /* likewise */
	uint32_t *number;       /* by node */
	VEC(uint32_t) path;     /* from the root to where the walk is */
	VEC(struct sibling_edge) edges;
	VEC(struct sibling_edge) far; /* ascending, from numbers whose siblings are far above */
	uint64_t *is_far;       /* bits by number: it is in `far` */
	uint32_t lost;          /* number of the owner of what is lost */
	VEC(uint32_t) changed;  /* numbers with new labels, when labels are passed on */
	bool notes_changes;
	uint32_t *open;         /* by row: how often it is on the path */
};

/* -- rows -- */

static char *owner_text(const struct graph_owner *o)
{
	const char *kind = graph_owner_kind_name[o->kind];

	if (o->name && (o->kind == OWNER_VARIABLE || o->kind == OWNER_TLS ||
			o->kind == OWNER_GLOBAL || o->kind == OWNER_INTERPRETER))
		return xstrdup(o->name);
	if (o->name && o->kind == OWNER_FRAME)
		return xasprintf("frame of %s", o->name);
	if (o->kind == OWNER_SECTION)
		return xasprintf("%s of %s", o->name ? o->name : "data",
				 o->object ? o->object : "an unknown object");
	return o->kind == OWNER_TLS ? xstrdup("variables of threads") : xasprintf("(%s)", kind);
}

/* "Session" and "orders", "Session[]" and "[*].orders": "Session.orders". */
static char *join_text(const char *of, const char *field)
{
	size_t length = strlen(of);

	if (text_ends_in(of, "[]") && text_begins_with(field, "[*]")) {
		field += 3;
		length -= *field ? 2 : 0;
	}
	return xasprintf("%.*s%s%s", (int)MIN(length, TYPE_TEXT_MAX), of,
			 *field && *field != '[' && *field != '.' ? "." : "", field);
}

static char *row_text(const struct field_search *s, const struct field_key *k)
{
	const struct heap_graph *g = s->graph;
	char *of, *out;

	if (k->of == SHARED)
		return xasprintf("(%s)", s->shared);
	if (k->of == NO_TYPE)
		return xstrdup("(blocks without a type)");
	of = k->of >= GRAPH_FIELDS_OWNER ?
		     owner_text(&g->owners.data[k->of - GRAPH_FIELDS_OWNER]) :
		     xstrdup(g->types.data[k->of]);
	if (k->field < SEVERAL) {
		out = join_text(of, g->typed->fields.data[k->field].name);
	} else if (k->field == NO_FIELD && k->of >= GRAPH_FIELDS_OWNER) {
		return of;
	} else {
		size_t length = strlen(of) - (text_ends_in(of, "[]") ? 2 : 0);

		out = xasprintf("%.*s (%s)", (int)MIN(length, TYPE_TEXT_MAX), of,
				k->field == SEVERAL ? "several fields" : "no field");
	}
	free(of);
	return out;
}

/* The label of field @field of @of. Rows with equal texts are one. */
static uint32_t find_label(struct field_search *s, uint32_t of, uint32_t field)
{
	const struct graph_field_row *rows = s->rows->list.data;
	uint64_t hash = hash_u64((uint64_t)of << 32 | field);
	const struct field_key *known =
		hash_find(&s->keys, hash, k, k->of == of && k->field == field);

	if (known)
		return known->row + 1;
	struct field_key key = {.of = of, .field = field};
	char *text = row_text(s, &key);
	uint64_t text_hash = hash_bytes(text, strlen(text));
	const uint32_t *same = hash_find(&s->texts, text_hash, i, strcmp(rows[*i].text, text) == 0);

	if (same) {
		key.row = *same;
		free(text);
	} else {
		key.row = (uint32_t)s->rows->list.count;
		*vec_add(&s->rows->list) = (struct graph_field_row){.text = text};
		*hash_add(&s->texts, text_hash) = key.row;
	}
	*hash_add(&s->keys, hash) = key;
	return key.row + 1;
}

static uint32_t get_label(struct field_search *s, uint32_t of, uint32_t field)
{
	struct field_key *recent = &s->recent[(of * 31 + field) % RECENT_KEYS];

	if (recent->of != of || recent->field != field)
		*recent = (struct field_key){of, field, find_label(s, of, field) - 1};
	return recent->row + 1;
}

/* What graph_field.of is of @node. */
static uint32_t of_node(const struct heap_graph *g, uint32_t node)
{
	if (!graph_is_block(g, node))
		return GRAPH_FIELDS_OWNER + (node - g->blocks);
	return g->block[node].type < g->types.count ? g->block[node].type : NO_TYPE;
}

/* The label of what the word at @place of @node leads to. */
static uint32_t word_label(struct field_search *s, uint32_t node, uint32_t place)
{
	uint32_t of = of_node(s->graph, node);
	struct word_label *recent = &s->recent_word[(of * 31 + place) % RECENT_KEYS];
	const struct graph_types *t = s->graph->typed;

	if (recent->of == of && recent->place == place)
		return recent->label;
	const struct graph_field *f = of == NO_TYPE || place == GRAPH_FAR ?
					      NULL : graph_types_find(t, of, place);

	*recent = (struct word_label){
		of, place,
		get_label(s, of, f && f->name ? (uint32_t)(f - t->fields.data) : NO_FIELD)};
	return recent->label;
}

/* -- the tree -- */

static void link_tree(struct field_search *s)
{
	const struct dominators *t = &s->graph->tree;

	for (uint32_t i = t->count - 1; i > 0; i--) {
		s->right[i] = s->down[t->above[i]];
		s->down[t->above[i]] = i;
	}
}

static void walk_tree(struct field_search *s, void (*enter)(struct field_search *, uint32_t),
		      void (*leave)(struct field_search *, uint32_t))
{
	uint32_t at = s->down[DOMINATORS_ROOT];

	s->path.count = 0;
	*vec_add(&s->path) = DOMINATORS_ROOT;
	while (true) {
		if (at) {
			*vec_add(&s->path) = at;
			enter(s, at);
			at = s->down[at];
			continue;
		}
		at = s->path.data[--s->path.count];
		if (at == DOMINATORS_ROOT)
			return;
		if (leave)
			leave(s, at);
		at = s->right[at];
	}
}

/* -- labels -- */

static void set_label(struct field_search *s, uint32_t number, uint32_t label)
{
	const struct dominators *t = &s->graph->tree;
	uint32_t old = s->label[number];

	if (old == label)
		return;
	if (old)
		label = get_label(s, of_node(s->graph, t->node[t->above[number]]), SEVERAL);
	if (old == label)
		return;
	s->label[number] = label;
	if (s->notes_changes)
		*vec_add(&s->changed) = number;
}

/* The first number of the layer that has @number: edges to earlier ones do not count. */
static uint32_t layer_start(const struct dominators *t, uint32_t number)
{
	uint32_t layer = t->layers;

	while (layer > 0 && t->layer[layer - 1] > number)
		layer--;
	return layer ? t->layer[layer - 1] : 0;
}

/* What leads to @number without an edge, or its place among owners, is its label from the start. */
static void label_alone(struct field_search *s, uint32_t number)
{
	const struct heap_graph *g = s->graph;
	const struct dominators *t = &g->tree;
	uint32_t node = t->node[number], above = t->above[number];

	if (above == DOMINATORS_ROOT) {
		if (graph_is_block(g, node))
			s->label[number] = get_label(s, SHARED, NO_FIELD);
	} else if (above == s->lost) {
		s->label[number] = get_label(s, of_node(g, t->node[above]), NO_FIELD);
	} else if (!graph_is_block(g, node)) {
		set_label(s, number, get_label(s, of_node(g, node), NO_FIELD));
	}
}

#define CLIMBED_MAX 8u

/* The child of @above that is over @number; NOWHERE: @above is not. FAR: it is not near. */
#define NOWHERE UINT32_MAX
#define FAR (UINT32_MAX - 1)

static uint32_t find_beside(const struct dominators *t, uint32_t number, uint32_t above)
{
	for (uint32_t i = 0; i < CLIMBED_MAX; i++) {
		if (t->above[number] <= above)
			return t->above[number] == above ? number : NOWHERE;
		number = t->above[number];
	}
	return FAR;
}

/* One after the other are often equal: those of an array. */
static void add_sibling(struct field_search *s, struct sibling_edge e)
{
	const struct sibling_edge *last =
		s->edges.count ? &s->edges.data[s->edges.count - 1] : NULL;

	if (!last || last->from != e.from || last->to != e.to)
		*vec_add(&s->edges) = e;
}

/* An edge from number @number leads to @to, which that does not dominate. */
static void pass_sibling(struct field_search *s, uint32_t number, uint32_t to)
{
	uint32_t beside = find_beside(&s->graph->tree, number, s->graph->tree.above[to]);

	if (beside == FAR) {
		*vec_add(&s->far) = (struct sibling_edge){number, to};
		s->is_far[number / 64] |= UINT64_C(1) << number % 64;
	} else if (beside != NOWHERE && beside != to) {
		add_sibling(s, (struct sibling_edge){beside, to});
	}
}

static void pass_edge(struct field_search *s, uint32_t node, uint32_t start, uint32_t e)
{
	const struct heap_graph *g = s->graph;
	uint32_t number = s->number[node], to = s->number[g->edge[e] >> 1];
	uint32_t above = g->tree.above[to];

	if (to < start || to == number || above == DOMINATORS_ROOT || above == s->lost)
		return;
	if (above == number)
		set_label(s, to, word_label(s, node, g->place[e]));
	else
		pass_sibling(s, number, to);
}

/* What pass_edge needs of the edges whose turn is next, which may be other nodes'. */
static void prefetch_edge(const struct field_search *s, uint32_t e, uint32_t edges)
{
	const uint32_t *edge = s->graph->edge;

	if (e + 2 * AHEAD < edges)
		__builtin_prefetch(&s->number[edge[e + 2 * AHEAD] >> 1]);
	if (e + AHEAD < edges) {
		uint32_t to = s->number[edge[e + AHEAD] >> 1];

		__builtin_prefetch(&s->graph->tree.above[to]);
		__builtin_prefetch(&s->label[to], 1);
	}
}

static int compare_edges(const void *a, const void *b)
{
	const struct sibling_edge *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

static void number_nodes(struct field_search *s)
{
	const struct dominators *t = &s->graph->tree;

	for (uint32_t i = 1; i < t->count; i++) {
		if (i + AHEAD < t->count)
			__builtin_prefetch(&s->number[t->node[i + AHEAD]], 1);
		s->number[t->node[i]] = i;
	}
	s->lost = s->number[graph_nodes(s->graph) - 1];
}

static void pass_all_edges(struct field_search *s)
{
	const struct heap_graph *g = s->graph;
	uint32_t nodes = graph_nodes(g), edges = g->first[nodes];
	size_t bytes = ((size_t)nodes + 1) * sizeof(*s->number);

	s->number = huge_alloc(bytes);
	s->is_far = xcalloc((size_t)g->tree.count / 64 + 1, sizeof(*s->is_far));
	number_nodes(s);
	for (uint32_t i = 1; i < g->tree.count; i++)
		label_alone(s, i);
	for (uint32_t node = 0; node < nodes; node++) {
		uint32_t start = layer_start(&g->tree, s->number[node]);

		for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++) {
			prefetch_edge(s, e, edges);
			pass_edge(s, node, start, e);
		}
	}
	vec_sort(&s->far, compare_edges);
	huge_free(s->number, bytes);
}

/* Those whose siblings are far above, when the way there is known: it ascends. */
static void pass_far(struct field_search *s, uint32_t number)
{
	const struct dominators *t = &s->graph->tree;

	if (!(s->is_far[number / 64] >> number % 64 & 1))
		return;
	for (size_t i = vec_search(&s->far, e, e->from < number);
	     i < s->far.count && s->far.data[i].from == number; i++) {
		uint32_t to = s->far.data[i].to, above = t->above[to];
		size_t beside = vec_search(&s->path, p, *p < above) + 1;

		if (beside < s->path.count && s->path.data[beside] != to &&
		    s->path.data[beside - 1] == above)
			add_sibling(s, (struct sibling_edge){s->path.data[beside], to});
	}
}

static bool is_same_edge(const struct sibling_edge *to, struct sibling_edge *from)
{
	return compare_edges(to, from) == 0;
}

/* First those that have a label and edges; then all that get another one. */
static void pass_labels(struct field_search *s)
{
	vec_sort(&s->edges, compare_edges);
	vec_merge(&s->edges, is_same_edge);
	for (size_t i = 0; i < s->edges.count; i++) {
		uint32_t from = s->edges.data[i].from;

		if ((i == 0 || s->edges.data[i - 1].from != from) && s->label[from])
			*vec_add(&s->changed) = from;
	}
	s->notes_changes = true;
	while (s->changed.count > 0) {
		uint32_t from = s->changed.data[--s->changed.count];
		size_t i = vec_search(&s->edges, e, e->from < from);

		for (; i < s->edges.count && s->edges.data[i].from == from; i++)
			set_label(s, s->edges.data[i].to, s->label[from]);
	}
}

/* -- sums -- */

static void open_row(struct field_search *s, uint32_t number)
{
	const struct heap_graph *g = s->graph;
	uint32_t label = s->label[number];

	if (!label)
		return;
	struct graph_field_row *row = &s->rows->list.data[label - 1];

	if (s->open[label - 1]++ == 0) {
		row->bytes += g->retained[number];
		row->blocks += g->retained_blocks[number];
	}
}

static void close_row(struct field_search *s, uint32_t number)
{
	if (s->label[number])
		s->open[s->label[number] - 1]--;
}

static void add_own(struct field_search *s)
{
	const struct heap_graph *g = s->graph;
	const struct dominators *t = &g->tree;

	for (uint32_t i = 1; i < t->count; i++) {
		if (i + AHEAD < t->count)
			__builtin_prefetch(&g->block[MIN(t->node[i + AHEAD], g->blocks)]);
		if (!s->label[i] || !graph_is_block(g, t->node[i]))
			continue;
		struct graph_field_row *row = &s->rows->list.data[s->label[i] - 1];

		row->own_bytes += graph_size(g, t->node[i]);
		row->own_blocks++;
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct graph_field_row *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return strcmp(x->text, y->text);
}

/* Labels that were given up for others leave rows without blocks. */
static void drop_empty(struct graph_field_rows *rows)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->list.count; i++) {
		if (rows->list.data[i].blocks)
			rows->list.data[kept++] = rows->list.data[i];
		else
			free(rows->list.data[i].text);
	}
	rows->list.count = kept;
}

void graph_fields_find(const struct heap_graph *g, const char *shared,
		       struct graph_field_rows *out)
{
	size_t bytes = ((size_t)g->tree.count + 1) * sizeof(uint32_t);
	struct field_search s = {.graph = g, .shared = shared, .rows = out,
				 .label = huge_alloc(bytes)};

	for (size_t i = 0; i < RECENT_KEYS; i++)
		s.recent[i].of = s.recent_word[i].of = NO_OF;
	*out = (struct graph_field_rows){0};
	pass_all_edges(&s);
	s.down = huge_alloc(bytes);
	s.right = huge_alloc(bytes);
	link_tree(&s);
	if (s.far.count > 0)
		walk_tree(&s, pass_far, NULL);
	vec_deinit(&s.far);
	pass_labels(&s);
	s.open = xcalloc(out->list.count + 1, sizeof(*s.open));
	walk_tree(&s, open_row, close_row);
	add_own(&s);
	drop_empty(out);
	vec_sort(&out->list, compare_rows);
	huge_free(s.down, bytes);
	huge_free(s.right, bytes);
	huge_free(s.label, bytes);
	free(s.open);
	free(s.is_far);
	hash_deinit(&s.keys);
	hash_deinit(&s.texts);
	vec_deinit(&s.path);
	vec_deinit(&s.edges);
	vec_deinit(&s.changed);
}

void graph_fields_deinit(struct graph_field_rows *rows)
{
	vec_release(&rows->list, r, free(r->text));
}
