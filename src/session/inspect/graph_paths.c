/* Each leaf of the profile becomes a path when the first of its blocks in the graph comes. */
#include "session/inspect/graph_paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "graph/heap_graph.h"
#include "inspect/inspect.h"
#include "output/call_sites.h"
#include "output/report_tree.h"
#include "profile/blocks.h"
#include "session/inspect/earlier_blocks.h"
#include "session/inspect/inspect_stopped.h"
#include "session/session.h"

#define NO_PATH UINT32_MAX

struct path_finder {
	const struct report *report;
	struct shown_stack stack;
	struct heap_graph *graph;
	struct graph_sites *sites;
	uint32_t *path;         /* by leaf: index + 1; 0 = not yet; NO_PATH */
};

/* Whether blocks of this stack are from before the profile began. */
static bool is_earlier(const struct shown_stack *s)
{
	const struct symbol *symbol = s->count ? shown_stack_symbol(s, s->first) : NULL;
	const char *name = symbol ? symbol->frame[symbol->count - 1].name : NULL;

	return name && strcmp(name, EARLIER_BLOCKS_FRAME) == 0;
}

/* The path of @leaf, from its outermost function on. */
static uint32_t add_path(struct path_finder *f, uint32_t leaf)
{
	struct shown_stack *s = &f->stack;
	struct graph_path path = {0};

	if (!shown_stack_fill(s, profile_leaf(f->report->profile, leaf)->node) || is_earlier(s))
		return NO_PATH;
	struct call_site site = call_site_find(s);

	for (size_t i = s->first + s->count; i-- > s->first;) {
		const struct symbol *symbol = shown_stack_symbol(s, i);

		for (uint32_t k = symbol->count; k-- > 0;) {
			_cleanup_free_ char *name = shown_frame_name(symbol, &symbol->frame[k]);
			_cleanup_free_ char *clean = text_clean(name, strlen(name));

			path.call = graph_sites_call(f->sites, path.call, clean);
			if (s->frame.data[i] == site.frame && k == site.inlined)
				path.site = path.call;
		}
	}
	path.site = path.site ?: path.call;
	*vec_add(&f->sites->paths) = path;
	return (uint32_t)f->sites->paths.count;
}

/* The profile knows sizes as they were asked for: a block that is larger is another one. */
static void find_path(struct path_finder *f, uint32_t node)
{
	const struct graph_block *b = &f->graph->block[node];
	const struct profile *p = f->report->profile;
	struct block known;

	if (!blocks_find(profile_blocks(p), b->addr, &known) || known.size > b->size ||
	    known.leaf == 0 || known.leaf > profile_leaf_count(p))
		return;
	if (!f->path[known.leaf])
		f->path[known.leaf] = add_path(f, known.leaf);
	if (f->path[known.leaf] != NO_PATH)
		f->sites->of_block[node] = f->path[known.leaf];
}

/* -- types by function -- */

/* Of what is guessed: whether the guess says more than the size. */
static bool is_guess(const struct block_types *t, uint32_t type, bool *is_text_out)
{
	enum block_kind kind = type < t->list.count ? t->list.data[type].kind : KIND_SIZE;

	*is_text_out = type < t->list.count && kind == KIND_TEXT;
	return (type < t->list.count || type == GRAPH_TYPE_MAX) &&
	       (kind == KIND_ZEROS || kind == KIND_POINTERS || kind == KIND_TEXT ||
		kind == KIND_SIZE);
}

/* Names the blocks without a type: "from parse", "text from parse". */
static void name_types(const struct block_types *guessed, struct heap_graph *g)
{
	const struct graph_sites *s = g->sites;
	uint32_t *type = xcalloc(2 * s->functions.count + 1, sizeof(*type)); /* index + 1 */

	for (uint32_t i = 0; i < g->blocks; i++) {
		uint32_t site = graph_site_of(g, i), *known;
		bool is_text;

		if (!site || !is_guess(guessed, g->block[i].type, &is_text))
			continue;
		known = &type[2 * s->calls.data[site - 1].function + is_text];
		if (!*known && g->types.count < GRAPH_TYPE_MAX) {
			*vec_add(&g->types) = xasprintf("%sfrom %s", is_text ? "text " : "",
							graph_site_function(s, site));
			*known = (uint32_t)g->types.count;
		}
		if (*known)
			g->block[i].type = (*known - 1) & GRAPH_TYPE_MAX;
	}
	free(type);
}

void graph_paths_find(struct session *s, struct inspect_stopped *look)
{
	const struct report r = session_report(s);
	struct path_finder f = {.report = &r, .stack = {.report = &r}, .graph = &look->graph};

	if (!look->has_graph || s->run->options->profile.pages_as_heap)
		return;
	f.sites = graph_sites_new(look->graph.blocks);
	f.path = xcalloc((size_t)profile_leaf_count(r.profile) + 1, sizeof(*f.path));
	for (uint32_t i = 0; i < look->graph.blocks; i++)
		find_path(&f, i);
	look->graph.sites = f.sites;
	name_types(&look->report.types, &look->graph);
	shown_stack_deinit(&f.stack);
	free(f.path);
}
