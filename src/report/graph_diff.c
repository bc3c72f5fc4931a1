/*
 * Two heap graphs: which owner retains more than before, and, if both were profiled, which call
 * path has allocated more of what is in use. Owners are the same if they have one kind, name and
 * object; those of threads are added up, since threads of two processes have different ids. All
 * that is shared is one row. Call paths are the same if they have the same functions.
 *
 *	      difference    bytes before     bytes after      blocks      blocks  retained by
 *	+            512             488           1,000          10          20  cache in prog
 *	+            512             488           1,000          10          20  all blocks in use
 *
 *	      difference    bytes before     bytes after      blocks      blocks  allocated in
 *	+            512             488           1,000          10          20  make <- main
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/json_write.h"
#include "base/text.h"
#include "output/brief.h"
#include "output/graph/graph_origins.h"
#include "output/graph/graph_sharers.h"
#include "output/graph/graph_text.h"
#include "recording/graph_file.h"
#include "report/show.h"

struct graph_change {
	const char *kind;       /* of an owner; NULL = of a call path */
	char *name;             /* owned; of a call path only while it is printed */
	const struct heap_graph *graph; /* of a call path */
	uint32_t site;
	uint64_t bytes[2], blocks[2]; /* before and after */
};

struct graph_changes {
	VEC(struct graph_change) list;
};

/* -- owners -- */

static char *name_of(const struct heap_graph *g, const struct graph_row *row)
{
	if (row->kind != GRAPH_ROW_OWNER)
		return graph_sharers_text(g, DOMINATORS_ROOT);
	struct graph_owner o = g->owners.data[row->node - g->blocks];

	return o.kind == OWNER_TLS ? xstrdup("variables of threads") :
	       o.kind == OWNER_STACK ? xstrdup("stacks of threads") :
	       o.kind == OWNER_MAPPING && !o.name ? xstrdup("mappings") : graph_owner_text(&o);
}

static void add_owners(struct graph_changes *all, const struct heap_graph *g, size_t side)
{
	const struct graph_limits limits = {.depth = 0, .most = SIZE_MAX};
	struct graph_rows rows;

	graph_rows_find(g, &limits, &rows);
	for (size_t i = 0; i < rows.list.count; i++) {
		const struct graph_row *row = &rows.list.data[i];
		struct graph_change *c = vec_add(&all->list);

		*c = (struct graph_change){.kind = row->kind == GRAPH_ROW_SHARED ? "shared" :
			graph_owner_kind_name[g->owners.data[row->node - g->blocks].kind]};
		c->name = name_of(g, row);
		c->bytes[side] = row->bytes;
		c->blocks[side] = row->blocks;
	}
	vec_deinit(&rows.list);
}

/* What is shared is one row, whatever shares it: the later one's name comes first. */
static int by_name(const void *a, const void *b)
{
	const struct graph_change *x = a, *y = b;
	int order = strcmp(x->kind, y->kind);

	if (order == 0 && strcmp(x->kind, "shared") == 0)
		return x->blocks[1] < y->blocks[1] ? 1 : x->blocks[1] > y->blocks[1] ? -1 : 0;
	return order ? order : strcmp(x->name, y->name);
}

static void add_change(struct graph_change *to, const struct graph_change *from)
{
	for (size_t i = 0; i < 2; i++) {
		to->bytes[i] += from->bytes[i];
		to->blocks[i] += from->blocks[i];
	}
}

static bool merge_owners(struct graph_change *to, struct graph_change *from)
{
	bool is_shared = strcmp(to->kind, "shared") == 0;

	if (strcmp(to->kind, from->kind) != 0 || (!is_shared && strcmp(to->name, from->name) != 0))
		return false;
	add_change(to, from);
	free(from->name);
	return true;
}

/* -- call paths -- */

static void add_sites(struct graph_changes *all, const struct heap_graph *g, size_t side)
{
	struct graph_site_sums sums;

	graph_sites_sum(g, &sums);
	for (size_t i = 0; i < sums.list.count; i++) {
		struct graph_change *c = vec_add(&all->list);

		*c = (struct graph_change){.graph = g, .site = sums.list.data[i].site};
		c->bytes[side] = sums.list.data[i].bytes;
		c->blocks[side] = sums.list.data[i].blocks;
	}
	vec_deinit(&sums.list);
}

/* From the innermost function on; calls come after their callers, so that this ends. */
static int by_functions(const void *a, const void *b)
{
	const struct graph_change *x = a, *y = b;
	uint32_t i = x->site, k = y->site;

	while (i && k) {
		int order = strcmp(graph_site_function(x->graph->sites, i),
				   graph_site_function(y->graph->sites, k));

		if (order)
			return order;
		i = x->graph->sites->calls.data[i - 1].caller;
		k = y->graph->sites->calls.data[k - 1].caller;
	}
	return !i && !k ? 0 : i ? 1 : -1;
}

static bool merge_sites(struct graph_change *to, struct graph_change *from)
{
	if (by_functions(to, from) != 0)
		return false;
	add_change(to, from);
	return true;
}

/* -- both -- */

static uint64_t distance(const struct graph_change *c)
{
	return c->bytes[1] > c->bytes[0] ? c->bytes[1] - c->bytes[0] : c->bytes[0] - c->bytes[1];
}

static int by_distance(const void *a, const void *b)
{
	const struct graph_change *c = a, *d = b;
	uint64_t x = distance(c), y = distance(d);

	return x != y ? (x < y ? 1 : -1) : c->kind ? by_name(a, b) : by_functions(a, b);
}

static char *change_text(const struct graph_change *c)
{
	return c->name ? xstrdup(c->name) : graph_site_text(c->graph, c->site);
}

/* -- text -- */

static void print_change(const struct graph_change *c)
{
	_cleanup_free_ char *name = change_text(c);
	char change[AMOUNT_SIZE], bytes[2][AMOUNT_SIZE], blocks[2][AMOUNT_SIZE];

	printf("%c%*s %15s %15s %11s %11s  %s\n",
	       c->bytes[1] > c->bytes[0] ? '+' : c->bytes[1] < c->bytes[0] ? '-' : ' ', 15,
	       amount_commas(distance(c), change), amount_commas(c->bytes[0], bytes[0]),
	       amount_commas(c->bytes[1], bytes[1]), amount_commas(c->blocks[0], blocks[0]),
	       amount_commas(c->blocks[1], blocks[1]), name);
}

static void print_changes(const struct report_request *r, const struct graph_changes *all,
			  const char *what, const struct graph_change *sum)
{
	struct graph_change rest = {0};
	size_t others = 0;

	printf("%16s %15s %15s %11s %11s  %s\n", "difference", "bytes before", "bytes after",
	       "blocks", "blocks", what);
	for (size_t i = 0; i < all->list.count; i++) {
		const struct graph_change *c = &all->list.data[i];

		if (i < r->top) {
			print_change(c);
			continue;
		}
		others++;
		add_change(&rest, c);
	}
	rest.name = xasprintf("%zu other%s", others, plural(others));
	if (others > 0)
		print_change(&rest);
	free(rest.name);
	print_change(sum);
}

static void print_brief(const struct report_request *r, const struct graph_changes tables[2],
			const struct graph_change *sum)
{
	static const char *const what[] = {"retained by", "allocated in"};
	struct brief b;

	brief_show_begin(r, &b);
	brief_set_title(&b, xasprintf("changes from %s to %s", r->path[0], r->path[1]));
	brief_add_fact(&b, xasprintf("%" PRIu64 " bytes before, %" PRIu64 " after", sum->bytes[0],
				     sum->bytes[1]));
	for (size_t t = 0; t < 2; t++)
		for (size_t i = 0; i < tables[t].list.count; i++) {
			const struct graph_change *c = &tables[t].list.data[i];
			const char *more = c->bytes[1] > c->bytes[0] ? "more" : "less";

			if (distance(c) > 0)
				brief_add(&b, distance(c), xasprintf("%s %s", more, what[t]),
					  change_text(c), xstrdup("--top=100"));
		}
	brief_show_end(r, &b);
}

/* -- JSON -- */

static void write_changes(struct json_writer *w, const char *name, const struct graph_changes *all)
{
	json_write_open(json_write_line(w, 0), name, '[');
	for (size_t i = 0; i < all->list.count; i++) {
		const struct graph_change *c = &all->list.data[i];

		json_write_open(json_write_line(w, 1), NULL, '{');
		if (c->kind) {
			json_write_text(w, "kind", c->kind);
			json_write_text(w, "text", c->name);
		} else {
			graph_site_write(w, c->graph, c->site);
		}
		json_write_numbers(w, {"old_bytes", c->bytes[0]}, {"new_bytes", c->bytes[1]},
				   {"old_blocks", c->blocks[0]}, {"new_blocks", c->blocks[1]});
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
}

static void write_all(const struct graph_changes *owners, const struct graph_changes *sites,
		      const struct graph_change *sum)
{
	struct json_writer w = {.out = stdout};

	json_write_open(&w, NULL, '{');
	json_write_text(&w, "format", "ptmem-graph-diff");
	json_write_numbers(&w, {"old_bytes", sum->bytes[0]}, {"new_bytes", sum->bytes[1]},
			   {"old_blocks", sum->blocks[0]}, {"new_blocks", sum->blocks[1]});
	write_changes(&w, "owners", owners);
	if (sites->list.count > 0)
		write_changes(&w, "allocated", sites);
	json_write_close(&w, 1);
	putchar('\n');
}

/* -- the comparison -- */

static void print_all(const struct report_request *r, const struct input *input,
		      const struct graph_changes tables[2], const struct graph_change *sum)
{
	bool has_sites[] = {input[0].graph->graph.sites, input[1].graph->graph.sites};

	print_changes(r, &tables[0], "retained by", sum);
	if (has_sites[0] && has_sites[1]) {
		printf("\n");
		print_changes(r, &tables[1], "allocated in", sum);
	} else if (has_sites[0] || has_sites[1]) {
		printf("\nOnly %s has call paths. To compare them, make both graphs in a profile:\n"
		       "ptmem --graph PROGRAM\n", r->path[has_sites[1]]);
	}
}

void graph_diff_show(const struct report_request *r, const struct input *input, bool is_json)
{
	const struct heap_graph *g[] = {&input[0].graph->graph, &input[1].graph->graph};
	char name[] = "all blocks in use";
	struct graph_changes tables[2] = {0};
	struct graph_change sum = {.name = name};

	for (size_t i = 0; i < 2; i++) {
		add_owners(&tables[0], g[i], i);
		if (g[0]->sites && g[1]->sites)
			add_sites(&tables[1], g[i], i);
		sum.bytes[i] = g[i]->bytes;
		sum.blocks[i] = g[i]->blocks;
	}
	vec_sort(&tables[0].list, by_name);
	vec_merge(&tables[0].list, merge_owners);
	vec_sort(&tables[1].list, by_functions);
	vec_merge(&tables[1].list, merge_sites);
	for (size_t i = 0; i < 2; i++)
		vec_sort(&tables[i].list, by_distance);
	if (r->is_brief)
		print_brief(r, tables, &sum);
	else if (is_json)
		write_all(&tables[0], &tables[1], &sum);
	else
		print_all(r, input, tables, &sum);
	vec_release(&tables[0].list, c, free(c->name));
	vec_deinit(&tables[1].list);
}
