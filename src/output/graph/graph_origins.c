/* Every table adds up: what is not shown has a row. */
#include "output/graph/graph_origins.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "graph/graph_leaks.h"
#include "graph/graph_sharing.h"
#include "graph/graph_sites.h"
#include "output/graph/graph_sharers.h"
#include "output/graph/graph_text.h"

#define SITES_SHOWN 20u
#define OWNERS_SHOWN 10u
#define OWNER_SITES_SHOWN 3u
#define LEAKS_SHOWN 10u

static void print_rest(FILE *f, size_t others, uint64_t bytes, uint64_t blocks)
{
	char number[AMOUNT_SIZE];

	fprintf(f, "  %s other%s  ", amount_commas(others, number), plural(others));
	graph_print_amount(f, bytes, blocks);
}

/* -- by site -- */

static void print_sites(FILE *f, const struct heap_graph *g)
{
	struct graph_site_sums sums;
	uint64_t bytes = 0, blocks = 0;

	graph_sites_sum(g, &sums);
	fprintf(f, "\nallocated in, by what blocks from there retain, each by itself:\n");
	for (size_t i = 0; i < sums.list.count; i++) {
		const struct graph_site_sum *s = &sums.list.data[i];

		if (i >= SITES_SHOWN) {
			bytes += s->bytes;
			blocks += s->blocks;
			continue;
		}
		_cleanup_free_ char *text = graph_site_text(g, s->site);
		_cleanup_free_ char *exact = amount_exact((double)s->bytes);
		char number[AMOUNT_SIZE];

		fprintf(f, "  %s  %s in %s block%s; retain%s ", text, exact,
			amount_commas(s->blocks, number), plural(s->blocks),
			s->blocks == 1 ? "s" : "");
		graph_print_amount(f, s->retained_bytes, s->retained_blocks);
	}
	if (sums.list.count > SITES_SHOWN)
		print_rest(f, sums.list.count - SITES_SHOWN, bytes, blocks);
	vec_deinit(&sums.list);
}

/* The sites of the owner with number @number, if there are any. */
static void print_owner_sites(FILE *f, const struct heap_graph *g,
			      const struct graph_site_sums *sums, uint32_t number)
{
	size_t i = vec_search(&sums->list, s, s->owner < number), first = i;
	uint64_t bytes = 0, blocks = 0;

	for (; i < sums->list.count && sums->list.data[i].owner == number; i++) {
		const struct graph_site_sum *s = &sums->list.data[i];

		if (i - first >= OWNER_SITES_SHOWN) {
			bytes += s->bytes;
			blocks += s->blocks;
			continue;
		}
		_cleanup_free_ char *text = graph_site_text(g, s->site);

		fprintf(f, "    %s  ", text);
		graph_print_amount(f, s->bytes, s->blocks);
	}
	if (i - first > OWNER_SITES_SHOWN) {
		fprintf(f, "  ");
		print_rest(f, i - first - OWNER_SITES_SHOWN, bytes, blocks);
	}
}

static void print_owners(FILE *f, const struct heap_graph *g, const struct graph_rows *rows)
{
	struct graph_site_sums sums;
	_cleanup_free_ uint32_t *number = graph_numbers(g);
	size_t shown = 0;

	graph_owner_sites(g, &sums);
	fprintf(f, "\nwhat owners retain, by where it was allocated:\n");
	for (size_t i = 0; i < rows->list.count && shown < OWNERS_SHOWN; i++) {
		const struct graph_row *r = &rows->list.data[i];
		bool is_owner = r->kind == GRAPH_ROW_OWNER;
		_cleanup_free_ char *text = NULL;

		if (r->level > 0 || (!is_owner && r->kind != GRAPH_ROW_SHARED))
			continue;
		shown++;
		text = is_owner ? graph_node_text(g, r->node) :
				  graph_sharers_text(g, DOMINATORS_ROOT);
		fprintf(f, "  %s\n", text);
		print_owner_sites(f, g, &sums, is_owner ? number[r->node] : DOMINATORS_ROOT);
	}
	vec_deinit(&sums.list);
}

/* -- leaks -- */

/* What the blocks of @l are: "from make <- main", "of type Order". */
static char *kind_text(const struct heap_graph *g, const struct graph_leak *l)
{
	const char *type = graph_type_name(g, l->type);
	_cleanup_free_ char *site = l->site ? graph_site_text(g, l->site) : NULL;

	return l->is_joint ? xstrdup("that several of these lead to") :
	       l->site ? xasprintf("from %s", site) :
	       type ? xasprintf("of type %s", type) : xstrdup("of unknown kind");
}

static void print_leak(FILE *f, const struct heap_graph *g, const struct graph_leak *l,
		       const char *shared)
{
	_cleanup_free_ char *kind = kind_text(g, l);
	_cleanup_free_ char *holder = graph_number_text(g, l->holder, shared);
	_cleanup_free_ char *target = graph_number_text(g, l->target, shared);
	char number[3][AMOUNT_SIZE];

	fprintf(f, "  %s block%s %s  retain%s ", amount_commas(l->lost, number[0]),
		plural(l->lost), kind, l->lost == 1 ? "s" : "");
	graph_print_amount(f, l->bytes, l->blocks);
	if (l->others > 0)
		fprintf(f, "    %s other%s from %s %s not leaked: %s %s held by %s\n",
			amount_commas(l->others, number[0]), plural(l->others),
			l->by_function ? graph_site_function(g->sites, l->site) : "there",
			l->others == 1 ? "is" : "are", amount_commas(l->held, number[1]),
			l->held == 1 ? "is" : "are", holder);
	if (l->pointers > 0)
		fprintf(f, "    with %s pointer%s to blocks of %s\n",
			amount_commas(l->pointers, number[2]), plural(l->pointers), target);
}

void graph_leak_print(FILE *f, const struct heap_graph *g, uint32_t block)
{
	_cleanup_free_ char *shared = graph_sharers_text(g, DOMINATORS_ROOT);
	struct graph_leaks leaks;
	const struct graph_leak *l;

	graph_leaks_find(g, &leaks);
	l = graph_leaks_of(&leaks, g, block);
	if (l) {
		fprintf(f, "\nleaked blocks of this kind:\n");
		print_leak(f, g, l, shared);
	}
	vec_deinit(&leaks.list);
}

static void print_leaks(FILE *f, const struct heap_graph *g)
{
	_cleanup_free_ char *shared = graph_sharers_text(g, DOMINATORS_ROOT);
	struct graph_leaks leaks;
	uint64_t bytes = 0, blocks = 0;

	graph_leaks_find(g, &leaks);
	if (leaks.list.count > 0)
		fprintf(f, "\nleaked blocks, and owners of others like them:\n");
	for (size_t i = 0; i < leaks.list.count; i++) {
		if (i < LEAKS_SHOWN) {
			print_leak(f, g, &leaks.list.data[i], shared);
			continue;
		}
		bytes += leaks.list.data[i].bytes;
		blocks += leaks.list.data[i].blocks;
	}
	if (leaks.list.count > LEAKS_SHOWN)
		print_rest(f, leaks.list.count - LEAKS_SHOWN, bytes, blocks);
	vec_deinit(&leaks.list);
}

void graph_origins_print(FILE *f, const struct heap_graph *g, const struct graph_rows *rows)
{
	if (g->sites) {
		print_sites(f, g);
		print_owners(f, g, rows);
	}
	print_leaks(f, g);
}

/* -- JSON -- */

void graph_site_write(struct json_writer *w, const struct heap_graph *g, uint32_t site)
{
	json_write_open(w, "functions", '[');
	for (; site; site = g->sites->calls.data[site - 1].caller)
		json_write_text(w, NULL, graph_site_function(g->sites, site));
	json_write_close(w, 1);
}

static void write_sites(struct json_writer *w, const struct heap_graph *g)
{
	struct graph_site_sums sums;

	graph_sites_sum(g, &sums);
	json_write_open(json_write_line(w, 0), "allocated", '[');
	for (size_t i = 0; i < sums.list.count; i++) {
		const struct graph_site_sum *s = &sums.list.data[i];

		json_write_open(json_write_line(w, 1), NULL, '{');
		graph_site_write(w, g, s->site);
		json_write_numbers(w, {"bytes", s->bytes}, {"blocks", s->blocks},
				   {"retained_bytes", s->retained_bytes},
				   {"retained_blocks", s->retained_blocks});
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
	vec_deinit(&sums.list);
}

static void write_owners(struct json_writer *w, const struct heap_graph *g)
{
	_cleanup_free_ char *shared = graph_sharers_text(g, DOMINATORS_ROOT);
	struct graph_site_sums sums;

	graph_owner_sites(g, &sums);
	json_write_open(json_write_line(w, 0), "owners_allocated", '[');
	for (size_t i = 0; i < sums.list.count; i++) {
		const struct graph_site_sum *s = &sums.list.data[i];
		_cleanup_free_ char *owner = graph_number_text(g, s->owner, shared);

		json_write_open(json_write_line(w, 1), NULL, '{');
		json_write_text(w, "owner", owner);
		graph_site_write(w, g, s->site);
		json_write_numbers(w, {"bytes", s->bytes}, {"blocks", s->blocks});
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
	vec_deinit(&sums.list);
}

static void write_leak(struct json_writer *w, const struct heap_graph *g,
		       const struct graph_leak *l, const char *shared)
{
	_cleanup_free_ char *kind = kind_text(g, l);
	_cleanup_free_ char *holder = graph_number_text(g, l->holder, shared);
	_cleanup_free_ char *target = graph_number_text(g, l->target, shared);

	json_write_open(json_write_line(w, 1), NULL, '{');
	json_write_text(w, "kind", kind);
	json_write_numbers(w, {"lost", l->lost}, {"retained_bytes", l->bytes},
			   {"retained_blocks", l->blocks}, {"others", l->others});
	json_write_bool(w, "others_of_function", l->by_function);
	json_write_text(w, "held_by", l->others ? holder : NULL);
	json_write_number(w, "held", l->held);
	json_write_text(w, "points_to", l->pointers ? target : NULL);
	json_write_number(w, "pointers", l->pointers);
	json_write_close(w, 1);
}

void graph_origins_write(struct json_writer *w, const struct heap_graph *g)
{
	_cleanup_free_ char *shared = graph_sharers_text(g, DOMINATORS_ROOT);
	struct graph_leaks leaks;

	if (g->sites) {
		write_sites(w, g);
		write_owners(w, g);
	}
	graph_leaks_find(g, &leaks);
	json_write_open(json_write_line(w, 0), "leaks", '[');
	for (size_t i = 0; i < leaks.list.count; i++)
		write_leak(w, g, &leaks.list.data[i], shared);
	json_write_close(w, 1);
	vec_deinit(&leaks.list);
}
