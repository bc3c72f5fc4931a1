/*
 * Columns of the rows of the tree; texts are in a list, each once:
 *
 *	"texts":["","cache in prog","variable","Session","prog: cache.by_user[*]"],
 *	"rows":{"row":["owner","block"],"parent":[-1,0],"name":[1,3],"type":[2,3], ... "way":[0,4]}
 */
#include "output/graph/graph_page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/json_write.h"
#include "base/log.h"
#include "base/text.h"
#include "graph/graph_tree.h"
#include "output/graph/graph_sharers.h"
#include "output/graph/graph_tables.h"
#include "output/html_page.h"

#define ROWS 20000u
#define MOST 500u
#define OWNERS 1000u
#define DEPTH 100u
#define TABLE_ROWS 1000u        /* of each table of types */
#define STEPS 256u              /* of a way; longer ones are left out */
#define TEXT_CHARACTERS 600u    /* of one text */
#define TEXT_BYTES (8u << 20)   /* of all: further ones are "" */

struct page_texts {
	VEC(char *) list;       /* [0] is "", unknown; owned */
	HASH(uint32_t) index;   /* of list, by hash */
	size_t bytes;
};

/* What the rows say besides numbers: indexes of texts. */
struct row_texts {
	uint32_t name, type, way;
};

struct graph_page {
	const struct heap_graph *graph;
	struct graph_tree tree;
	struct page_texts texts;
	struct row_texts *row;
};

/* The index of @text, which NULL is unknown. */
static uint32_t text_index(struct page_texts *t, const char *text)
{
	if (!text || !*text)
		return 0;
	_cleanup_free_ char *cut = text_cut(text, TEXT_CHARACTERS);
	size_t size = strlen(cut);
	uint64_t hash = hash_bytes(cut, size);
	const uint32_t *known = hash_find(&t->index, hash, i, strcmp(t->list.data[*i], cut) == 0);

	if (known)
		return *known;
	if (t->bytes + size > TEXT_BYTES)
		return 0;
	t->bytes += size;
	*vec_add(&t->list) = xstrdup(cut);
	return *hash_add(&t->index, hash) = (uint32_t)t->list.count - 1;
}

static void name_owner(struct graph_page *p, const struct graph_owner *o, struct row_texts *out)
{
	_cleanup_free_ char *text = graph_owner_text(o);

	out->name = text_index(&p->texts, text);
	out->type = text_index(&p->texts, graph_owner_kind_name[o->kind]);
}

static void name_block(struct graph_page *p, const struct graph_ways *ways, uint32_t block,
		       struct row_texts *out)
{
	struct graph_way way = {0};

	out->type = text_index(&p->texts, graph_type_name(p->graph, p->graph->block[block].type));
	if (ways)
		graph_ways_find(ways, block, STEPS, &way);
	_cleanup_free_ char *text = graph_way_text(p->graph, &way);

	out->way = text_index(&p->texts, text);
	vec_deinit(&way.steps);
}

static void name_shared(struct graph_page *p, struct row_texts *out)
{
	_cleanup_free_ char *text = graph_sharers_text(p->graph, DOMINATORS_ROOT);

	out->name = text_index(&p->texts, text);
}

static void name_rows(struct graph_page *p)
{
	const struct heap_graph *g = p->graph;
	struct graph_ways *ways = g->place ? graph_ways_new(g) : NULL;

	*vec_add(&p->texts.list) = xstrdup("");
	p->row = xcalloc(p->tree.list.count + 1, sizeof(*p->row));
	for (size_t i = 0; i < p->tree.list.count; i++) {
		const struct graph_tree_row *r = &p->tree.list.data[i];

		if (r->kind == GRAPH_ROW_OWNER)
			name_owner(p, &g->owners.data[r->node - g->blocks], &p->row[i]);
		else if (r->kind == GRAPH_ROW_BLOCK)
			name_block(p, ways, r->node, &p->row[i]);
		else if (r->kind == GRAPH_ROW_SHARED)
			name_shared(p, &p->row[i]);
	}
	if (ways)
		graph_ways_free(ways);
}

/* -- columns -- */

static void put_kinds(struct json_writer *w, const struct graph_page *p)
{
	json_write_open(json_write_line(w, 0), "row", '[');
	for (size_t i = 0; i < p->tree.list.count; i++)
		json_write_text(w, NULL, graph_row_kind_name[p->tree.list.data[i].kind]);
	json_write_close(w, 1);
	json_write_open(json_write_line(w, 0), "parent", '[');
	for (size_t i = 0; i < p->tree.list.count; i++)
		json_write_format(w, NULL, "%ld", (long)p->tree.list.data[i].parent - 1);
	json_write_close(w, 1);
}

static void put_texts(struct json_writer *w, const struct graph_page *p)
{
	static const struct {
		const char *name;
		size_t offset;
	} columns[] = {{"name", offsetof(struct row_texts, name)},
		       {"type", offsetof(struct row_texts, type)},
		       {"way", offsetof(struct row_texts, way)}};

	for (size_t k = 0; k < ARRAY_SIZE(columns); k++) {
		json_write_open(json_write_line(w, 0), columns[k].name, '[');
		for (size_t i = 0; i < p->tree.list.count; i++) {
			uint32_t value;

			memcpy(&value, (const char *)&p->row[i] + columns[k].offset,
			       sizeof(value));
			json_write_number(w, NULL, value);
		}
		json_write_close(w, 1);
	}
}

static void put_sizes(struct json_writer *w, const struct graph_page *p)
{
	static const struct {
		const char *name;
		size_t offset;
	} columns[] = {{"retained_bytes", offsetof(struct graph_tree_row, bytes)},
		       {"retained_blocks", offsetof(struct graph_tree_row, blocks)},
		       {"count", offsetof(struct graph_tree_row, count)}};

	for (size_t k = 0; k < ARRAY_SIZE(columns); k++) {
		json_write_open(json_write_line(w, 0), columns[k].name, '[');
		for (size_t i = 0; i < p->tree.list.count; i++) {
			uint64_t value;

			memcpy(&value, (const char *)&p->tree.list.data[i] + columns[k].offset,
			       sizeof(value));
			json_write_number(w, NULL, value);
		}
		json_write_close(w, 1);
	}
}

static void put_blocks(struct json_writer *w, const struct graph_page *p)
{
	const struct heap_graph *g = p->graph;

	json_write_open(json_write_line(w, 0), "address", '[');
	for (size_t i = 0; i < p->tree.list.count; i++) {
		const struct graph_tree_row *r = &p->tree.list.data[i];

		if (r->kind == GRAPH_ROW_BLOCK)
			json_write_format(w, NULL, "\"%#" PRIx64 "\"",
					  (uint64_t)g->block[r->node].addr);
		else
			json_write_text(w, NULL, NULL);
	}
	json_write_close(w, 1);
	json_write_open(json_write_line(w, 0), "bytes", '[');
	for (size_t i = 0; i < p->tree.list.count; i++) {
		const struct graph_tree_row *r = &p->tree.list.data[i];

		json_write_number(w, NULL, r->kind == GRAPH_ROW_BLOCK ?
				  graph_size(g, r->node) : 0);
	}
	json_write_close(w, 1);
}

/* -- the whole -- */

static void put_title(struct json_writer *w, const struct graph_title *t,
		      const struct heap_graph *g)
{
	json_write_number(w, "pid", t->pid);
	json_write_text(w, "command", t->command);
	json_write_text(w, "core", t->core);
	json_write_format(w, "stopped_ms", "%.3f", (double)t->stopped_ns / 1e6);
	json_write_numbers(w, {"bytes", g->bytes}, {"blocks", g->blocks});
	graph_states_write(w, g);
}

void graph_page_write_json(struct json_writer *w, const char *name, const struct graph_title *t,
			   const struct heap_graph *g)
{
	const struct graph_tree_limits limits = {
		.rows = ROWS, .most = MOST, .owners = OWNERS, .depth = DEPTH};
	struct graph_page p = {.graph = g};

	graph_tree_find(g, &limits, &p.tree);
	name_rows(&p);
	json_write_open(w, name, '{');
	json_write_text(w, "format", "ptmem-graph");
	json_write_number(w, "version", 1);
	put_title(w, t, g);
	json_write_open(json_write_line(w, 0), "texts", '[');
	for (size_t i = 0; i < p.texts.list.count; i++)
		json_write_text(w, NULL, p.texts.list.data[i]);
	json_write_close(w, 1);
	json_write_open(json_write_line(w, 0), "rows", '{');
	put_kinds(w, &p);
	put_texts(w, &p);
	put_sizes(w, &p);
	put_blocks(w, &p);
	json_write_close(w, 1);
	graph_tables_write(w, g, TABLE_ROWS);
	json_write_close(w, 1);
	vec_deinit(&p.tree.list);
	vec_release(&p.texts.list, t_, free(*t_));
	hash_deinit(&p.texts.index);
	free(p.row);
}

void graph_page_write(FILE *out, const struct graph_title *t, const struct heap_graph *g)
{
	_cleanup_free_ char *json = NULL;
	size_t size;
	FILE *memory = open_memstream(&json, &size);

	CHECK(memory);
	graph_page_write_json(&(struct json_writer){.out = memory}, NULL, t, g);
	putc('\n', memory);
	CHECK(!fclose(memory));
	html_page_write(out, json, size, false);
}
