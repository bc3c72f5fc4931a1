/*
 * Numbers of the dominator tree, ascending, are merged to places: nodes of a tree of names. The
 * places become the nodes and leaves of a recording, as the pprof writer has them.
 */
#include "recording/graph_pprof.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "output/graph/graph_sharers.h"
#include "output/graph/graph_text.h"
#include "recording/recording.h"
#include "recording/recording_pprof.h"

#define PLACES_MAX 1000000u     /* blocks beyond are their dominators' */
#define DEPTH_MAX 100u

/* Names: types of blocks, then this, then owners. */
#define NAME_UNKNOWN GRAPH_TYPE_MAX
#define NAME_SHARED (NAME_UNKNOWN + 1)
#define NAME_OWNERS (NAME_UNKNOWN + 2)

struct graph_place {
	uint32_t above;         /* index + 1 of an earlier one; 0 = none */
	uint32_t name, depth;
	uint64_t bytes, blocks; /* of its own */
};

struct graph_places {
	const struct heap_graph *graph;
	VEC(struct graph_place) list;
	HASH(uint32_t) known;   /* indexes */
	uint32_t *of;           /* by number in the tree: index + 1 */
};

/* The place of @name below @above (index + 1), index + 1. */
static uint32_t place_below(struct graph_places *p, uint32_t above, uint32_t name)
{
	uint64_t hash = hash_u64((uint64_t)above << 32 | name);
	const struct graph_place *list = p->list.data;
	const uint32_t *known = hash_find(&p->known, hash, i,
					  list[*i].above == above && list[*i].name == name);
	uint32_t depth = above ? list[above - 1].depth + 1 : 0;

	if (known)
		return *known + 1;
	if (above && (p->list.count >= PLACES_MAX || depth >= DEPTH_MAX))
		return above;
	*vec_add(&p->list) = (struct graph_place){.above = above, .name = name, .depth = depth};
	return (*hash_add(&p->known, hash) = (uint32_t)p->list.count - 1) + 1;
}

/* The same; a name that is already there moves to the end: a stack has the same names then. */
static uint32_t place_at(struct graph_places *p, uint32_t above, uint32_t name)
{
	uint32_t moved[DEPTH_MAX], count = 0, at = above;

	while (at && p->list.data[at - 1].name != name) {
		moved[count++] = p->list.data[at - 1].name;
		at = p->list.data[at - 1].above;
	}
	if (!at)
		return place_below(p, above, name);
	for (at = p->list.data[at - 1].above; count > 0;)
		at = place_below(p, at, moved[--count]);
	return place_below(p, at, name);
}

static void find_places(struct graph_places *p)
{
	const struct heap_graph *g = p->graph;
	const struct dominators *t = &g->tree;

	p->of = xcalloc(t->count, sizeof(*p->of));
	for (uint32_t i = 1; i < t->count; i++) {
		uint32_t node = t->node[i], above = p->of[t->above[i]];

		if (g->retained_blocks[i] == 0)
			continue;
		if (!graph_is_block(g, node)) {
			p->of[i] = place_at(p, above, NAME_OWNERS + (node - g->blocks));
			continue;
		}
		uint32_t type = g->block[node].type, name;

		name = type < g->types.count ? type : NAME_UNKNOWN;
		above = above ?: place_at(p, 0, NAME_SHARED);
		p->of[i] = place_at(p, above, name);
		p->list.data[p->of[i] - 1].bytes += g->block[node].size;
		p->list.data[p->of[i] - 1].blocks++;
	}
}

/* -- the recording -- */

static char *name_text(const struct heap_graph *g, uint32_t name)
{
	return name >= NAME_OWNERS ? graph_owner_text(&g->owners.data[name - NAME_OWNERS]) :
	       name == NAME_SHARED ? graph_sharers_text(g, DOMINATORS_ROOT) :
				     xstrdup(graph_type_name(g, name) ?: "unknown type");
}

/* By name: the row of its frame + 1. */
static uint64_t *add_frames(const struct graph_places *p, struct recording *r)
{
	size_t names = NAME_OWNERS + p->graph->owners.count;
	uint64_t *row = xcalloc(names, sizeof(*row));

	for (size_t i = 0; i < p->list.count; i++) {
		uint32_t name = p->list.data[i].name;

		if (row[name])
			continue;
		char *text = name_text(p->graph, name);
		const uint64_t frame[FRAME_COLUMNS] = {
			[FRAME_FUNCTION] = recording_string(r, text), [FRAME_OBJECT] = 1,
			[FRAME_ADDRESS] = recording_rows(r, RECORDING_FRAMES) + 1};

		recording_add(r, RECORDING_FRAMES, frame);
		row[name] = recording_rows(r, RECORDING_FRAMES);
		free(text);
	}
	return row;
}

/* Each place is a node, and a leaf. */
static void add_places(const struct graph_places *p, struct recording *r)
{
	uint64_t *frame = add_frames(p, r);

	for (size_t i = 0; i < p->list.count; i++) {
		const uint64_t node[NODE_COLUMNS] = {
			[NODE_PARENT] = p->list.data[i].above,
			[NODE_FRAME] = frame[p->list.data[i].name] - 1};
		const uint64_t leaf[LEAF_COLUMNS] = {[LEAF_NODE] = i + 1};

		recording_add(r, RECORDING_NODES, node);
		recording_add(r, RECORDING_LEAVES, leaf);
	}
	free(frame);
}

void graph_pprof_write(FILE *out, const struct heap_graph *g, const char *command)
{
	struct graph_places p = {.graph = g};
	struct recording *r = recording_new();
	/* viewers take the first mapping's file for the program */
	size_t length = strcspn(command, " ");
	const uint64_t object[OBJECT_COLUMNS] = {
		[OBJECT_PATH] = recording_text_index(r, command, length), [OBJECT_END] = 1};

	recording_add(r, RECORDING_OBJECTS, object);
	find_places(&p);
	add_places(&p, r);
	struct pprof_value *value = xcalloc(p.list.count + 1, sizeof(*value));

	for (size_t i = 0; i < p.list.count; i++)
		value[i] = (struct pprof_value){{(int64_t)p.list.data[i].bytes,
						 (int64_t)p.list.data[i].blocks, 0, 0}};
	recording_pprof_write_live(out, r, value);
	free(value);
	recording_free(r);
	hash_deinit(&p.known);
	vec_deinit(&p.list);
	free(p.of);
}
