/* The owners are those that lead to most bytes; of one block, those with the shortest ways. */
#include "output/graph/graph_sharers.h"

#include <stdlib.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "graph/graph_sharing.h"
#include "output/graph/graph_text.h"

#define NAMED 2u                /* owners in a name */
#define SHARERS_SHOWN 5u

/* The name for @count owners, of which @first and @second have names; NULL = they have none. */
static char *join_names(const char *first, const char *second, uint64_t count)
{
	uint64_t named = !first ? 0 : !second ? 1 : 2;
	char number[AMOUNT_SIZE];

	if (named == 0)
		return xstrdup("shared by several owners");
	return xasprintf("shared by %s%s%s%s%s%s", first, second ? " and " : "", second ?: "",
			 count > named ? " and " : "",
			 count > named ? amount_commas(count - named, number) : "",
			 count > named ? " more" : "");
}

static char *owner_name(const struct heap_graph *g, uint32_t number)
{
	return graph_node_text(g, g->tree.node[number]);
}

char *graph_sharers_text(const struct heap_graph *g, uint32_t top)
{
	_cleanup_free_ char *first = NULL, *second = NULL;
	struct graph_sharing all;

	graph_sharing_find(g, top, &all);
	if (all.list.count > 0)
		first = owner_name(g, all.list.data[0].owner);
	if (all.list.count > 1)
		second = owner_name(g, all.list.data[1].owner);
	char *out = join_names(first, second, all.list.count + all.others);

	vec_deinit(&all.list);
	return out;
}

char *graph_row_sharers_text(const struct heap_graph *g, const struct graph_row *row)
{
	_cleanup_free_ char *first = NULL, *second = NULL;
	struct graph_holders h;

	graph_holders_find(g, row, NAMED, &h);
	if (h.owners.count > 0)
		first = graph_owner_text(&g->owners.data[h.owners.data[0]]);
	if (h.owners.count > 1)
		second = graph_owner_text(&g->owners.data[h.owners.data[1]]);
	vec_deinit(&h.owners);
	return join_names(first, second, h.count);
}

char *graph_number_text(const struct heap_graph *g, uint32_t number, const char *shared)
{
	return number == DOMINATORS_ROOT ? xstrdup(shared) : owner_name(g, number);
}

void graph_sharers_print(FILE *f, const struct heap_graph *g, uint32_t top)
{
	struct graph_sharing all;
	char number[AMOUNT_SIZE];

	graph_sharing_find(g, top, &all);
	uint64_t count = all.list.count + all.others, shown = MIN(all.list.count, SHARERS_SHOWN);

	for (size_t i = 0; i < shown; i++) {
		const struct graph_sharer *s = &all.list.data[i];
		_cleanup_free_ char *name = owner_name(g, s->owner);

		fprintf(f, "%s%s (%s)", !i ? "" : i + 1 == count ? " and " : ", ", name,
			amount_bytes((double)s->bytes, number));
	}
	if (count > shown)
		fprintf(f, " and %s more", amount_commas(count - shown, number));
	fprintf(f, "\n");
	vec_deinit(&all.list);
}

void graph_sharers_write(struct json_writer *w, const struct heap_graph *g, uint32_t top)
{
	struct graph_sharing all;

	graph_sharing_find(g, top, &all);
	json_write_open(w, "owners", '[');
	for (size_t i = 0; i < all.list.count; i++) {
		const struct graph_sharer *s = &all.list.data[i];
		_cleanup_free_ char *name = owner_name(g, s->owner);

		json_write_open(w, NULL, '{');
		json_write_text(w, "text", name);
		json_write_numbers(w, {"bytes", s->bytes}, {"blocks", s->blocks});
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
	json_write_number(w, "other_owners", all.others);
	vec_deinit(&all.list);
}
