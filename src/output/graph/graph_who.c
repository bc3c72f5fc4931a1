/* Finds the blocks first, then their patterns; a second table has their sites or their types. */
#include "output/graph/graph_who.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "graph/graph_patterns.h"
#include "graph/graph_set.h"
#include "output/graph/graph_text.h"

#define GROUPS_SHOWN 30u
#define PARTS_SHOWN 10u
#define NAMES_SHOWN 5u

enum subject_kind { SUBJECT_NONE, SUBJECT_TYPE, SUBJECT_FUNCTION };

/* The blocks that are wanted. */
struct graph_subject {
	const struct heap_graph *graph;
	enum subject_kind kind;
	const char *name;
	bool is_function, is_type; /* there are both */
	uint64_t *is_wanted;    /* bits by block; owned */
	uint64_t bytes, blocks;
	struct graph_amount each, all; /* graph_set.h */
};

/* -- the blocks -- */

static void want(struct graph_subject *s, uint32_t block)
{
	s->is_wanted[block / 64] |= UINT64_C(1) << block % 64;
	s->bytes += s->graph->block[block].size;
	s->blocks++;
}

/* Whether there is a block of the type; @adds: they are wanted. Several types may have one name. */
static bool find_type(struct graph_subject *s, bool adds)
{
	const struct heap_graph *g = s->graph;
	bool *is_named = xcalloc(g->types.count + 1, sizeof(*is_named)), is_any = false;

	for (size_t i = 0; i < g->types.count; i++)
		is_named[i] = strcmp(g->types.data[i], s->name) == 0;
	for (uint32_t i = 0; i < g->blocks && (adds || !is_any); i++) {
		if (g->block[i].type >= g->types.count || !is_named[g->block[i].type])
			continue;
		is_any = true;
		if (adds)
			want(s, i);
	}
	free(is_named);
	return is_any;
}

static bool is_function_named(const char *function, const char *name)
{
	const char *rest = text_after(function, name);

	return rest && (*rest == '\0' || *rest == '(');
}

static bool find_function(struct graph_subject *s, bool adds)
{
	const struct heap_graph *g = s->graph;
	size_t calls = g->sites ? g->sites->calls.count : 0;
	bool *has = xcalloc(calls + 1, sizeof(*has)), is_any = false; /* by call + 1 */

	for (size_t i = 0; i < calls; i++) {
		const struct graph_call *c = &g->sites->calls.data[i];

		has[i + 1] = has[c->caller] ||
			     is_function_named(g->sites->functions.data[c->function], s->name);
	}
	for (uint32_t i = 0; i < g->blocks && calls > 0 && (adds || !is_any); i++) {
		uint32_t path = g->sites->of_block[i];

		if (!path || !has[g->sites->paths.data[path - 1].call])
			continue;
		is_any = true;
		if (adds)
			want(s, i);
	}
	free(has);
	return is_any;
}

/* The name after @prefix; NULL: @text does not begin with it, or with a scope: "type::x". */
static const char *after_prefix(const char *text, const char *prefix)
{
	const char *rest = text_after(text, prefix);

	return rest && *rest != ':' ? rest : NULL;
}

static void subject_find(const struct heap_graph *g, const char *text, struct graph_subject *out)
{
	const char *type = after_prefix(text, "type:");
	const char *function = after_prefix(text, "function:");

	*out = (struct graph_subject){.graph = g, .name = type ?: function ?: text};
	out->is_wanted = xcalloc((size_t)g->blocks / 64 + 1, sizeof(*out->is_wanted));
	out->is_type = !function && find_type(out, false);
	out->is_function = !type && find_function(out, false);
	out->kind = out->is_type ? SUBJECT_TYPE :
		    out->is_function ? SUBJECT_FUNCTION : SUBJECT_NONE;
	if (out->kind == SUBJECT_TYPE)
		find_type(out, true);
	else if (out->kind == SUBJECT_FUNCTION)
		find_function(out, true);
	out->each = graph_set_each(g, out->is_wanted);
	out->all = graph_set_all(g, out->is_wanted);
}

/* -- parts: by site, or by type -- */

struct graph_subject_part {
	uint32_t key;           /* a site; or a type */
	uint64_t bytes, blocks;
};

struct graph_subject_parts {
	VEC(struct graph_subject_part) list; /* most bytes first */
};

static int by_key(const void *a, const void *b)
{
	const struct graph_subject_part *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

static bool merge(struct graph_subject_part *to, struct graph_subject_part *from)
{
	if (to->key != from->key)
		return false;
	to->bytes += from->bytes;
	to->blocks += from->blocks;
	return true;
}

static int by_bytes(const void *a, const void *b)
{
	const struct graph_subject_part *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes > y->bytes ? -1 : 1) : by_key(a, b);
}

static void parts_find(const struct graph_subject *s, struct graph_subject_parts *out)
{
	const struct heap_graph *g = s->graph;

	*out = (struct graph_subject_parts){0};
	for (uint32_t i = 0; i < g->blocks; i++)
		if (s->is_wanted[i / 64] >> i % 64 & 1)
			*vec_add(&out->list) = (struct graph_subject_part){
				s->kind == SUBJECT_TYPE ? graph_site_of(g, i) : g->block[i].type,
				g->block[i].size, 1};
	vec_sort(&out->list, by_key);
	vec_merge(&out->list, merge);
	vec_sort(&out->list, by_bytes);
}

static char *part_text(const struct graph_subject *s, const struct graph_subject_part *p)
{
	return s->kind == SUBJECT_TYPE ? graph_site_text(s->graph, p->key) :
					 xstrdup(graph_type_name(s->graph, p->key) ?:
						 "of unknown type");
}

/* -- text -- */

/* What has the name in it, in letters of any case. */
static void print_similar(FILE *f, const struct graph_subject *s)
{
	const struct heap_graph *g = s->graph;
	size_t shown = 0;

	for (size_t i = 0; i < g->types.count && shown < NAMES_SHOWN; i++)
		if (strcasestr(g->types.data[i], s->name))
			fprintf(f, "%s%s", shown++ ? ", " : "types with that in their names: ",
				g->types.data[i]);
	fprintf(f, "%s", shown ? "\n" : "");
	for (size_t i = shown = 0; g->sites && i < g->sites->functions.count &&
				   shown < NAMES_SHOWN; i++)
		if (strcasestr(g->sites->functions.data[i], s->name))
			fprintf(f, "%s%s", shown++ ? ", " : "functions with that in their names: ",
				g->sites->functions.data[i]);
	fprintf(f, "%s", shown ? "\n" : "");
}

static void print_nothing(FILE *f, const struct graph_subject *s)
{
	if (s->graph->sites)
		fprintf(f, "no block in use is of type %s, or was allocated in a function of that "
			"name\n", s->name);
	else
		fprintf(f, "no block in use is of type %s; functions that allocated are known with "
			"a profile only: ptmem --graph PROGRAM\n", s->name);
	print_similar(f, s);
}

static void print_rest(FILE *f, uint64_t count, const struct graph_amount *rest)
{
	char number[AMOUNT_SIZE];

	fprintf(f, "  %s other%s  ", amount_commas(count, number), plural(count));
	graph_print_amount(f, rest->bytes, rest->blocks);
}

static void print_groups(FILE *f, const struct graph_subject *s)
{
	struct graph_patterns p;
	struct graph_amount rest = {0};

	graph_patterns_find(s->graph, s->is_wanted, &p);
	fprintf(f, "\nthe shortest ways to them:\n");
	for (size_t i = 0; i < p.groups.count; i++) {
		const struct graph_pattern *group = &p.list.data[p.groups.data[i]];

		if (i >= GROUPS_SHOWN) {
			rest.bytes += group->bytes;
			rest.blocks += group->blocks;
			continue;
		}
		_cleanup_free_ char *way = graph_pattern_text(s->graph, &p, p.groups.data[i]);

		fprintf(f, "  %s -> %#" PRIx64 "%s  ", way, group->example,
			group->blocks == 1 ? "" : ", ...");
		graph_print_amount(f, group->bytes, group->blocks);
	}
	if (rest.blocks > 0)
		print_rest(f, p.groups.count - GROUPS_SHOWN, &rest);
	graph_patterns_deinit(&p);
}

static void print_parts(FILE *f, const struct graph_subject *s)
{
	struct graph_subject_parts parts;
	struct graph_amount rest = {0};

	if (s->kind == SUBJECT_TYPE && !s->graph->sites)
		return;
	parts_find(s, &parts);
	fprintf(f, s->kind == SUBJECT_TYPE ? "\nallocated in:\n" : "\ntheir types:\n");
	for (size_t i = 0; i < parts.list.count; i++) {
		const struct graph_subject_part *part = &parts.list.data[i];

		if (i >= PARTS_SHOWN) {
			rest.bytes += part->bytes;
			rest.blocks += part->blocks;
			continue;
		}
		_cleanup_free_ char *text = part_text(s, part);

		fprintf(f, "  %s  ", text);
		graph_print_amount(f, part->bytes, part->blocks);
	}
	if (rest.blocks > 0)
		print_rest(f, parts.list.count - PARTS_SHOWN, &rest);
	vec_deinit(&parts.list);
}

void graph_who_print(FILE *f, const struct heap_graph *g, const char *subject)
{
	struct graph_subject s;

	subject_find(g, subject, &s);
	if (s.blocks == 0) {
		print_nothing(f, &s);
		free(s.is_wanted);
		return;
	}
	if (s.kind == SUBJECT_TYPE)
		fprintf(f, "blocks of type %s: ", s.name);
	else
		fprintf(f, "blocks allocated in %s, or in what it called: ", s.name);
	graph_print_amount(f, s.bytes, s.blocks);
	fprintf(f, "each by itself, they retain ");
	graph_print_amount(f, s.each.bytes, s.each.blocks);
	fprintf(f, "free without all of them: ");
	graph_print_amount(f, s.all.bytes, s.all.blocks);
	if (s.is_type && s.is_function)
		fprintf(f, "a function has that name, too: --who-holds=function:%s\n", s.name);
	print_groups(f, &s);
	print_parts(f, &s);
	free(s.is_wanted);
}

/* -- JSON -- */

static void write_groups(struct json_writer *w, const struct graph_subject *s)
{
	struct graph_patterns p;

	graph_patterns_find(s->graph, s->is_wanted, &p);
	json_write_open(json_write_line(w, 0), "ways", '[');
	for (size_t i = 0; i < p.groups.count; i++) {
		const struct graph_pattern *group = &p.list.data[p.groups.data[i]];
		_cleanup_free_ char *way = graph_pattern_text(s->graph, &p, p.groups.data[i]);

		json_write_open(json_write_line(w, 1), NULL, '{');
		json_write_text(w, "way", way);
		json_write_format(w, "example", "\"%#" PRIx64 "\"", group->example);
		json_write_numbers(w, {"bytes", group->bytes}, {"blocks", group->blocks});
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
	graph_patterns_deinit(&p);
}

static void write_parts(struct json_writer *w, const struct graph_subject *s)
{
	struct graph_subject_parts parts;
	const char *what = s->kind == SUBJECT_TYPE ? "allocated_in" : "types";

	if (s->kind == SUBJECT_TYPE && !s->graph->sites)
		return;
	parts_find(s, &parts);
	json_write_open(json_write_line(w, 0), what, '[');
	for (size_t i = 0; i < parts.list.count; i++) {
		const struct graph_subject_part *part = &parts.list.data[i];
		_cleanup_free_ char *text = part_text(s, part);

		json_write_open(json_write_line(w, 1), NULL, '{');
		json_write_text(w, "text", text);
		json_write_numbers(w, {"bytes", part->bytes}, {"blocks", part->blocks});
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
	vec_deinit(&parts.list);
}

void graph_who_write(struct json_writer *w, const struct heap_graph *g, const char *subject)
{
	static const char *const kind[] = {[SUBJECT_NONE] = NULL, [SUBJECT_TYPE] = "type",
					   [SUBJECT_FUNCTION] = "function"};
	struct graph_subject s;

	subject_find(g, subject, &s);
	json_write_open(json_write_line(w, 0), "who_holds", '{');
	json_write_text(w, "kind", kind[s.kind]);
	json_write_text(w, "name", s.name);
	json_write_bool(w, "is_type", s.is_type);
	json_write_bool(w, "is_function", s.is_function);
	json_write_numbers(w, {"bytes", s.bytes}, {"blocks", s.blocks},
			   {"retained_bytes", s.each.bytes}, {"retained_blocks", s.each.blocks},
			   {"all_retained_bytes", s.all.bytes},
			   {"all_retained_blocks", s.all.blocks});
	if (s.blocks > 0) {
		write_groups(w, &s);
		write_parts(w, &s);
	}
	json_write_close(w, 1);
	free(s.is_wanted);
}
