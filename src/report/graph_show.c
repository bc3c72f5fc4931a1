/*
 * Heap graphs: printed as ptmem --graph does, or compared: which owner retains more than before.
 * Owners are the same if they have one kind, name and object; those of threads are added up, since
 * threads of two processes have different ids.
 */
#include "report/show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/json_write.h"
#include "base/log.h"
#include "base/text.h"
#include "output/brief.h"
#include "output/graph/graph_report.h"
#include "recording/graph_file.h"
#include "recording/graph_pprof.h"

/* -- the comparison -- */

struct owner_change {
	const char *kind;
	char *name;             /* owned */
	uint64_t bytes[2], blocks[2]; /* retained, before and after */
};

struct owner_changes {
	VEC(struct owner_change) list;
};

static char *name_of(const struct heap_graph *g, const struct graph_row *row)
{
	if (row->kind != GRAPH_ROW_OWNER)
		return xstrdup("shared by several owners");
	struct graph_owner o = g->owners.data[row->node - g->blocks];

	return o.kind == OWNER_TLS ? xstrdup("variables of threads") :
	       o.kind == OWNER_STACK ? xstrdup("stacks of threads") :
	       o.kind == OWNER_MAPPING && !o.name ? xstrdup("mappings") : graph_owner_text(&o);
}

static void add_owners(struct owner_changes *all, const struct heap_graph *g, size_t side)
{
	const struct graph_limits limits = {.depth = 0, .most = SIZE_MAX};
	struct graph_rows rows;

	graph_rows_find(g, &limits, &rows);
	for (size_t i = 0; i < rows.list.count; i++) {
		const struct graph_row *row = &rows.list.data[i];
		struct owner_change *c = vec_add(&all->list);

		*c = (struct owner_change){.kind = row->kind == GRAPH_ROW_SHARED ? "shared" :
			graph_owner_kind_name[g->owners.data[row->node - g->blocks].kind]};
		c->name = name_of(g, row);
		c->bytes[side] = row->bytes;
		c->blocks[side] = row->blocks;
	}
	vec_deinit(&rows.list);
}

static int by_name(const void *a, const void *b)
{
	const struct owner_change *x = a, *y = b;
	int order = strcmp(x->kind, y->kind);

	return order ? order : strcmp(x->name, y->name);
}

static bool merge(struct owner_change *to, struct owner_change *from)
{
	if (by_name(to, from) != 0)
		return false;
	for (size_t i = 0; i < 2; i++) {
		to->bytes[i] += from->bytes[i];
		to->blocks[i] += from->blocks[i];
	}
	free(from->name);
	return true;
}

static uint64_t distance(const struct owner_change *c)
{
	return c->bytes[1] > c->bytes[0] ? c->bytes[1] - c->bytes[0] : c->bytes[0] - c->bytes[1];
}

static int by_distance(const void *a, const void *b)
{
	uint64_t x = distance(a), y = distance(b);

	return x != y ? (x < y ? 1 : -1) : by_name(a, b);
}

static void print_change(const struct owner_change *c)
{
	char change[AMOUNT_SIZE], bytes[2][AMOUNT_SIZE], blocks[2][AMOUNT_SIZE];

	printf("%c%*s %15s %15s %11s %11s  %s\n",
	       c->bytes[1] > c->bytes[0] ? '+' : c->bytes[1] < c->bytes[0] ? '-' : ' ', 15,
	       amount_commas(distance(c), change), amount_commas(c->bytes[0], bytes[0]),
	       amount_commas(c->bytes[1], bytes[1]), amount_commas(c->blocks[0], blocks[0]),
	       amount_commas(c->blocks[1], blocks[1]), c->name);
}

static void print_changes(const struct report_request *r, const struct owner_changes *all,
			  const struct owner_change *sum)
{
	struct owner_change rest = {0};
	size_t others = 0;

	printf("%16s %15s %15s %11s %11s  %s\n", "difference", "bytes before", "bytes after",
	       "blocks", "blocks", "retained by");
	for (size_t i = 0; i < all->list.count; i++) {
		const struct owner_change *c = &all->list.data[i];

		if (i < r->top) {
			print_change(c);
			continue;
		}
		others++;
		for (size_t k = 0; k < 2; k++) {
			rest.bytes[k] += c->bytes[k];
			rest.blocks[k] += c->blocks[k];
		}
	}
	rest.name = xasprintf("%zu other%s", others, plural(others));
	if (others > 0)
		print_change(&rest);
	free(rest.name);
	print_change(sum);
}

static void write_changes(const struct owner_changes *all, const struct owner_change *sum)
{
	struct json_writer w = {.out = stdout};

	json_write_open(&w, NULL, '{');
	json_write_text(&w, "format", "ptmem-graph-diff");
	json_write_numbers(&w, {"old_bytes", sum->bytes[0]}, {"new_bytes", sum->bytes[1]},
			   {"old_blocks", sum->blocks[0]}, {"new_blocks", sum->blocks[1]});
	json_write_open(json_write_line(&w, 0), "owners", '[');
	for (size_t i = 0; i < all->list.count; i++) {
		const struct owner_change *c = &all->list.data[i];

		json_write_open(json_write_line(&w, 1), NULL, '{');
		json_write_text(&w, "kind", c->kind);
		json_write_text(&w, "text", c->name);
		json_write_numbers(&w, {"old_bytes", c->bytes[0]}, {"new_bytes", c->bytes[1]},
				   {"old_blocks", c->blocks[0]}, {"new_blocks", c->blocks[1]});
		json_write_close(&w, 1);
	}
	json_write_close(&w, 2);
	putchar('\n');
}

static void print_brief(const struct report_request *r, const struct owner_changes *all,
			const struct owner_change *sum)
{
	struct brief b;

	brief_show_begin(r, &b);
	brief_set_title(&b, xasprintf("changes from %s to %s", r->path[0], r->path[1]));
	brief_add_fact(&b, xasprintf("%" PRIu64 " bytes before, %" PRIu64 " after", sum->bytes[0],
				     sum->bytes[1]));
	for (size_t i = 0; i < all->list.count; i++) {
		const struct owner_change *c = &all->list.data[i];

		if (distance(c) > 0)
			brief_add(&b, distance(c),
				  xasprintf("%s retained by", c->bytes[1] > c->bytes[0] ? "more" :
								"less"),
				  xstrdup(c->name), xstrdup("--top=100"));
	}
	brief_show_end(r, &b);
}

static void compare(const struct report_request *r, const struct input *input, bool is_json)
{
	char name[] = "all blocks in use";
	struct owner_changes all = {0};
	struct owner_change sum = {.name = name};

	for (size_t i = 0; i < 2; i++) {
		const struct heap_graph *g = &input[i].graph->graph;

		add_owners(&all, g, i);
		sum.bytes[i] = g->bytes;
		sum.blocks[i] = g->blocks;
	}
	vec_sort(&all.list, by_name);
	vec_merge(&all.list, merge);
	vec_sort(&all.list, by_distance);
	if (r->is_brief)
		print_brief(r, &all, &sum);
	else if (is_json)
		write_changes(&all, &sum);
	else
		print_changes(r, &all, &sum);
	vec_release(&all.list, c, free(c->name));
}

/* -- requests -- */

static int refuse(const struct report_request *r, size_t i, const char *why)
{
	log_error("%s: %s", r->path[i], why);
	return EXIT_REFUSED;
}

static const char *find_problem(const struct report_request *r)
{
	const struct report_format *format = report_format_of(r);
	bool is_pprof = format && strcmp(format->name, "pprof") == 0;

	if (r->who_holds && r->is_diff)
		return "--who-holds is about one heap graph";
	if (r->who_holds && is_pprof)
		return "--format=pprof has all of a heap graph: --who-holds goes with the text "
		       "and --format=json";
	if (r->is_diff && is_pprof)
		return "make one pprof file of each heap graph, and let pprof compare them by "
		       "-base";
	if (r->html && r->is_diff)
		return "--diff of heap graphs makes a text or --format=json, no page";
	if (r->who_holds && r->html && !request_printed(r))
		return "--who-holds is about what is printed, not about the page of --html";
	return NULL;
}

int graph_show(const struct report_request *r, const struct input *input)
{
	const struct report_format *format = report_format_of(r);
	bool is_json = format && format->kinds != AS_TEXT;
	_cleanup_free_ char *refusal = r->is_brief ? NULL : request_check_graph(r);
	const char *why = refusal ?: find_problem(r);

	if (why)
		return refuse(r, 0, why);
	if (r->is_diff && input[1].kind != INPUT_GRAPH)
		return refuse(r, 1, "not a heap graph, as the other file is");
	if (r->is_diff) {
		compare(r, input, is_json);
		return 0;
	}
	const struct graph_file *f = input->graph;
	const struct graph_title title = graph_file_title(f);
	const struct graph_wish wish = {.depth = r->graph_depth, .holds = r->who_holds};

	if (is_json && strcmp(format->name, "pprof") == 0)
		graph_pprof_write(stdout, &f->graph, title.command);
	else if (is_json)
		graph_report_write_json(stdout, &title, &f->graph, &wish);
	else if (request_printed(r))
		graph_report_print(stdout, &title, &f->graph, &wish);
	return r->html ? html_report_write(r, input) : 0;
}
