/*
 * Text:
 *
 *	process 12 (./prog): 3,000 blocks in use, 1.2 MiB (1,258,291 bytes)
 *
 *	  cache in prog  retains 1.0 MiB (1,048,576 bytes) in 2,000 blocks
 *	    of these 1,900 Order, 100 Session
 *	    0x55d0c0de2a0  64 bytes, C++ Foo  retains ...
 *	    12 others  retain ...
 *	  shared by cache in prog and list in prog and 2 more, 3 blocks at the top  retain ...
 *	    leading to these: cache in prog (1.2 MiB), list in prog (24 B) and 2 more
 *	    0x55d0c0de2a0  64 bytes, C++ Foo  retains ...
 *	      shared by cache in prog and list in prog
 *	  leaked  retains ...
 *
 *	  sum  ... = all blocks in use
 */
#include "output/graph/graph_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/json_write.h"
#include "base/log.h"
#include "base/text.h"
#include "graph/graph_contents.h"
#include "leak/leakcheck.h"
#include "output/graph/graph_origins.h"
#include "output/graph/graph_sharers.h"
#include "output/graph/graph_tables.h"
#include "output/graph/graph_text.h"
#include "output/graph/graph_who.h"

#define ROWS 30u
#define ROWS_BELOW 10u
#define ROWS_JSON 10000u
#define TYPES_SHOWN 3u
#define HOLDERS_JSON 100u

static const char *const state_name[] = {
	[LEAKCHECK_DEFINITE] = "definitely lost", [LEAKCHECK_INDIRECT] = "indirectly lost",
	[LEAKCHECK_POSSIBLE] = "possibly lost", [LEAKCHECK_REACHABLE] = "still reachable",
};

/* Whether graph_wish.holds is an address, and no subject. */
static bool is_address(const char *text)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	strtoull(text, &end, 0);
	return *end == '\0';
}

/* -- text -- */

static char *row_text(const struct heap_graph *g, const struct graph_row *r)
{
	char number[AMOUNT_SIZE];

	switch (r->kind) {
	case GRAPH_ROW_SHARED: {
		_cleanup_free_ char *name = graph_sharers_text(g, DOMINATORS_ROOT);

		return xasprintf("%s, %s at the top", name, amount_commas(r->count, number));
	}
	case GRAPH_ROW_REST:
		return xasprintf("%s other%s", amount_commas(r->count, number), plural(r->count));
	default:
		return graph_node_text(g, r->node);
	}
}

static void print_untouched(FILE *f, int indent, const struct cold_bytes *c)
{
	char least[AMOUNT_SIZE], most[AMOUNT_SIZE];

	fprintf(f, "%*snot touched: %s to %s bytes\n", indent + 6, "",
		amount_commas(c->cold, least), amount_commas(c->cold + c->shared, most));
}

static void print_holders(FILE *f, const struct heap_graph *g, const struct graph_row *r)
{
	if (r->kind == GRAPH_ROW_SHARED) {
		fprintf(f, "    leading to these: ");
		graph_sharers_print(f, g, DOMINATORS_ROOT);
	} else if (graph_row_is_shared(g, r)) {
		_cleanup_free_ char *name = graph_row_sharers_text(g, r);

		fprintf(f, "%*s%s\n", 4 + 2 * (int)MIN(r->level, 50u), "", name);
	}
}

/* What types row @row retains, from c->at on. */
static void print_contents(FILE *f, const struct heap_graph *g, const struct graph_rows *rows,
			   uint32_t row, struct graph_contents *c)
{
	const struct graph_row *r = &rows->list.data[row];
	uint64_t others = 0;
	char number[AMOUNT_SIZE];
	bool is_one = c->at < c->list.count && c->list.data[c->at].row == row &&
		      c->list.data[c->at].blocks == r->blocks && r->blocks == 1;

	c->at += is_one;
	for (size_t shown = 0; c->at < c->list.count && c->list.data[c->at].row == row; c->at++) {
		const struct graph_content *e = &c->list.data[c->at];

		if (shown == TYPES_SHOWN) {
			others += e->blocks;
			continue;
		}
		const char *type = graph_type_name(g, e->type);

		fprintf(f, "%s%s %s%s", shown++ ? ", " : "    of these ",
			amount_commas(e->blocks, number), graph_type_is_size(type) ? "of " : "",
			type);
		if (c->at + 1 == c->list.count || c->list.data[c->at + 1].row != row)
			fprintf(f, "\n");
	}
	if (others)
		fprintf(f, ", %s other%s\n", amount_commas(others, number), plural(others));
}

static void print_rows(FILE *f, const struct heap_graph *g, const struct graph_rows *rows)
{
	uint64_t bytes = 0, blocks = 0;
	struct cold_bytes untouched = {0};
	struct graph_contents contents = {0};

	if (g->typed)
		graph_contents_find(g, rows, &contents);
	for (size_t i = 0; i < rows->list.count; i++) {
		const struct graph_row *r = &rows->list.data[i];
		_cleanup_free_ char *name = row_text(g, r);

		fprintf(f, "%*s%s  retain%s ", 2 + 2 * (int)MIN(r->level, 50u), "", name,
			r->kind == GRAPH_ROW_REST && r->count != 1 ? "" : "s");
		graph_print_amount(f, r->bytes, r->blocks);
		if (g->untouched)
			print_untouched(f, 2 * (int)MIN(r->level, 50u), &r->untouched);
		untouched.cold += r->level == 0 ? r->untouched.cold : 0;
		untouched.shared += r->level == 0 ? r->untouched.shared : 0;
		print_contents(f, g, rows, (uint32_t)i, &contents);
		print_holders(f, g, r);
		bytes += r->level == 0 ? r->bytes : 0;
		blocks += r->level == 0 ? r->blocks : 0;
	}
	vec_deinit(&contents.list);
	fprintf(f, "\n  sum  ");
	graph_print_amount(f, bytes, blocks);
	if (g->untouched)
		print_untouched(f, 0, &untouched);
}

static void print_states(FILE *f, const struct heap_graph *g)
{
	struct graph_states s;

	heap_graph_states(g, &s);
	fprintf(f, "\n");
	for (size_t i = 0; i < ARRAY_SIZE(s.state); i++) {
		fprintf(f, "  %s  ", state_name[i]);
		graph_print_amount(f, s.state[i].bytes, s.state[i].blocks);
	}
}

/* The name of the word where the step's pointer is; NULL = unknown. */
static const char *field_of(const struct heap_graph *g, const struct graph_step *s)
{
	bool is_block = graph_is_block(g, s->node);
	uint32_t of = is_block ? g->block[s->node].type :
				 GRAPH_FIELDS_OWNER + (s->node - g->blocks);

	return g->typed ? graph_types_field(g->typed, of, s->place) : NULL;
}

/* "cache.by_user[*]": a variable with the field; another owner with the place. */
static void print_first_step(struct graph_way_text *w, const struct heap_graph *g,
			     const struct graph_step *s)
{
	const struct graph_owner *o = graph_is_block(g, s->node) ? NULL :
				      &g->owners.data[s->node - g->blocks];
	const char *field = o && o->name ? field_of(g, s) : NULL;
	_cleanup_free_ char *name = field ? xstrdup(o->name) : graph_node_text(g, s->node);

	graph_way_begin(w, name, field, s->place);
}

static void print_step(struct graph_way_text *w, const struct heap_graph *g,
		       const struct graph_step *s)
{
	graph_way_step(w, graph_type_name(g, g->block[s->node].type), field_of(g, s), s->place);
}

/* Steps [@begin, @end) of @way. */
static void print_steps(struct graph_way_text *w, const struct heap_graph *g,
			const struct graph_way *way, size_t begin, size_t end)
{
	for (size_t i = begin; i < end; i++) {
		const struct graph_step *s = &way->steps.data[i];

		if (i == 0)
			print_first_step(w, g, s);
		else
			print_step(w, g, s);
	}
}

static void print_way(FILE *f, const struct heap_graph *g, uint32_t block)
{
	struct graph_way_text text = {.file = f};
	struct graph_way way;

	graph_way_find(g, block, &way);
	size_t count = way.steps.count;

	if (count > 0) {
		_cleanup_free_ char *name = graph_node_text(g, way.steps.data[count - 1].node);

		fprintf(f, "%s", count > 1 ? "  " : "");
		print_steps(&text, g, &way, 0, count - 1);
		fprintf(f, count > 1 ? " -> %s" : "  %s", name);
	}
	fprintf(f, "\n");
	vec_deinit(&way.steps);
}

#define FIRST_STEPS 16u /* of a long way */
#define LAST_STEPS 4u

char *graph_way_text(const struct heap_graph *g, const struct graph_way *way)
{
	size_t pointers = way->steps.count ? way->steps.count - 1 : 0, size;
	char *out = NULL;
	struct graph_way_text text = {.file = open_memstream(&out, &size)};

	CHECK(text.file);
	if (pointers > FIRST_STEPS + LAST_STEPS + 1) {
		print_steps(&text, g, way, 0, FIRST_STEPS);
		fprintf(text.file, " -> (%zu more)", pointers - FIRST_STEPS - LAST_STEPS);
		text.is_many = false;
		print_steps(&text, g, way, pointers - LAST_STEPS, pointers);
	} else {
		print_steps(&text, g, way, 0, pointers);
	}
	CHECK(!fclose(text.file));
	return out;
}

/* What every way to @block passes, from the last on. */
static void print_dominators(FILE *f, const struct heap_graph *g, uint32_t block)
{
	uint32_t number = graph_number_of(g, block), top = number;
	bool is_first = true;

	for (; number != DOMINATORS_ROOT; number = g->tree.above[number], is_first = false) {
		top = number;
		_cleanup_free_ char *name = graph_node_text(g, g->tree.node[number]);

		fprintf(f, "  %s%s  retains ", is_first ? "" : "held by ", name);
		graph_print_amount(f, g->retained[number], g->retained_blocks[number]);
		if (!graph_is_block(g, g->tree.node[number]))
			return;
	}
	_cleanup_free_ char *shared = graph_sharers_text(g, top);

	fprintf(f, "  %s\n    leading to this: ", shared);
	graph_sharers_print(f, g, top);
}

/* If @block is lost, and one lost block leads to it: that one. */
static void print_loss(FILE *f, const struct heap_graph *g, uint32_t block)
{
	const struct dominators *t = &g->tree;
	uint32_t number = graph_number_of(g, block);

	while (t->above[number] != DOMINATORS_ROOT && graph_is_block(g, t->node[t->above[number]]))
		number = t->above[number];
	if (g->block[t->node[number]].is_leader)
		graph_leak_print(f, g, t->node[number]);
}

static void print_holds(FILE *f, const struct heap_graph *g, const char *text)
{
	uint32_t block = heap_graph_find(g, strtoull(text, NULL, 0));

	if (block == UINT32_MAX) {
		fprintf(f, "%s is in no block in use\n", text);
		return;
	}
	fprintf(f, "the shortest way to %s:\n", text);
	print_way(f, g, block);
	fprintf(f, "\nall ways to it pass:\n");
	print_dominators(f, g, block);
	if (g->sites) {
		_cleanup_free_ char *site = graph_site_text(g, graph_site_of(g, block));

		fprintf(f, "\nallocated in:\n  %s\n", site);
	}
	print_loss(f, g, block);
}

/* -- text of all -- */

void graph_report_print(FILE *f, const struct graph_title *t, const struct heap_graph *g,
			const struct graph_wish *wish)
{
	const struct graph_limits limits = {wish->depth, ROWS, ROWS_BELOW};
	_cleanup_free_ char *exact = amount_exact((double)g->bytes);
	char number[AMOUNT_SIZE];
	struct graph_rows rows;

	if (t->core)
		fprintf(f, "%s: ", t->core);
	fprintf(f, "process %u (%s): %s block%s in use, %s\n", t->pid, t->command,
		amount_commas(g->blocks, number), plural(g->blocks), exact);
	if (t->touched_seconds > 0)
		fprintf(f, "not touched in %.3g s: on pages that nothing has read or written, at "
			"least and at most\n", t->touched_seconds);
	if (t->stopped_ns)
		fprintf(f, "stopped for %.1f ms\n", (double)t->stopped_ns / 1e6);
	fprintf(f, "\n");
	if (wish->holds) {
		if (is_address(wish->holds))
			print_holds(f, g, wish->holds);
		else
			graph_who_print(f, g, wish->holds);
		return;
	}
	graph_rows_find(g, &limits, &rows);
	print_rows(f, g, &rows);
	print_states(f, g);
	graph_origins_print(f, g, &rows);
	vec_deinit(&rows.list);
	graph_tables_print(f, g, wish->shows_strings);
}

/* -- the brief report -- */

/* With the command for a row: what holds a block, or one level more below owners. */
void graph_report_brief(struct brief *b, const struct graph_title *t, const struct heap_graph *g,
			const struct graph_wish *wish)
{
	const struct graph_limits limits = {1, ROWS, ROWS_BELOW};
	char blocks[AMOUNT_SIZE];
	struct graph_rows rows;

	brief_set_title(b, xasprintf("%s%sprocess %u, %s", t->core ? t->core : "",
				     t->core ? ", core of " : "", t->pid, t->command));
	_cleanup_free_ char *exact = amount_exact((double)g->bytes);

	brief_add_fact(b, xasprintf("%s in %s block%s in use; what each owner retains alone:",
				    exact, amount_commas(g->blocks, blocks), plural(g->blocks)));
	graph_rows_find(g, &limits, &rows);
	for (size_t i = 0; i < rows.list.count; i++) {
		const struct graph_row *r = &rows.list.data[i];
		char *what = xasprintf("%.1f %%  in %s block%s%s",
				       amount_percent(r->bytes, g->bytes),
				       amount_commas(r->blocks, blocks), plural(r->blocks),
				       r->level > 0 ? ", retained by" : ":");
		char *more = r->kind == GRAPH_ROW_BLOCK ?
			xasprintf("--who-holds=%#" PRIx64, (uint64_t)g->block[r->node].addr) :
			xasprintf("--graph-depth=%u", wish->depth + 2);

		brief_add(b, r->bytes, what, row_text(g, r), more);
		if (g->untouched && r->level == 0 && r->untouched.cold > 0)
			brief_add(b, r->untouched.cold, xstrdup("not touched, of"), row_text(g, r),
				  NULL);
	}
	vec_deinit(&rows.list);
}

/* -- JSON -- */

static void write_node(struct json_writer *w, const struct heap_graph *g, uint32_t node)
{
	if (graph_is_block(g, node)) {
		json_write_format(w, "address", "\"%#" PRIx64 "\"", (uint64_t)g->block[node].addr);
		json_write_number(w, "bytes", g->block[node].size);
		if (graph_type_name(g, g->block[node].type))
			json_write_text(w, "type", graph_type_name(g, g->block[node].type));
		return;
	}
	const struct graph_owner *o = &g->owners.data[node - g->blocks];
	_cleanup_free_ char *text = graph_owner_text(o);

	json_write_text(w, "kind", graph_owner_kind_name[o->kind]);
	json_write_text(w, "text", text);
	json_write_text(w, "name", o->name);
	json_write_text(w, "object", o->object);
	if (o->tid)
		json_write_number(w, "thread", (uint64_t)o->tid);
}

static void write_holders(struct json_writer *w, const struct heap_graph *g,
			  const struct graph_row *r)
{
	struct graph_holders h;

	graph_holders_find(g, r, HOLDERS_JSON, &h);
	json_write_number(w, "holders_count", h.count);
	json_write_open(w, "holders", '[');
	for (size_t i = 0; i < h.owners.count; i++) {
		_cleanup_free_ char *name = graph_owner_text(&g->owners.data[h.owners.data[i]]);

		json_write_text(w, NULL, name);
	}
	json_write_close(w, 1);
	vec_deinit(&h.owners);
}

const char *const graph_row_kind_name[] = {
	[GRAPH_ROW_OWNER] = "owner", [GRAPH_ROW_SHARED] = "shared",
	[GRAPH_ROW_BLOCK] = "block", [GRAPH_ROW_REST] = "rest"};

/* As print_contents, all types. */
static void write_contents(struct json_writer *w, const struct heap_graph *g,
			   uint32_t row, struct graph_contents *c)
{
	if (c->at == c->list.count || c->list.data[c->at].row != row)
		return;
	json_write_open(w, "types", '[');
	for (; c->at < c->list.count && c->list.data[c->at].row == row; c->at++) {
		const struct graph_content *e = &c->list.data[c->at];

		json_write_open(w, NULL, '{');
		json_write_text(w, "type", graph_type_name(g, e->type));
		json_write_numbers(w, {"bytes", e->bytes}, {"blocks", e->blocks});
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
}

static void write_row(struct json_writer *w, const struct heap_graph *g,
		      const struct graph_rows *rows, size_t i, struct graph_contents *contents)
{
	const struct graph_row *r = &rows->list.data[i];

	json_write_open(json_write_line(w, 1), NULL, '{');
	json_write_number(w, "level", r->level);
	json_write_text(w, "row", graph_row_kind_name[r->kind]);
	if (r->kind == GRAPH_ROW_OWNER || r->kind == GRAPH_ROW_BLOCK)
		write_node(w, g, r->node);
	else
		json_write_number(w, "count", r->count);
	if (r->kind == GRAPH_ROW_SHARED) {
		_cleanup_free_ char *name = graph_sharers_text(g, DOMINATORS_ROOT);

		json_write_text(w, "text", name);
		graph_sharers_write(w, g, DOMINATORS_ROOT);
	}
	json_write_numbers(w, {"retained_bytes", r->bytes}, {"retained_blocks", r->blocks});
	if (g->untouched)
		json_write_numbers(w, {"untouched_bytes", r->untouched.cold},
				   {"untouched_at_most", r->untouched.cold + r->untouched.shared});
	if (graph_row_is_shared(g, r))
		write_holders(w, g, r);
	write_contents(w, g, (uint32_t)i, contents);
	json_write_close(w, 1);
}

static void write_rows(struct json_writer *w, const struct heap_graph *g,
		       const struct graph_rows *rows)
{
	struct graph_contents contents = {0};

	if (g->typed)
		graph_contents_find(g, rows, &contents);
	for (size_t i = 0; i < rows->list.count; i++)
		write_row(w, g, rows, i, &contents);
	vec_deinit(&contents.list);
}

static void write_way(struct json_writer *w, const struct heap_graph *g, const char *text)
{
	uint32_t block = heap_graph_find(g, strtoull(text, NULL, 0));
	struct graph_way way = {0};

	if (block != UINT32_MAX)
		graph_way_find(g, block, &way);
	json_write_open(json_write_line(w, 0), "way", '[');
	for (size_t i = 0; i < way.steps.count; i++) {
		json_write_open(json_write_line(w, 1), NULL, '{');
		write_node(w, g, way.steps.data[i].node);
		json_write_text(w, "field", field_of(g, &way.steps.data[i]));
		if (i + 1 < way.steps.count && way.steps.data[i].place != GRAPH_FAR)
			json_write_number(w, "offset",
					  way.steps.data[i].place * sizeof(uint64_t));
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
	vec_deinit(&way.steps);
}

void graph_states_write(struct json_writer *w, const struct heap_graph *g)
{
	struct graph_states s;

	heap_graph_states(g, &s);
	json_write_open(json_write_line(w, 0), "states", '{');
	for (size_t i = 0; i < ARRAY_SIZE(s.state); i++)
		json_write_record(w, state_name[i], {"bytes", s.state[i].bytes},
				  {"blocks", s.state[i].blocks});
	json_write_close(w, 1);
}

void graph_report_write_json(FILE *f, const struct graph_title *t, const struct heap_graph *g,
			     const struct graph_wish *wish)
{
	const struct graph_limits limits = {wish->depth, ROWS_JSON, ROWS_BELOW};
	struct json_writer w = {.out = f};
	struct graph_rows rows;

	json_write_open(&w, NULL, '{');
	json_write_number(&w, "pid", t->pid);
	json_write_text(&w, "command", t->command);
	json_write_text(&w, "core", t->core);
	json_write_format(&w, "stopped_ms", "%.3f", (double)t->stopped_ns / 1e6);
	json_write_numbers(&w, {"bytes", g->bytes}, {"blocks", g->blocks});
	if (t->touched_seconds > 0)
		json_write_format(&w, "untouched_seconds", "%.6f", t->touched_seconds);
	graph_states_write(&w, g);
	if (wish->holds && !is_address(wish->holds))
		graph_who_write(&w, g, wish->holds);
	else if (wish->holds)
		write_way(&w, g, wish->holds);
	graph_rows_find(g, &limits, &rows);
	json_write_open(json_write_line(&w, 0), "rows", '[');
	write_rows(&w, g, &rows);
	json_write_close(&w, 1);
	graph_origins_write(&w, g);
	graph_tables_write(&w, g, SIZE_MAX);
	json_write_close(&w, 1);
	fputc('\n', f);
	vec_deinit(&rows.list);
}
