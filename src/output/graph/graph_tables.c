/*
 * Text:
 *
 *	types of blocks:
 *	  Session  1.0 MiB (1,048,576 bytes) in 2,000 blocks
 *	fields, by what they hold alone, in all objects; ...
 *	  cache.by_user[*]  retains ... in ... blocks, of which ... bytes directly
 *	containers, by bytes that no element uses:
 *	  std::vector<Order *>  2,000, 12 empty; 10,000 of 12,000 bytes used
 *	padding, by bytes lost in all objects:
 *	  Session  14,000 bytes: 7 of 32 in 2,000 objects
 *	    24 bytes, 16,000 less in all, in this order: next, kind
 *	equal strings: 3,000 blocks with 100 different ones; ...
 *	  4,800 bytes less: 201 copies of 11 bytes  "no address."
 */
#include "output/graph/graph_tables.h"

#include <inttypes.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "graph/graph_fields.h"
#include "output/graph/graph_sharers.h"

#define ROWS_SHOWN 20u

struct type_row {
	const char *name;
	uint64_t blocks, bytes;
};

struct type_rows {
	VEC(struct type_row) list; /* most bytes first, then by name; none is empty */
};

static int compare_types(const void *a, const void *b)
{
	const struct type_row *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void find_types(const struct heap_graph *g, struct type_rows *out)
{
	size_t kept = 0;

	*out = (struct type_rows){0};
	for (size_t i = 0; i < g->types.count; i++)
		*vec_add(&out->list) = (struct type_row){.name = g->types.data[i]};
	for (uint32_t i = 0; i < g->blocks; i++)
		if (g->block[i].type < out->list.count) {
			out->list.data[g->block[i].type].blocks++;
			out->list.data[g->block[i].type].bytes += g->block[i].size;
		}
	for (size_t i = 0; i < out->list.count; i++)
		if (out->list.data[i].blocks)
			out->list.data[kept++] = out->list.data[i];
	out->list.count = kept;
	vec_sort(&out->list, compare_types);
}

static bool has_fields(const struct heap_graph *g)
{
	return g->typed && g->place;
}

/* -- text -- */

static void print_amount(FILE *f, uint64_t bytes, uint64_t blocks)
{
	_cleanup_free_ char *exact = amount_exact((double)bytes);
	char number[AMOUNT_SIZE];

	fprintf(f, "%s in %s block%s", exact, amount_commas(blocks, number), plural(blocks));
}

static void print_types(FILE *f, const struct heap_graph *g)
{
	struct type_rows rows;

	find_types(g, &rows);
	fprintf(f, "\ntypes of blocks:\n");
	for (size_t i = 0; i < MIN(rows.list.count, ROWS_SHOWN); i++) {
		const struct type_row *r = &rows.list.data[i];

		fprintf(f, "  %s  ", r->name);
		print_amount(f, r->bytes, r->blocks);
		fprintf(f, "\n");
	}
	vec_deinit(&rows.list);
}

static void print_fields(FILE *f, const struct heap_graph *g)
{
	uint64_t bytes = 0, blocks = 0;
	struct graph_field_rows rows;
	char number[AMOUNT_SIZE];

	_cleanup_free_ char *shared = graph_sharers_text(g, DOMINATORS_ROOT);

	graph_fields_find(g, shared, &rows);
	fprintf(f, "\nfields, by what they hold alone, in all objects; a field on the way to "
		"others contains these,\nwhat it holds directly is in no other row:\n");
	for (size_t i = 0; i < rows.list.count; i++) {
		const struct graph_field_row *r = &rows.list.data[i];

		bytes += r->own_bytes;
		blocks += r->own_blocks;
		if (i >= ROWS_SHOWN)
			continue;
		fprintf(f, "  %s  retain%s ", r->text, *r->text == '(' ? "" : "s");
		print_amount(f, r->bytes, r->blocks);
		fprintf(f, "; %s byte%s directly\n", amount_commas(r->own_bytes, number),
			plural(r->own_bytes));
	}
	if (rows.list.count > ROWS_SHOWN)
		fprintf(f, "  %s other%s\n",
			amount_commas(rows.list.count - ROWS_SHOWN, number),
			plural(rows.list.count - ROWS_SHOWN));
	fprintf(f, "  sum of what all hold directly  ");
	print_amount(f, bytes, blocks);
	fprintf(f, "\n");
	graph_fields_deinit(&rows);
}

static void print_containers(FILE *f, const struct graph_types *t)
{
	char number[3][AMOUNT_SIZE];

	if (t->containers.count)
		fprintf(f, "\ncontainers, by bytes that no element uses:\n");
	for (size_t i = 0; i < MIN(t->containers.count, ROWS_SHOWN); i++) {
		const struct graph_container *c = &t->containers.data[i];

		fprintf(f, "  %s  %s, %s empty", c->name, amount_commas(c->containers, number[0]),
			amount_commas(c->empty, number[1]));
		if (c->empty)
			fprintf(f, " (%s bytes)", amount_commas(c->empty * c->size, number[2]));
		if (c->capacity)
			fprintf(f, "; %s of %s bytes used", amount_commas(c->used, number[2]),
				amount_commas(c->capacity, number[0]));
		fprintf(f, "\n");
	}
}

static void print_padding(FILE *f, const struct graph_types *t)
{
	char number[3][AMOUNT_SIZE];

	if (t->padding.count)
		fprintf(f, "\npadding, by bytes lost in all objects:\n");
	for (size_t i = 0; i < MIN(t->padding.count, ROWS_SHOWN); i++) {
		const struct graph_padding *p = &t->padding.data[i];

		fprintf(f, "  %s  %s%s bytes: %" PRIu64 " of %" PRIu64 " in %s object%s\n", p->name,
			p->is_most ? "up to " : "",
			amount_commas(p->padding * p->objects, number[0]), p->padding, p->size,
			amount_commas(p->objects, number[1]), plural(p->objects));
		if (p->order)
			fprintf(f, "    %" PRIu64 " bytes, %s%s less in all, in this order: %s\n",
				p->best, p->is_most ? "up to " : "",
				amount_commas((p->size - p->best) * p->objects, number[2]),
				p->order);
	}
}

static void print_strings(FILE *f, const struct graph_strings *s, bool with_text)
{
	char number[3][AMOUNT_SIZE];

	if (s->list.count)
		fprintf(f, "\nequal strings: %s blocks with %s different ones; %s bytes less if "
			"each was kept once\n", amount_commas(s->blocks, number[0]),
			amount_commas(s->different, number[1]),
			amount_commas(s->saved, number[2]));
	for (size_t i = 0; i < MIN(s->list.count, ROWS_SHOWN); i++) {
		const struct graph_string *r = &s->list.data[i];

		fprintf(f, "  %s bytes less: %s copies of %s byte%s",
			amount_commas(r->saved, number[0]), amount_commas(r->copies, number[1]),
			amount_commas(r->length, number[2]), plural(r->length));
		if (with_text && r->text)
			fprintf(f, "  \"%s\"%s", r->text,
				strlen(r->text) < r->length ? "..." : "");
		fprintf(f, "\n");
	}
	if (s->list.count && s->skipped)
		fprintf(f, "  %s blocks were not compared\n",
			amount_commas(s->skipped, number[0]));
}

void graph_tables_print(FILE *f, const struct heap_graph *g, bool with_text)
{
	if (g->typed || g->sites)
		print_types(f, g);
	if (!g->typed)
		return;
	if (has_fields(g))
		print_fields(f, g);
	print_containers(f, g->typed);
	print_padding(f, g->typed);
	print_strings(f, &g->typed->strings, with_text);
}

/* -- JSON -- */

/* Calls @write for each of the rows that are wanted: an object on a line of its own. */
#define write_each(w, name, rows, most, r, write)                                          \
	do {                                                                              \
		json_write_open(json_write_line(w, 0), name, '[');                         \
		for (size_t i_ = 0; i_ < MIN((rows)->count, (size_t)(most)); i_++) {       \
			const __typeof__(*(rows)->data) *r = &(rows)->data[i_];            \
			json_write_open(json_write_line(w, 1), NULL, '{');                 \
			write;                                                             \
			json_write_close(w, 1);                                            \
		}                                                                         \
		json_write_close(w, 1);                                                    \
	} while (0)

static void write_types(struct json_writer *w, const struct heap_graph *g, size_t most)
{
	struct type_rows rows;

	find_types(g, &rows);
	write_each(w, "types", &rows.list, most, r, {
		json_write_text(w, "type", r->name);
		json_write_numbers(w, {"bytes", r->bytes}, {"blocks", r->blocks});
	});
	vec_deinit(&rows.list);
}

static void write_fields(struct json_writer *w, const struct heap_graph *g, size_t most)
{
	struct graph_field_rows rows = {0};

	if (has_fields(g)) {
		_cleanup_free_ char *shared = graph_sharers_text(g, DOMINATORS_ROOT);

		graph_fields_find(g, shared, &rows);
	}
	write_each(w, "fields", &rows.list, most, r, {
		json_write_text(w, "field", r->text);
		json_write_numbers(w, {"retained_bytes", r->bytes}, {"retained_blocks", r->blocks},
				   {"own_bytes", r->own_bytes}, {"own_blocks", r->own_blocks});
	});
	graph_fields_deinit(&rows);
}

static void write_padding(struct json_writer *w, const struct graph_padding *r)
{
	json_write_text(w, "type", r->name);
	json_write_numbers(w, {"objects", r->objects}, {"size", r->size}, {"padding", r->padding},
			   {"best_size", r->best});
	json_write_bool(w, "is_upper_bound", r->is_most);
	json_write_text(w, "order", r->order);
}

/* Without what is in them: files have no data of the program. */
static void write_strings(struct json_writer *w, const struct graph_strings *s, size_t most)
{
	json_write_open(json_write_line(w, 0), "equal_strings", '{');
	json_write_numbers(w, {"blocks", s->blocks}, {"bytes", s->bytes},
			   {"different", s->different}, {"saved_bytes", s->saved},
			   {"skipped", s->skipped});
	write_each(w, "rows", &s->list, most, r,
		   json_write_numbers(w, {"length", r->length}, {"copies", r->copies},
				      {"bytes", r->bytes}, {"saved_bytes", r->saved}));
	json_write_close(w, 1);
}

void graph_tables_write(struct json_writer *w, const struct heap_graph *g, size_t most)
{
	static const struct graph_types none;
	const struct graph_types *t = g->typed ? g->typed : &none;

	write_types(w, g, most);
	write_fields(w, g, most);
	write_each(w, "containers", &t->containers, most, r, {
		json_write_text(w, "type", r->name);
		json_write_numbers(w, {"containers", r->containers}, {"empty", r->empty},
				   {"empty_bytes", r->empty * r->size}, {"used_bytes", r->used},
				   {"capacity_bytes", r->capacity});
	});
	write_each(w, "padding", &t->padding, most, r, write_padding(w, r));
	write_strings(w, &t->strings, most);
}
